import { assertEquals } from "@std/assert";
import { Harness } from "../harness.ts";
import { assertError } from "../http/assertions.ts";
import { JSON_TYPE, listIds } from "../pets/catalogue.ts";

const REX = { name: "Rex", categoryId: 7 };
const ONCE = { "idempotency-key": "once" };

Deno.test.each(["", '""', "a b", "x".repeat(256)])(
  "createPet() refuses the key '%s' and stores nothing",
  async (bad) => {
    using service = await Harness.open();
    const { secret: key } = await service.issueKey();

    const response = await service.fetch("POST /v1/pets", {
      key,
      json: REX,
      headers: { "idempotency-key": bad },
    });

    await assertError(response, 400, "invalid_request", /Idempotency-Key must be 1 to 255 visible/);
    assertEquals(await listIds(service, key), []);
  },
);

Deno.test("createPet() takes a key again after failures", async () => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey({ minute: 2, day: 10 });
  const failures = [
    await service.fetch("POST /v1/pets", { key, body: "{", headers: { ...JSON_TYPE, ...ONCE } }),
    await service.fetch("POST /v1/pets", { key, json: { ...REX, categoryId: "7" }, headers: ONCE }),
    await service.fetch("POST /v1/pets", { key, json: REX, headers: ONCE }),
    await service.fetch("POST /v1/pets", { key: key.slice(1), json: REX, headers: ONCE }),
  ];
  service.now += 60_000;

  const response = await service.fetch("POST /v1/pets", { key, json: REX, headers: ONCE });

  assertEquals(failures.map(({ status }) => status), [400, 400, 429, 401]);
  assertEquals(response.status, 201);
  assertEquals(response.headers.get("idempotency-replayed"), null);
  assertEquals(await listIds(service, key), [1]);
});

Deno.test("createPet() takes a key again after the store has failed", async () => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();
  const restore = breakCommitsTo(service.kv, "pets");
  const failure = await service.fetch("POST /v1/pets", { key, json: REX, headers: ONCE });
  restore();

  const response = await service.fetch("POST /v1/pets", { key, json: REX, headers: ONCE });

  await assertError(failure, 503, "store_unavailable");
  assertEquals(response.status, 201);
  assertEquals(response.headers.get("idempotency-replayed"), null);
  assertEquals(await listIds(service, key), [1]);
});

/** Makes commits with rows of the kind fail until the returned function is called. */
function breakCommitsTo(kv: Deno.Kv, kind: Deno.KvKeyPart): () => void {
  const { atomic } = kv;
  kv.atomic = () => {
    const operation = atomic.call(kv);
    const { set } = operation;
    operation.set = (key, ...rest) => {
      if (key[0] === kind) operation.commit = () => Promise.reject(new TypeError("disk full"));
      return set.call(operation, key, ...rest);
    };
    return operation;
  };
  return () => {
    kv.atomic = atomic;
  };
}
