import { assertEquals } from "@std/assert";
import { Harness } from "../harness.ts";
import { listIds } from "../pets/catalogue.ts";

const REX = { name: "Rex", categoryId: 7 };
const ONCE = { "idempotency-key": "once" };

Deno.test("createPet() takes a quoted key for the same as a bare one", async () => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();

  await service.fetch("POST /v1/pets", { key, json: REX, headers: { "idempotency-key": "once" } });
  const quoted = await service.fetch("POST /v1/pets", {
    key,
    json: REX,
    headers: { "idempotency-key": '"once"' },
  });

  assertEquals(quoted.headers.get("idempotency-replayed"), "true");
  assertEquals(await listIds(service, key), [1]);
});

Deno.test("createPet() makes another for another key, in another case, and without", async () => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();

  for (const headers of [ONCE, { "idempotency-key": "Once" }, { "idempotency-key": "twice" }, {}, {}]) {
    const response = await service.fetch("POST /v1/pets", { key, json: REX, headers });
    assertEquals(response.headers.get("idempotency-replayed"), null);
  }

  assertEquals(await listIds(service, key), [1, 2, 3, 4, 5]);
});

Deno.test("createOnce() keeps API keys and operations apart", async () => {
  using service = await Harness.open();
  const { secret: mine } = await service.issueKey();
  const { secret: theirs } = await service.issueKey();
  const json = { ...REX, message: "Hello" };

  const responses = [
    await service.fetch("POST /v1/pets", { key: mine, json, headers: ONCE }),
    await service.fetch("POST /v1/pets", { key: theirs, json, headers: ONCE }),
    await service.fetch("POST /v1/messages", { key: mine, json, headers: ONCE }),
  ];

  assertEquals(responses.map(({ status }) => status), [201, 201, 202]);
  assertEquals(responses.map(({ headers }) => headers.get("idempotency-replayed")), [null, null, null]);
  assertEquals(await listIds(service, mine), [1, 2]);
});

Deno.test("createOnce() replays to a key that was rotated since", async () => {
  using service = await Harness.open();
  const { key, secret } = await service.issueKey();
  await service.fetch("POST /v1/pets", { key: secret, json: REX, headers: ONCE });
  const rotated = await service.keys.rotate(key.id, 0, service.now);

  const again = await service.fetch("POST /v1/pets", {
    key: rotated?.secret ?? "",
    json: REX,
    headers: ONCE,
  });

  assertEquals(again.headers.get("idempotency-replayed"), "true");
});
