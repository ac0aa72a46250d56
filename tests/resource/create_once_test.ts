import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { MAX_WAITING } from "../../src/messages/message_store.ts";
import { assertError } from "../support/assertions.ts";
import { type Commit, type CommitResult, disturbed } from "../support/fake_kv.ts";
import type { Harness } from "../support/harness.ts";
import { HAMMER } from "../support/things.ts";
import { JSON_TYPE } from "../support/client.ts";
import { Workshop } from "../support/workshop.ts";
import { assertConsistent } from "../support/stored_rows.ts";

const DAY = 86_400_000;
const ONCE = { "idempotency-key": "once" };
const OPERATIONS = [
  ["POST /v1/things", 201, { ...HAMMER, message: "Hello" }],
  ["POST /v1/messages", 202, { ...HAMMER, message: "Hello" }],
] as const;

function isReplay({ headers }: Response): boolean {
  return headers.get("idempotency-replayed") === "true";
}

Deno.test.each(OPERATIONS)("%s replays its first reply", async (target, status, json) => {
  await using workshop = await Workshop.open();
  const first = await workshop.call(target, { json, headers: ONCE });
  workshop.now += DAY - 1;

  const again = await workshop.call(target, { json, headers: { "idempotency-key": '"once"' } });

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
    await using workshop = await Workshop.open();
    const other = { json: { ...json, more: 1 }, headers: ONCE };
    const first = await workshop.call(target, { json, headers: ONCE });

    workshop.now += DAY;
    const second = await workshop.call(target, other);
    workshop.now += DAY - 1;
    const replay = await workshop.call(target, other);

    assertEquals([first, second, replay].map(isReplay), [false, false, true]);
    const text = await second.text();
    assertNotEquals(text, await first.text());
    assertEquals(await replay.text(), text);
  },
);

Deno.test.each(OPERATIONS)(
  "%s creates only one resource for simultaneous requests to two processes",
  async (target, status, json) => {
    await using workshop = await Workshop.open();
    await using beside = workshop.beside();

    const responses = await Promise.all(
      Array.from({ length: 40 }, (_, n) => (n % 2 ? workshop : beside).call(target, { json, headers: ONCE })),
    );

    assertEquals(responses.map((response) => response.status), new Array(40).fill(status));
    assertEquals(responses.filter(isReplay).length, 39);
    assertEquals(new Set(await Promise.all(responses.map((response) => response.text()))).size, 1);
    await assertConsistent(workshop.kv);
  },
);

Deno.test.each(OPERATIONS)(
  "%s refuses a key that was used with another body",
  async (target, status, json) => {
    await using workshop = await Workshop.open();
    const bodies = [{ json, headers: ONCE }, { json: { ...json, more: 1 }, headers: ONCE }];

    const replies = await Promise.all(
      bodies.map(async (body) => ({ body, response: await workshop.call(target, body) })),
    );
    // Either may have been the first.
    const [first, other] = replies.toSorted((one, two) => one.response.status - two.response.status);
    assert(first && other);
    const later = await workshop.call(target, other.body);
    const again = await workshop.call(target, first.body);

    assertEquals([first.response.status, again.status], [status, status]);
    for (const response of [other.response, later]) {
      assertEquals(isReplay(response), false);
      await assertError(response, 422, "idempotency_key_reused", /different body/);
    }
    assertEquals(await again.text(), await first.response.text());
  },
);

Deno.test("service creates another resource for a different key, account or operation, or without a key", async () => {
  await using workshop = await Workshop.open();
  const { apiKey } = await workshop.createAccount();
  const json = { ...HAMMER, message: "Hello" };
  const call = (headers: Record<string, string>, key = workshop.key) =>
    workshop.fetch("POST /v1/things", { key, json, headers });

  const responses = [
    await call(ONCE),
    await call({ "idempotency-key": "Once" }),
    await call({ "idempotency-key": "twice" }),
    await call({}),
    await call({}),
    await call(ONCE, apiKey),
    await workshop.call("POST /v1/messages", { json, headers: ONCE }),
  ];

  assertEquals(responses.map(({ status }) => status), [...new Array(6).fill(201), 202]);
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

Deno.test("createMessage() replays to simultaneous requests if there is room for only one message", async () => {
  await using workshop = await Workshop.open();
  const { account, apiKey: key } = await workshop.createAccount();
  await workshop.kv.set(["messages_waiting", account.id], new Deno.KvU64(BigInt(MAX_WAITING - 1)));

  const responses = await Promise.all(
    Array.from(
      { length: 5 },
      () => workshop.fetch("POST /v1/messages", { key, json: { message: "Hello" }, headers: ONCE }),
    ),
  );

  assertEquals(responses.map(({ status }) => status), new Array(5).fill(202));
  assertEquals(responses.filter(isReplay).length, 4);
});

Deno.test("createMessage() replays a message that another process has just queued in the last place", async () => {
  await using workshop = await Workshop.open();
  const { account, apiKey: key } = await workshop.createAccount();
  await workshop.kv.set(["messages_waiting", account.id], new Deno.KvU64(BigInt(MAX_WAITING - 1)));
  const send = (service: Harness) =>
    service.fetch("POST /v1/messages", { key, json: { message: "Hello" }, headers: ONCE });
  const replies: Response[] = [];
  const read = async (keys: readonly Deno.KvKey[]) => {
    const isFirst = replies.length === 0 && keys.some(([table]) => table === "messages_waiting");
    if (isFirst) replies.push(await send(workshop));
  };
  await using other = workshop.beside({ disturbance: { read } });

  replies.push(await send(other));

  assertEquals(replies.map(({ status }) => status), [202, 202]);
  assertEquals(replies.map(isReplay), [false, true]);
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
