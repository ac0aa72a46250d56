import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { MAX_WAITING } from "../../src/messages/message_store.ts";
import { assertError } from "../support/assertions.ts";
import { type Commit, type CommitResult, disturbed } from "../support/fake_kv.ts";
import type { Harness } from "../support/harness.ts";
import { JSON_TYPE, REX, Shop } from "../support/pets.ts";
import { assertConsistent } from "../support/stored_rows.ts";

const DAY = 86_400_000;
const ONCE = { "idempotency-key": "once" };
const OPERATIONS = [
  ["POST /v1/pets", 201, { ...REX, message: "Hello" }],
  ["POST /v1/messages", 202, { ...REX, message: "Hello" }],
] as const;

function isReplay({ headers }: Response): boolean {
  return headers.get("idempotency-replayed") === "true";
}

Deno.test.each(OPERATIONS)("%s replays its first reply", async (target, status, json) => {
  await using shop = await Shop.open();
  const first = await shop.call(target, { json, headers: ONCE });
  shop.now += DAY - 1;

  const again = await shop.call(target, { json, headers: { "idempotency-key": '"once"' } });

  assertEquals([first.status, again.status], [status, status]);
  assertEquals([isReplay(first), isReplay(again)], [false, true]);
  for (const name of ["content-type", "location", "content-location", "etag"]) {
    assertEquals(again.headers.get(name), first.headers.get(name));
  }
  assertNotEquals(again.headers.get("x-request-id"), first.headers.get("x-request-id"));
  assertEquals(await again.text(), await first.text());
});

Deno.test.each(OPERATIONS)(
  "%s creates another resource for a key that is 24 hours old",
  async (target, _, json) => {
    await using shop = await Shop.open();
    const other = { json: { ...json, more: 1 }, headers: ONCE };
    const first = await shop.call(target, { json, headers: ONCE });

    shop.now += DAY;
    const second = await shop.call(target, other);
    shop.now += DAY - 1;
    const replay = await shop.call(target, other);

    assertEquals([first, second, replay].map(isReplay), [false, false, true]);
    const text = await second.text();
    assertNotEquals(text, await first.text());
    assertEquals(await replay.text(), text);
  },
);

Deno.test.each(OPERATIONS)(
  "%s creates only one resource for simultaneous requests to two processes",
  async (target, status, json) => {
    await using shop = await Shop.open();
    await using beside = shop.beside();

    const responses = await Promise.all(
      Array.from({ length: 40 }, (_, n) => (n % 2 ? shop : beside).call(target, { json, headers: ONCE })),
    );

    assertEquals(responses.map((response) => response.status), new Array(40).fill(status));
    assertEquals(responses.filter(isReplay).length, 39);
    assertEquals(new Set(await Promise.all(responses.map((response) => response.text()))).size, 1);
    await assertConsistent(shop.kv);
  },
);

Deno.test.each(OPERATIONS)(
  "%s refuses a key that was used with another body",
  async (target, status, json) => {
    await using shop = await Shop.open();
    const bodies = [{ json, headers: ONCE }, { json: { ...json, more: 1 }, headers: ONCE }];

    const replies = await Promise.all(
      bodies.map(async (body) => ({ body, response: await shop.call(target, body) })),
    );
    // Either may have been the first.
    const [first, other] = replies.toSorted((one, two) => one.response.status - two.response.status);
    assert(first && other);
    const later = await shop.call(target, other.body);
    const again = await shop.call(target, first.body);

    assertEquals([first.response.status, again.status], [status, status]);
    for (const response of [other.response, later]) {
      assertEquals(isReplay(response), false);
      await assertError(response, 422, "idempotency_key_reused", /different body/);
    }
    assertEquals(await again.text(), await first.response.text());
  },
);

Deno.test("service creates another resource for a different key, account or operation, or without a key", async () => {
  await using shop = await Shop.open();
  const { apiKey } = await shop.createAccount();
  const json = { ...REX, message: "Hello" };
  const call = (headers: Record<string, string>, key = shop.key) =>
    shop.fetch("POST /v1/pets", { key, json, headers });

  const responses = [
    await call(ONCE),
    await call({ "idempotency-key": "Once" }),
    await call({ "idempotency-key": "twice" }),
    await call({}),
    await call({}),
    await call(ONCE, apiKey),
    await shop.call("POST /v1/messages", { json, headers: ONCE }),
  ];

  assertEquals(responses.map(({ status }) => status), [...new Array(6).fill(201), 202]);
  assertEquals(responses.filter(isReplay), []);
  assertEquals(await shop.ids(), [1, 2, 3, 4, 5, 6]);
});

Deno.test("createPet() replays after a key rotation, even if the animal was removed", async () => {
  await using shop = await Shop.open();
  const { account, apiKey } = await shop.createAccount();
  const first = await shop.fetch("POST /v1/pets", { key: apiKey, json: REX, headers: ONCE });
  await shop.fetch("DELETE /v1/pets/1", { key: apiKey });
  const { apiKey: key = "" } = await shop.accounts.rotate(account.id) ?? {};

  const again = await shop.fetch("POST /v1/pets", { key, json: REX, headers: ONCE });

  assertEquals([again.status, isReplay(again)], [201, true]);
  assertEquals(await again.text(), await first.text());
  assertEquals(await shop.ids(), []);
});

Deno.test("createPet() creates one animal for each of many simultaneous keys of maximum length", async () => {
  await using shop = await Shop.open();
  const json = { ...REX, name: "🐶".repeat(255) };
  const keys = Array.from({ length: 210 }, (_, n) => ({ "idempotency-key": `${n}`.padStart(255, "k") }));

  const responses = await Promise.all(keys.map((headers) => shop.call("POST /v1/pets", { json, headers })));

  assertEquals(responses.map(({ status }) => status), new Array(210).fill(201));
  assertEquals(new Set(responses.map(({ headers }) => headers.get("location"))).size, 210);
});

Deno.test("createMessage() replays to simultaneous requests if there is room for only one message", async () => {
  await using shop = await Shop.open();
  const { account, apiKey: key } = await shop.createAccount();
  await shop.kv.set(["messages_waiting", account.id], new Deno.KvU64(BigInt(MAX_WAITING - 1)));

  const responses = await Promise.all(
    Array.from(
      { length: 5 },
      () => shop.fetch("POST /v1/messages", { key, json: { message: "Hello" }, headers: ONCE }),
    ),
  );

  assertEquals(responses.map(({ status }) => status), new Array(5).fill(202));
  assertEquals(responses.filter(isReplay).length, 4);
});

Deno.test("createMessage() replays a message that another process has just queued in the last place", async () => {
  await using shop = await Shop.open();
  const { account, apiKey: key } = await shop.createAccount();
  await shop.kv.set(["messages_waiting", account.id], new Deno.KvU64(BigInt(MAX_WAITING - 1)));
  const send = (service: Harness) =>
    service.fetch("POST /v1/messages", { key, json: { message: "Hello" }, headers: ONCE });
  const replies: Response[] = [];
  const read = async (keys: readonly Deno.KvKey[]) => {
    const isFirst = replies.length === 0 && keys.some(([table]) => table === "messages_waiting");
    if (isFirst) replies.push(await send(shop));
  };
  await using other = shop.beside({ disturbance: { read } });

  replies.push(await send(other));

  assertEquals(replies.map(({ status }) => status), [202, 202]);
  assertEquals(replies.map(isReplay), [false, true]);
});

Deno.test("createPet() accepts a key again after refusals, and rejects an invalid one", async () => {
  await using shop = await Shop.open();
  const { apiKey: key } = await shop.createAccount({ minute: 3, day: 10 });
  const responses = [
    await shop.fetch("POST /v1/pets", { key, json: REX, headers: { "idempotency-key": "a b" } }),
    await shop.fetch("POST /v1/pets", { key, body: "{", headers: { ...JSON_TYPE, ...ONCE } }),
    await shop.fetch("POST /v1/pets", { key, json: { ...REX, name: 7 }, headers: ONCE }),
    await shop.fetch("POST /v1/pets", { key, json: REX, headers: ONCE }),
    await shop.fetch("POST /v1/pets", { key: key.slice(1), json: REX, headers: ONCE }),
  ];
  assertEquals(await shop.ids(), []);
  shop.now += 60_000;

  const response = await shop.fetch("POST /v1/pets", { key, json: REX, headers: ONCE });

  assertEquals(responses.map(({ status }) => status), [400, 400, 400, 429, 401]);
  assertEquals([response.status, isReplay(response)], [201, false]);
});

Deno.test.each<[string, (commit: Commit) => Promise<unknown>, boolean]>([
  ["is lost", async () => {}, false],
  ["applies and its reply is lost", ({ apply }) => apply(), true],
])(
  "createPet() creates one animal if a commit %s and the client retries",
  async (_, beforeFailure, applies) => {
    using kv = await Deno.openKv(":memory:");
    let isBroken = true;
    const commit = async (commit: Commit): Promise<CommitResult> => {
      if (!isBroken || !commit.keys.some(([kind]) => kind === "pets")) return await commit.apply();
      await beforeFailure(commit);
      throw new TypeError("connection reset");
    };
    await using shop = await Shop.on(disturbed(kv, { commit }));
    shop.expectsErrors = true;

    const first = await shop.call("POST /v1/pets", { json: REX, headers: ONCE });
    isBroken = false;
    const again = await shop.call("POST /v1/pets", { json: REX, headers: ONCE });

    if (applies) assertEquals(first.status, 201);
    else await assertError(first, 503, "store_unavailable");
    assertEquals([again.status, isReplay(again)], [201, applies]);
    assertEquals((await shop.ids()).length, 1);
  },
);
