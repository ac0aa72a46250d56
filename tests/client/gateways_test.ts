// What gateways see: valid requests and all responses of every operation match the documents.
import { assert, assertEquals } from "@std/assert";
import { ACCESS, BASE_PATH } from "../../src/service/mod.ts";
import { bodyTypeOf, isDocumented } from "../../src/web/openapi.ts";
import { type HarnessRequest, JSON_TYPE, requestTo } from "../support/client.ts";
import type { Harness } from "../support/harness.ts";
import { addKnownAccounts, ALL, credentialFor, type Sample, SAMPLES } from "../support/operations.ts";
import { EMPTY, FULL, OF_SPECIMENS } from "../support/specimens.ts";
import { Workshop } from "../support/workshop.ts";
import { documentAt, DOCUMENTS } from "./documents.ts";
import { GATEWAYS, openMock } from "./gateways.ts";

/** A request, with what is special about it. */
type Variant = readonly [what: string, target: string, request: HarnessRequest];

/** A valid request to the operation, and requests that get its other responses. */
function variantsOf({ operation, target, request: { json } }: Sample, key: string): Variant[] {
  const { query, headers, body, access } = operation;
  const credential = credentialFor(operation, key);
  const withBody = (json: unknown) => ({
    body: body && json !== undefined ? JSON.stringify(json) : null,
    headers: { ...(body && { "content-type": bodyTypeOf(operation) }) },
  });
  const valid = { ...credential, ...withBody(json) };
  const inHeader = (name: string, value: string): Variant[] =>
    name in headers
      ? [[`${name} ${value}`, target, { ...valid, headers: { ...valid.headers, [name]: value } }]]
      : [];
  return [
    ["valid", target, valid],
    ...(access === ACCESS.public ? [] : [["no credential", target, withBody(json)] as const]),
    ...inHeader("If-Match", '"a", "b"'),
    ...inHeader("If-None-Match", "*"),
    ...inHeader("If-None-Match", '"a"'),
    ...inHeader("Idempotency-Key", crypto.randomUUID()),
    ...inHeader("Prefer", "handling=strict"),
    ...("sort" in query ? [["all parameters", `${target}?limit=1&sort=-id`, valid] as const] : []),
    ...("limit" in query ? [["an invalid limit", `${target}?limit=0`, valid] as const] : []),
    ...(target.endsWith("/1") ? [["an unknown id", target.replace(/1$/, "99"), valid] as const] : []),
    ...(body
      ? [
        ["an unknown field", target, {
          ...credential,
          ...withBody({ ...Object(json), unknown: 1 }),
        }] as const,
        ["no field", target, { ...credential, ...withBody({}) }] as const,
      ]
      : []),
  ];
}

/** An item without large integers: Prism reads those of 64 bits, too, only up to 2^53 - 1. */
function small(item: Readonly<Record<string, unknown>>): string {
  const members = Object.entries(item)
    .map(([name, value]) => [name, typeof value === "bigint" ? Number.MAX_SAFE_INTEGER : value]);
  return JSON.stringify(Object.fromEntries(members));
}

/** Serves the service that `current` returns, which may be another for each request. */
function serve(current: () => Harness) {
  const options = { port: 0, hostname: "127.0.0.1", onListen() {} };
  return Deno.serve(options, (request, info) => current().app.fetch(request, info));
}

for (const [audience, path] of DOCUMENTS) {
  Deno.test(`the mock server of Prism answers ${audience} without a next page or a replay`, async () => {
    await using service = await Workshop.open(ALL);
    await using server = serve(() => service);
    const document = await documentAt(`http://127.0.0.1:${server.addr.port}${path}`, ALL.operatorToken);
    await using mock = await openMock(document);

    for (const sample of SAMPLES.filter(({ operation }) => isDocumented(operation, path))) {
      const { id } = sample.operation;
      const [[, target, request] = ["", "", {}]] = variantsOf(sample, "any");
      const response = await fetch(requestTo(mock.base, target.replace(path, ""), request));
      await response.body?.cancel();
      const { headers } = response;
      assertEquals([id, response.status, mock.violationsIn(headers)], [id, sample.status, []]);
      assertEquals([id, /rel="?next/.test(headers.get("Link") ?? "")], [id, false]);
      assertEquals([id, headers.get("Idempotency-Replayed") === "true"], [id, false]);
    }
  });
}

for (const [name, openGateway] of Object.entries(GATEWAYS)) {
  for (const [audience, path] of DOCUMENTS) {
    Deno.test(`${name} finds violations of the document for ${audience} only where the service returns 400`, async () => {
      await using first = await Workshop.open(ALL);
      let service = first;
      await using server = serve(() => service);
      const upstream = new URL(path, `http://127.0.0.1:${server.addr.port}`);
      await using gateway = await openGateway(await documentAt(upstream.href, ALL.operatorToken), upstream);
      const seen = new Set<string>();

      for (const sample of SAMPLES.filter(({ operation }) => isDocumented(operation, path))) {
        const { operation: { id }, status } = sample;
        for (let index = 0; index < variantsOf(sample, "").length; index++) {
          await using own = await Workshop.open(ALL);
          service = own;
          const { id: accountId } = await (await own.call("GET /v1/account")).json();
          await addKnownAccounts(own, accountId);
          await own.add({}, {});
          const [what, target, request] = variantsOf(sample, own.key)[index] ?? [];
          assert(target);
          const response = await fetch(requestTo(gateway.base, target.replace(path, ""), request));
          const text = await response.text();
          if (what === "valid") assertEquals([id, response.status, text], [id, status, text]);
          const violations = gateway.violationsIn(response.headers);
          seen.add(`${response.status} ${violations.length > 0}`);
          // Without a credential, a request does not match the document, either.
          if (response.status === 400 || what === "no credential") continue;
          assertEquals([id, what, violations], [id, what, []]);
        }
      }
      // The gateway has read the document.
      for (const outcome of ["200 false", "400 true"]) assert(seen.has(outcome), [...seen].join());
    });

    Deno.test(`${name} finds no violation if ${audience} send back an item with every kind of field as they read it`, async () => {
      await using service = await Workshop.open({ ...ALL, catalogue: OF_SPECIMENS });
      await using server = serve(() => service);
      const upstream = new URL(path, `http://127.0.0.1:${server.addr.port}`);
      await using gateway = await openGateway(await documentAt(upstream.href, ALL.operatorToken), upstream);
      const key = path === BASE_PATH ? service.key : ALL.operatorToken;
      const headers = { "content-type": "application/merge-patch+json" };

      for (const [index, item] of [small(FULL), small({ ...FULL, ...EMPTY })].entries()) {
        await service.call("POST /v1/specimens", { body: item, headers: JSON_TYPE });
        const list = await (await service.call(`GET ${path}/specimens?sort=-id&limit=1`, { key })).text();
        const [body = ""] = /\{.*\}/.exec(list) ?? [];
        for (const request of [{ body }, { body: small(EMPTY) }]) {
          const target = `PATCH /specimens/${index + 1}`;
          const response = await fetch(requestTo(gateway.base, target, { key, headers, ...request }));
          const text = await response.text();
          assertEquals([response.status, gateway.violationsIn(response.headers), text], [200, [], text]);
        }
      }
    });
  }
}
