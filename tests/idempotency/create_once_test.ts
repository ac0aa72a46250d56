import { assertEquals, assertNotEquals } from "@std/assert";
import { Harness } from "../harness.ts";
import { assertError, assertLimitHeaders } from "../http/assertions.ts";
import { listIds } from "../pets/catalogue.ts";

const REX = { name: "Rex", categoryId: 7 };
const DAY = 86_400_000;
const ONCE = { "idempotency-key": "once" };
const OPERATIONS = [
  ["POST /v1/pets", 201, REX],
  ["POST /v1/messages", 202, { message: "Hello" }],
] as const;

Deno.test.each(OPERATIONS)("%s replays its first reply", async (target, status, json) => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();
  const first = await service.fetch(target, { key, json, headers: ONCE });
  service.now += DAY - 1;

  const again = await service.fetch(target, { key, json, headers: ONCE });

  assertEquals([first.status, again.status], [status, status]);
  assertEquals(first.headers.get("idempotency-replayed"), null);
  assertEquals(again.headers.get("idempotency-replayed"), "true");
  for (const name of ["content-type", "location"]) {
    assertEquals(again.headers.get(name), first.headers.get(name));
  }
  assertNotEquals(again.headers.get("x-request-id"), first.headers.get("x-request-id"));
  assertLimitHeaders(again);
  assertEquals(await again.text(), await first.text());
});

Deno.test.each(OPERATIONS)(
  "%s makes another for a key that is 24 hours old",
  async (target, status, json) => {
    using service = await Harness.open();
    const { secret: key } = await service.issueKey();
    const first = await service.fetch(target, { key, json, headers: ONCE });
    service.now += DAY;

    const second = await service.fetch(target, { key, json: { ...json, more: 1 }, headers: ONCE });
    service.now += DAY - 1;
    const replay = await service.fetch(target, { key, json: { ...json, more: 1 }, headers: ONCE });

    assertEquals(second.status, status);
    assertEquals(second.headers.get("idempotency-replayed"), null);
    assertEquals(replay.headers.get("idempotency-replayed"), "true");
    const text = await second.text();
    assertNotEquals(text, await first.text());
    assertEquals(await replay.text(), text);
  },
);

Deno.test.each(OPERATIONS)("%s makes one of many at once, in two processes", async (target, status, json) => {
  using here = await Harness.open();
  const elsewhere = new Harness(here.kv);
  const { secret: key } = await here.issueKey();

  const responses = await Promise.all(
    Array.from(
      { length: 40 },
      (_, n) => (n % 2 ? here : elsewhere).fetch(target, { key, json, headers: ONCE }),
    ),
  );

  assertEquals(responses.map((response) => response.status), new Array(40).fill(status));
  const replayed = responses.filter(({ headers }) => headers.has("idempotency-replayed"));
  assertEquals(replayed.length, 39);
  assertEquals(new Set(await Promise.all(responses.map((response) => response.text()))).size, 1);
});

Deno.test.each(OPERATIONS)("%s refuses a key that came with another body", async (target, _, json) => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();
  const first = await service.fetch(target, { key, json, headers: ONCE });

  const other = await service.fetch(target, { key, json: { ...json, more: 1 }, headers: ONCE });
  const again = await service.fetch(target, { key, json, headers: ONCE });

  assertEquals(other.headers.get("idempotency-replayed"), null);
  assertLimitHeaders(other);
  await assertError(other, 422, "idempotency_key_reused", /another body/);
  assertEquals(await again.text(), await first.text());
});

Deno.test("createPet() makes one animal of two different ones at once with the same key", async () => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();

  const responses = await Promise.all(
    ["Rex", "Tom"].map((name) =>
      service.fetch("POST /v1/pets", { key, json: { ...REX, name }, headers: ONCE })
    ),
  );

  assertEquals(responses.map(({ status }) => status).sort(), [201, 422]);
  assertEquals(await listIds(service, key), [1]);
});

Deno.test("createPet() makes one animal each for many keys of the greatest length at once", async () => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();
  const json = { name: "🐶".repeat(255), categoryId: 7 };

  const responses = await Promise.all(
    Array.from(
      { length: 210 },
      (_, n) =>
        service.fetch("POST /v1/pets", {
          key,
          json,
          headers: { "idempotency-key": `${n}`.padStart(255, "k") },
        }),
    ),
  );

  assertEquals(responses.map(({ status }) => status), new Array(210).fill(201));
  assertEquals(new Set(responses.map(({ headers }) => headers.get("location"))).size, 210);
});
