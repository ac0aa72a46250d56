import { assertEquals } from "@std/assert";
import { Harness, type HarnessRequest } from "../harness.ts";

const PET = { name: "Rex", categoryId: 7 };

/** Responses of every kind, and between them every header that the service sends. */
export async function variedResponses(headers: Record<string, string>): Promise<Response[]> {
  await using service = await Harness.open();
  const { apiKey: key } = await service.createAccount();
  const { apiKey: spent } = await service.createAccount({ minute: 0, day: 10 });
  const once = { "idempotency-key": "1" };
  const exchanges: readonly [status: number, target: string, init?: HarnessRequest][] = [
    [201, "POST /v1/pets", { json: PET, headers: once }],
    [201, "POST /v1/pets", { json: PET, headers: once }],
    [422, "POST /v1/pets", { json: { ...PET, name: "Tom" }, headers: once }],
    [201, "POST /v1/pets", { json: PET }],
    [202, "POST /v1/messages", { json: { message: "Hello" } }],
    [200, "GET /v1/pets?limit=1"],
    [304, "GET /v1/pets?limit=1", { headers: { "if-none-match": "*" } }],
    [200, "GET /v1/pets/1"],
    [200, "PATCH /v1/pets/1", { json: { name: "Tom" } }],
    [204, "DELETE /v1/pets/1"],
    [400, "GET /v1/pets", { headers: { host: "a/b" } }],
    [401, "GET /v1/pets", { key: "" }],
    [401, "GET /v1/pets", { key: "x" }],
    [404, "GET /v1/pets/9"],
    [404, "GET /nothing"],
    [405, "PUT /v1/pets"],
    [411, "POST /v1/pets", { json: PET, headers: { "transfer-encoding": "chunked" } }],
    [413, "POST /v1/pets", { json: "x".repeat(65_536) }],
    [429, "GET /v1/pets", { key: spent }],
    [204, "OPTIONS /v1/pets"],
    [204, "OPTIONS /v1/pets", { headers: { "access-control-request-method": "GET" } }],
    [200, "GET /health"],
    [200, "GET /docs/deprecations"],
  ];
  const send = (target: string, init: HarnessRequest = {}) =>
    service.fetch(target, { key, ...init, headers: { ...headers, ...init.headers } });
  const responses: Response[] = [];
  for (const [status, target, init] of exchanges) {
    const response = await send(target, init);
    assertEquals([target, response.status], [target, status]);
    responses.push(response);
  }
  assertEquals(service.errors, []);
  service.expectsErrors = true;
  service.kv.getMany = () => Promise.reject(new Error());
  return [...responses, await send("GET /v1/pets")];
}
