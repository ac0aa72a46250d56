import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { assertError } from "../support/assertions.ts";
import { type Commit, type CommitResult, disturbed } from "../support/fake_kv.ts";
import { HAMMER } from "../support/things.ts";
import { JSON_TYPE } from "../support/client.ts";
import { Workshop } from "../support/workshop.ts";
import { assertConsistent } from "../support/stored_rows.ts";

const DAY = 86_400_000;
const ONCE = { "idempotency-key": "once" };
const CREATE = "POST /v1/things";

function isReplay({ headers }: Response): boolean {
  return headers.get("idempotency-replayed") === "true";
}

Deno.test("createThing() replays its first reply", async () => {
  await using workshop = await Workshop.open();
  const first = await workshop.call(CREATE, { json: HAMMER, headers: ONCE });
  workshop.now += DAY - 1;

  const again = await workshop.call(CREATE, { json: HAMMER, headers: { "idempotency-key": '"once"' } });

  assertEquals([first.status, again.status], [201, 201]);
  assertEquals([isReplay(first), isReplay(again)], [false, true]);
  for (const name of ["content-type", "location", "content-location", "etag"]) {
    assertEquals(again.headers.get(name), first.headers.get(name));
  }
  assertNotEquals(again.headers.get("x-request-id"), first.headers.get("x-request-id"));
  assertEquals(await again.text(), await first.text());
});

Deno.test("createThing() creates another resource for a key that is 24 hours old", async () => {
  await using workshop = await Workshop.open();
  const other = { json: { ...HAMMER, more: 1 }, headers: ONCE };
  const first = await workshop.call(CREATE, { json: HAMMER, headers: ONCE });

  workshop.now += DAY;
  const second = await workshop.call(CREATE, other);
  workshop.now += DAY - 1;
  const replay = await workshop.call(CREATE, other);

  assertEquals([first, second, replay].map(isReplay), [false, false, true]);
  const text = await second.text();
  assertNotEquals(text, await first.text());
  assertEquals(await replay.text(), text);
});

Deno.test("createThing() creates only one resource for simultaneous requests to two processes", async () => {
  await using workshop = await Workshop.open();
  await using beside = workshop.beside();

  const responses = await Promise.all(
    Array.from(
      { length: 40 },
      (_, n) => (n % 2 ? workshop : beside).call(CREATE, { json: HAMMER, headers: ONCE }),
    ),
  );

  assertEquals(responses.map((response) => response.status), new Array(40).fill(201));
  assertEquals(responses.filter(isReplay).length, 39);
  assertEquals(new Set(await Promise.all(responses.map((response) => response.text()))).size, 1);
  await assertConsistent(workshop.kv);
});

Deno.test("createThing() refuses a key that was used with another body", async () => {
  await using workshop = await Workshop.open();
  const bodies = [{ json: HAMMER, headers: ONCE }, { json: { ...HAMMER, more: 1 }, headers: ONCE }];

  const replies = await Promise.all(
    bodies.map(async (body) => ({ body, response: await workshop.call(CREATE, body) })),
  );
  // Either may have been the first.
  const [first, other] = replies.toSorted((one, two) => one.response.status - two.response.status);
  assert(first && other);
  const later = await workshop.call(CREATE, other.body);
  const again = await workshop.call(CREATE, first.body);

  assertEquals([first.response.status, again.status], [201, 201]);
  for (const response of [other.response, later]) {
    assertEquals(isReplay(response), false);
    await assertError(response, 422, "idempotency_key_reused", /different body/);
  }
  assertEquals(await again.text(), await first.response.text());
});

Deno.test("service creates another resource for a different key or account, or without a key", async () => {
  await using workshop = await Workshop.open();
  const { apiKey } = await workshop.createAccount();
  const call = (headers: Record<string, string>, key = workshop.key) =>
    workshop.fetch(CREATE, { key, json: HAMMER, headers });

  const responses = [
    await call(ONCE),
    await call({ "idempotency-key": "Once" }),
    await call({ "idempotency-key": "twice" }),
    await call({}),
    await call({}),
    await call(ONCE, apiKey),
  ];

  assertEquals(responses.map(({ status }) => status), new Array(6).fill(201));
  assertEquals(responses.filter(isReplay), []);
  assertEquals(await workshop.ids(), [1, 2, 3, 4, 5, 6]);
});

Deno.test("createThing() replays after a key rotation, even if the thing was removed", async () => {
  await using workshop = await Workshop.open();
  const { account, apiKey } = await workshop.createAccount();
  const first = await workshop.fetch("POST /v1/things", { key: apiKey, json: HAMMER, headers: ONCE });
  await workshop.fetch("DELETE /v1/things/1", { key: apiKey });
  const { apiKey: key = "" } = await workshop.accounts.rotate(account.id) ?? {};

  const again = await workshop.fetch("POST /v1/things", { key, json: HAMMER, headers: ONCE });

  assertEquals([again.status, isReplay(again)], [201, true]);
  assertEquals(await again.text(), await first.text());
  assertEquals(await workshop.ids(), []);
});

Deno.test("createThing() creates one thing for each of many simultaneous keys of maximum length", async () => {
  await using workshop = await Workshop.open();
  const json = { ...HAMMER, name: "🐶".repeat(255) };
  const keys = Array.from({ length: 210 }, (_, n) => ({ "idempotency-key": `${n}`.padStart(255, "k") }));

  const responses = await Promise.all(
    keys.map((headers) => workshop.call("POST /v1/things", { json, headers })),
  );

  assertEquals(responses.map(({ status }) => status), new Array(210).fill(201));
  assertEquals(new Set(responses.map(({ headers }) => headers.get("location"))).size, 210);
});

Deno.test("createThing() accepts a key again after refusals, and rejects an invalid one", async () => {
  await using workshop = await Workshop.open();
  const { apiKey: key } = await workshop.createAccount({ minute: 3, day: 10 });
  const responses = [
    await workshop.fetch("POST /v1/things", { key, json: HAMMER, headers: { "idempotency-key": "a b" } }),
    await workshop.fetch("POST /v1/things", { key, body: "{", headers: { ...JSON_TYPE, ...ONCE } }),
    await workshop.fetch("POST /v1/things", { key, json: { ...HAMMER, name: 7 }, headers: ONCE }),
    await workshop.fetch("POST /v1/things", { key, json: HAMMER, headers: ONCE }),
    await workshop.fetch("POST /v1/things", { key: key.slice(1), json: HAMMER, headers: ONCE }),
  ];
  assertEquals(await workshop.ids(), []);
  workshop.now += 60_000;

  const response = await workshop.fetch("POST /v1/things", { key, json: HAMMER, headers: ONCE });

  assertEquals(responses.map(({ status }) => status), [400, 400, 400, 429, 401]);
  assertEquals([response.status, isReplay(response)], [201, false]);
});

Deno.test.each<[string, (commit: Commit) => Promise<unknown>, boolean]>([
  ["is lost", async () => {}, false],
  ["applies and its reply is lost", ({ apply }) => apply(), true],
])(
  "createThing() creates one thing if a commit %s and the client retries",
  async (_, beforeFailure, applies) => {
    using kv = await Deno.openKv(":memory:");
    let isBroken = true;
    const commit = async (commit: Commit): Promise<CommitResult> => {
      if (!isBroken || !commit.keys.some(([kind]) => kind === "items")) return await commit.apply();
      await beforeFailure(commit);
      throw new TypeError("connection reset");
    };
    await using workshop = await Workshop.on(disturbed(kv, { commit }));
    workshop.expectsErrors = true;

    const first = await workshop.call("POST /v1/things", { json: HAMMER, headers: ONCE });
    isBroken = false;
    const again = await workshop.call("POST /v1/things", { json: HAMMER, headers: ONCE });

    if (applies) assertEquals(first.status, 201);
    else await assertError(first, 503, "store_unavailable");
    assertEquals([again.status, isReplay(again)], [201, applies]);
    assertEquals((await workshop.ids()).length, 1);
  },
);
