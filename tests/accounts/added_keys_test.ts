// Keys that are added to an account, what they allow, and what ends them.
import { assert, assertEquals, assertMatch, assertNotEquals } from "@std/assert";
import { type Account, accountKey, ACCOUNTS_VERSION, apiKeyKey, hasKey } from "../../src/accounts/account.ts";
import { addedKeysOf, MAX_ADDED_KEYS, withAddedKeys } from "../../src/accounts/added_keys.ts";
import { hashApiKey } from "../../src/accounts/api_key.ts";
import { ApiKeys } from "../../src/accounts/api_keys.ts";
import { createKeySweep } from "../../src/accounts/key_sweep.ts";
import { sweepSignUps } from "../../src/accounts/sign_up.ts";
import { DAY, HOUR, pause } from "../../src/base/time.ts";
import { encodeJson } from "../../src/engine/mod.ts";
import { Transactions } from "../../src/engine/transactions.ts";
import { Versions } from "../../src/engine/versions.ts";
import { requireScope } from "../../src/service/mod.ts";
import { ApiError } from "../../src/web/error.ts";
import { assertError } from "../support/assertions.ts";
import {
  call,
  callAtOnce,
  getBanned,
  type HarnessRequest,
  JSON_TYPE,
  outcome,
  remainders,
  type Reply,
  tally,
  upTo,
} from "../support/client.ts";
import { OPERATOR_TOKEN } from "../support/desk.ts";
import { carryOut } from "../support/fake_kv.ts";
import { Harness, RecordingService } from "../support/harness.ts";
import { Office } from "../support/office.ts";
import { assertConsistent } from "../support/stored_rows.ts";
import { HAMMER, KEYS as FORM, PLANS } from "../support/things.ts";
import { NOON } from "../support/time.ts";

const KEYS = "GET /v1/account/keys";
const ADD = "POST /v1/account/keys";
const ROTATE = "POST /v1/account/key";
const CHALLENGE = 'Bearer error="insufficient_scope"';

/** An added key as responses show it. */
interface Shown {
  readonly id: string;
  readonly label: string;
  readonly scope: string;
  readonly collections: readonly string[] | null;
  readonly createdAt: string;
  readonly expiresAt: string | null;
  readonly apiKey: string;
}

/** Adds a key with the account's first one. */
async function add(service: Harness, key: string, chosen: object = {}): Promise<Shown> {
  const { status, json } = await call(service, key, ADD, { json: { label: "till", ...chosen } });
  assertEquals(status, 201, JSON.stringify(json));
  return json as Shown;
}

function listed(service: Harness, key: string): Promise<Omit<Shown, "apiKey">[]> {
  return call(service, key, KEYS).then(({ json }) => json as Shown[]);
}

/** The outcome of a request with each key, such as `200` or `403 key_scope`. */
function outcomesOf(service: Harness, keys: readonly string[], target?: string, request?: HarnessRequest) {
  return Promise.all(keys.map(async (key) => outcome(await call(service, key, target, request))));
}

function revoke(service: Harness, key: string, id: string): Promise<Reply> {
  return call(service, key, `DELETE /v1/account/keys/${id}`);
}

Deno.test("addKey() returns a key once, which has the limits of the account and can read by default", async () => {
  await using service = await Harness.open();
  const { apiKey: first } = await service.createAccount("free");

  const response = await service.fetch(ADD, { key: first, json: { label: "Zoë's till" } });
  const { apiKey, ...shown } = await response.json();

  assertEquals([response.status, response.headers.get("cache-control")], [201, "no-store"]);
  assertMatch(apiKey, /^as_test_[0-9A-Za-z]{38}$/);
  assertMatch(shown.id, /^key_[0-9A-Za-z]{16}$/);
  const createdAt = new Date(NOON).toISOString();
  const rest = { label: "Zoë's till", scope: "read", collections: null, createdAt, expiresAt: null };
  assertEquals(shown, { id: shown.id, ...rest });
  assertEquals(await listed(service, first), [shown]);
  const ofAdded = await call(service, apiKey, "GET /v1/account");
  assertEquals([ofAdded.limit, ofAdded.remaining], [60, 57]);
  const { createdAt: _, ...used } = shown;
  assertEquals(Object(ofAdded.json).key, used);
  assertEquals(Object((await call(service, first, "GET /v1/account")).json).key, null);
  assertEquals((await service.accounts.find(Object(ofAdded.json).id))?.holder.addedKeys?.keys.length, 1);
  await assertConsistent(service.kv);
});

Deno.test("an added key allows what its scope does, and is charged for what it does not", async () => {
  await using service = await Harness.open();
  const { apiKey: first } = await service.createAccount();
  const reading = await add(service, first, { label: "a" });
  const writing = await add(service, first, { label: "b", scope: "read/write" });
  const both = [reading.apiKey, writing.apiKey];
  const json = { json: HAMMER };

  assertEquals(await outcomesOf(service, both), ["200", "200"]);
  assertEquals(await outcomesOf(service, both, "POST /v1/things", json), ["403 key_scope", "201"]);
  assertEquals(await outcomesOf(service, both, "DELETE /v1/things/1"), ["403 key_scope", "204"]);
  const managing = [
    ...[KEYS, `DELETE /v1/account/keys/${reading.id}`, `DELETE /v1/account/keys/nonsense`],
    ...["POST /v1/account/key", "DELETE /v1/account"],
  ];
  for (const target of managing) {
    assertEquals([target, ...await outcomesOf(service, both, target)], [
      target,
      "403 key_scope",
      "403 key_scope",
    ]);
  }
  assertEquals(await outcomesOf(service, both, ADD, { json: {} }), ["403 key_scope", "403 key_scope"]);
  assertEquals(await outcomesOf(service, both, "GET /v1/nowhere"), ["404 not_found", "404 not_found"]);
  const notAllowed = "405 method_not_allowed";
  assertEquals(await outcomesOf(service, both, "PATCH /v1/account"), [notAllowed, notAllowed]);

  const refused = await call(service, reading.apiKey, "POST /v1/things", { body: "x", headers: JSON_TYPE });
  assertEquals(refused.headers.get("www-authenticate"), CHALLENGE);
  assertEquals(refused.json, {
    code: "key_scope",
    message: "This operation needs a key with the scope read/write.",
    status: 403,
  });
  const { remaining } = await call(service, reading.apiKey);
  assertEquals((await call(service, reading.apiKey, "POST /v1/things", json)).remaining, remaining - 1);
});

Deno.test("HEAD needs the scope of GET", async () => {
  await using service = await Harness.open();
  const { apiKey: first } = await service.createAccount();
  const { apiKey } = await add(service, first);

  const statuses = [];
  for (const target of ["HEAD /v1/things", "HEAD /v1/account", "HEAD /v1/account/keys"]) {
    statuses.push((await service.fetch(target, { key: apiKey })).status);
  }

  assertEquals(statuses, [200, 200, 403]);
});

Deno.test("a key that is restricted to collections reaches only operations on these, its account and usage", async () => {
  await using office = await Office.open();
  await office.book(office.ann);
  const ofRooms = await add(office, office.ann, { label: "a", collections: ["rooms"] });
  const ofBoth = await add(office, office.ann, {
    ...{ label: "b", scope: "read/write", collections: ["bookings", "rooms", "bookings"] },
  });
  const keys = [ofRooms.apiKey, ofBoth.apiKey];
  const denied = "403 key_scope";

  assertEquals([ofRooms.collections, ofBoth.collections], [["rooms"], ["bookings", "rooms"]]);
  assertEquals(await outcomesOf(office, keys, "GET /v1/rooms"), ["200", "200"]);
  assertEquals(await outcomesOf(office, keys, "GET /v1/bookings"), [denied, "200"]);
  assertEquals(await outcomesOf(office, keys, "DELETE /v1/bookings/1"), [denied, "204"]);
  assertEquals(await outcomesOf(office, keys, "GET /v1/guests"), [denied, denied]);
  assertEquals(await outcomesOf(office, keys, "GET /v1/account"), ["200", "200"]);
  assertEquals(await outcomesOf(office, keys, "GET /v1/account/usage"), ["200", "200"]);
  const message = async (target: string) => Object((await call(office, ofRooms.apiKey, target)).json).message;
  assertEquals(await message("GET /v1/bookings"), "This operation needs a key for bookings.");
});

Deno.test("requireScope() allows a restricted key only operations all of whose collections are in its list", () => {
  const key = { scope: "read/write", collections: ["a", "b"] };
  const isAllowed = (collections: readonly string[], isUnrestricted?: true) => {
    try {
      requireScope({ scope: "write", collections, ...(isUnrestricted && { isUnrestricted }) }, key);
      return true;
    } catch (error) {
      if (error instanceof ApiError) return false;
      throw error;
    }
  };

  assertEquals([["a"], ["b", "a"], ["a", "c"], []].map((some) => isAllowed(some)), [
    true,
    true,
    false,
    false,
  ]);
  assertEquals(isAllowed([], true), true);
});

/** Gives the added keys of an account other members, as a later release might. */
async function forge(service: Harness, id: string, members: object): Promise<void> {
  await service.accounts.change(id, {
    addedKeys: await service.accounts.find(id).then((state) => {
      assert(state?.holder.addedKeys);
      const { of, keys } = state.holder.addedKeys;
      return { of, keys: keys.map((key) => ({ ...key, ...members })) };
    }),
  });
}

Deno.test.each([
  [{ collections: [] }],
  [{ collections: ["gone"] }],
  [{ collections: ["things", "gone"], scope: "write" }],
  [{ scope: "" }],
  [{ scope: "constructor" }],
])("an added key whose row has %j allows no operation on things", async (members) => {
  await using service = await Harness.open();
  const { apiKey: first, account: { id } } = await service.createAccount();
  const { apiKey } = await add(service, first, { scope: "read/write" });
  await forge(service, id, members);

  assertEquals(await outcomesOf(service, [apiKey]), ["403 key_scope"]);
  assertEquals(await outcomesOf(service, [apiKey], "POST /v1/things", { json: HAMMER }), ["403 key_scope"]);
});

Deno.test.each<[object, string, RegExp]>([
  [{ collections: [] }, "collections", /must have at least one of rooms, bookings, guests/],
  [{ collections: ["rooms", "pets"] }, "collections[1]", /must be one of rooms, bookings, guests/],
  [{ scope: "write" }, "scope", /must be one of read, read\/write/],
  [{ scope: "manage" }, "scope", /must be one of/],
  [{ expiresAt: new Date(NOON).toISOString() }, "expiresAt", /must be in the future/],
  [{ expiresAt: "tomorrow" }, "expiresAt", /must be a time/],
  [{ label: "" }, "label", /must have 1 to 100 characters/],
  [{ label: "x".repeat(101) }, "label", /must have 1 to 100 characters/],
  [{ label: "a\u001b[2J" }, "label", /no control characters/],
  [{ label: "a\u202eb" }, "label", /no control characters/],
  [{ label: undefined }, "label", /is required/],
  [{ colections: ["rooms"] }, "colections", /did you mean collections/],
])("addKey() returns 400 to %j, and adds nothing", async (chosen, field, message) => {
  await using office = await Office.open();

  const refused = await office.fetch(ADD, { key: office.ann, json: { label: "till", ...chosen } });
  const accountId = await office.idOf(office.ann);
  const byOperator = await office.operate(`POST /operator/v1/accounts/${accountId}/keys`, {
    json: { label: "till", ...chosen },
  });

  for (const response of [refused, byOperator]) {
    assertEquals((await response.clone().json()).field, field);
    await assertError(response, 400, "invalid_request", message);
  }
  assertEquals(await listed(office, office.ann), []);
});

Deno.test("addKey() returns 409 with the id of the valid key that has the label, so that a lost key can be replaced", async () => {
  await using service = await Harness.open();
  const { apiKey: first } = await service.createAccount();
  const lost = await add(service, first, { expiresAt: new Date(NOON + HOUR).toISOString() });

  const again = await call(service, first, ADD, { json: { label: "till" } });
  assertEquals([again.status, again.json], [409, {
    code: "key_exists",
    message: `The key ${lost.id} has this label.`,
    status: 409,
    keyId: lost.id,
  }]);
  assertEquals((await revoke(service, first, lost.id)).status, 204);
  const found = await add(service, first, { expiresAt: null });
  assertEquals(await outcomesOf(service, [lost.apiKey, found.apiKey]), ["401 invalid_api_key", "200"]);

  await revoke(service, first, found.id);
  await add(service, first, { expiresAt: new Date(NOON + HOUR).toISOString() });
  service.now = NOON + HOUR;
  await add(service, first);
});

Deno.test("addKey() allows ten additions an hour, and then returns 429, which counts neither those that fail nor an operator's", async () => {
  await using service = await Harness.open();
  await using other = service.beside();
  const { apiKey: first, account: { id } } = await service.createAccount();
  for (const label of ["o1", "o2", "o3"]) await service.accounts.addKey(id, { label, scope: "read" });
  assertEquals((await call(service, first, ADD, { json: { label: "o1" } })).code, "key_exists");

  const replies = await Promise.all(
    upTo(13).map((label) => call(label % 2 ? service : other, first, ADD, { json: { label: `${label}` } })),
  );

  assertEquals(tally(replies), { 201: 10, "429 key_additions_limit": 3 });
  const refused = replies.find(({ status }) => status === 429);
  assertEquals(refused?.retryAfter, 3_600);
  assertEquals(refused?.headers.get("ratelimit-policy"), '"hour";q=10;w=3600');
  assertEquals((await listed(service, first)).length, 13);
  service.now = NOON + HOUR;
  await add(service, first);
});

Deno.test("addKey() returns 409 to the 21st key, and an expired one holds its place until the next addition", async () => {
  await using service = await Harness.open();
  const { apiKey: first, account: { id } } = await service.createAccount();
  for (const label of upTo(MAX_ADDED_KEYS - 1)) {
    await service.accounts.addKey(id, { label: `${label}`, scope: "read" });
  }
  const expiring = await add(service, first, { expiresAt: new Date(NOON + 1_000).toISOString() });
  const attempt = () => call(service, first, ADD, { json: { label: "one more" } });

  assertEquals((await attempt()).code, "too_many_keys");
  service.now = NOON + 1_000;
  assertEquals((await listed(service, first)).map(({ id }) => id).includes(expiring.id), true);
  assertEquals((await attempt()).status, 201);

  const left = await listed(service, first);
  assertEquals([left.length, left.some(({ id }) => id === expiring.id)], [MAX_ADDED_KEYS, false]);
  assertEquals((await attempt()).code, "key_exists");
  await assertConsistent(service.kv);
});

Deno.test("an added key is valid until its end, in every process, also with a lease in hand", async () => {
  await using service = await Harness.open();
  await using other = service.beside();
  const { apiKey: first } = await service.createAccount();
  const { apiKey } = await add(service, first, { expiresAt: new Date(NOON + 1_000).toISOString() });
  for (const process of [service, other]) await callAtOnce(9, [process], apiKey);

  service.now = other.now = NOON + 999;
  assertEquals(tally(await callAtOnce(2, [service, other], apiKey)), { 200: 2 });
  service.now = other.now = NOON + 1_000;
  assertEquals(tally(await callAtOnce(2, [service, other], apiKey)), { "401 invalid_api_key": 2 });
});

/** Sends the head of a creation. The function that it returns sends the body. */
function startAdding(service: Harness, key: string): { reply: Promise<Reply>; sendBody: () => void } {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  return {
    reply: call(service, key, "POST /v1/things", { body: readable, headers: JSON_TYPE }),
    sendBody: () => void new Blob([JSON.stringify(HAMMER)]).stream().pipeTo(writable),
  };
}

Deno.test("service writes nothing if an added key expires while a slow body arrives", async () => {
  await using service = await RecordingService.open();
  const { account: { id } } = await service.createAccount();
  const { apiKey } = await service.accounts.addKey(id, {
    label: "a",
    scope: "read/write",
    expiresAt: NOON + 1_500,
  });
  const { reply, sendBody } = startAdding(service, apiKey);
  await service.time.advance(1_600);
  service.now = NOON + 1_600;
  sendBody();

  assertEquals((await service.time.until(reply, 1_000)).code, "invalid_api_key");
});

Deno.test("revokeKey() is served 30 times an hour though limits are used up or the account is banned, and leaves the ten rotations", async () => {
  await using service = await Harness.open();
  const { apiKey: first, account: { id } } = await service.createAccount({ minute: 12, day: 99 });
  const added = [];
  for (const label of upTo(10)) added.push(await add(service, first, { label: `${label}` }));
  await callAtOnce(3, [service], first);
  assertEquals((await call(service, first)).code, "rate_limit_minute");

  const [one, two, ...others] = added;
  assert(one && two);
  assertEquals(outcome(await revoke(service, first, one.id)), "204");
  assertEquals(outcome(await revoke(service, first, one.id)), "404 key_not_found");
  await getBanned(service, first, 12);
  assertEquals(outcome(await revoke(service, first, two.id)), "204");
  for (const { id } of others) assertEquals((await revoke(service, first, id)).status, 204);
  const more = [];
  for (const _ of upTo(20)) more.push(await revoke(service, first, "nonsense"));
  assertEquals(tally(more), { "404 key_not_found": 19, "429 key_banned": 1 });

  assertEquals(
    await outcomesOf(service, added.map(({ apiKey }) => apiKey)),
    added.map(() => "401 invalid_api_key"),
  );
  const rotated = [];
  let key = first;
  for (const _ of upTo(10)) {
    const reply = await call(service, key, ROTATE);
    rotated.push(reply);
    key = Object(reply.json).apiKey ?? key;
  }
  assertEquals(tally(rotated), { 201: 10 });
  await service.app.close();
  assertEquals((await service.accounts.usage(id)).usedToday, 12);
});

Deno.test("an added key neither is spared nor uses up the spared requests of the first key", async () => {
  await using service = await Harness.open();
  const { apiKey: first } = await service.createAccount({ minute: 51, day: 99 });
  const { apiKey, id } = await add(service, first, { scope: "read/write" });
  const attempts = [ROTATE, `DELETE /v1/account/keys/${id}`];
  for (const [index, target] of attempts.entries()) {
    const count = [15, 35][index] ?? 0;
    assertEquals(tally(await callAtOnce(count, [service], apiKey, target)), { "403 key_scope": count });
  }

  for (const target of attempts) {
    for (const _ of upTo(40)) assertEquals((await call(service, apiKey, target)).code, "rate_limit_minute");
  }

  assertEquals((await revoke(service, first, id)).status, 204);
  assertEquals((await call(service, first, ROTATE)).status, 201);
});

Deno.test("rotateKey() without a grace ends every added key, and one with a grace keeps them", async () => {
  await using service = await Harness.open({ operatorToken: OPERATOR_TOKEN });
  const { apiKey: first, account: { id } } = await service.createAccount();
  const { apiKey: added, id: keyId } = await add(service, first);
  const expired = await add(service, first, { label: "b", expiresAt: new Date(NOON + 1).toISOString() });
  service.now = NOON + 1;
  const kept = [{ id: keyId, label: "till", scope: "read", createdAt: new Date(NOON).toISOString() }];

  const graceful = await call(service, first, ROTATE);
  const { apiKey: second, addedKeys } = Object(graceful.json);
  assertEquals([graceful.status, addedKeys], [201, kept]);
  service.now += 60_000;
  assertEquals(await outcomesOf(service, [first, added, second]), ["401 invalid_api_key", "200", "200"]);
  const byOperator = await call(service, OPERATOR_TOKEN, `POST /operator/v1/accounts/${id}/rotate`, {
    json: { graceSeconds: 60 },
  });
  assertEquals([Object(byOperator.json).addedKeys, Object(byOperator.json).endedKeys], [kept, 0]);
  assertEquals(await outcomesOf(service, [added]), ["200"]);

  const ending = await call(service, OPERATOR_TOKEN, `POST /operator/v1/accounts/${id}/rotate`);
  const { apiKey: third, ...ended } = Object(ending.json);
  assertEquals([ended.addedKeys, ended.endedKeys], [[], 1]);
  assertEquals(await outcomesOf(service, [second, added, third]), [
    ...["401 invalid_api_key", "401 invalid_api_key", "200"],
  ]);
  const again = await add(service, third);
  const last = await call(service, third, ROTATE, { json: { graceSeconds: 0 } });
  assertEquals(Object(last.json).addedKeys, []);
  assertEquals(await outcomesOf(service, [again.apiKey]), ["401 invalid_api_key"]);
  assertEquals(await service.countRows("api_keys"), 1);
  assertEquals((await listed(service, Object(last.json).apiKey)).length, 0);
  assertNotEquals(expired.id, keyId);
});

Deno.test("a key that is being replaced can do what the first key can, but add no keys", async () => {
  await using service = await Harness.open();
  const { apiKey: old } = await service.createAccount();
  const { id } = await add(service, old);
  const rotated = await call(service, old, ROTATE);

  const refused = await service.fetch(ADD, { key: old, json: { label: "other" } });
  assertEquals(refused.headers.get("www-authenticate"), CHALLENGE);
  await assertError(refused, 403, "key_scope", /not the key that it replaces/);
  assertEquals((await listed(service, old)).length, 1);
  assertEquals(Object((await call(service, old, "GET /v1/account")).json).key, null);
  assertEquals((await revoke(service, old, id)).status, 204);
  assertEquals((await call(service, old, ROTATE, { json: { graceSeconds: 0 } })).status, 201);
  assertEquals(await outcomesOf(service, [old, Object(rotated.json).apiKey]), [
    ...["401 invalid_api_key", "401 invalid_api_key"],
  ]);
});

Deno.test("rotating(), addingKey() and revokingKey() refuse added keys in their transactions", async () => {
  await using service = await Harness.open();
  const { account: { id }, apiKey: first } = await service.createAccount();
  const { key, apiKey } = await service.accounts.addKey(id, { label: "a", scope: "read/write" });
  const [own, added] = [hashApiKey(first), hashApiKey(apiKey)];

  assertEquals(await service.accounts.rotateBy(id, added), null);
  assertEquals(await service.accounts.revokeKey(id, key.id, added), null);
  const refusal = await service.accounts.addKeyBy(id, added).catch(({ kind }) => kind.code);
  assertEquals(refusal, "key_scope");
  assertEquals(await service.accounts.addKeyBy(id, "unknown"), null);
  assert(await service.accounts.rotateBy(id, own, HOUR));
  assert(await service.accounts.rotateBy(id, own, HOUR));
});

Deno.test("scope is decided with the key as charged, even if the same commit revokes it", async () => {
  await using service = await RecordingService.open({ operatorToken: OPERATOR_TOKEN });
  const { account: { id } } = await service.createAccount();
  const { apiKey: stranger } = await service.createAccount();
  const { key, apiKey } = await service.accounts.addKey(id, { label: "a", scope: "read" });
  for (const known of [apiKey, stranger]) await service.time.until(call(service, known), 1_000);
  await service.time.advance(5_000); // The leases are over: transactions take the next permits.
  service.disturbance = { commit: (commit) => pause(100).then(() => carryOut(commit)) };
  service.forget();

  const first = call(service, stranger);
  await service.time.advance(10);
  const admitted = call(service, apiKey, "POST /v1/things", { json: HAMMER });
  const revoked = call(service, OPERATOR_TOKEN, `DELETE /operator/v1/accounts/${id}/keys/${key.id}`);
  const replies = await service.time.until(Promise.all([first, admitted, revoked]), 1_000);

  assertEquals(replies.map(outcome), ["200", "403 key_scope", "204"]);
  assertEquals(service.commits.length, 2);
});

Deno.test("added keys of a suspended account get 403, and those of a closed one 401", async () => {
  await using service = await Harness.open();
  const { account: { id }, apiKey: first } = await service.createAccount();
  const { apiKey } = await add(service, first);

  await service.accounts.suspend(id, NOON);
  assertEquals(await outcomesOf(service, [apiKey]), ["403 account_suspended"]);
  await service.accounts.suspend(id, null);
  assertEquals(await outcomesOf(service, [apiKey]), ["200"]);
  await service.accounts.close(id);
  assertEquals(await outcomesOf(service, [apiKey]), ["401 invalid_api_key"]);
  await service.accounts.remove(id, () => true);
  assertEquals(await service.countRows("api_keys"), 0);
});

Deno.test("ApiKeys keeps more keys in memory than accounts, because an account can have several", async () => {
  await using service = await Harness.open();
  const versions = new Versions(service.store);
  const store = Object.assign(Object.create(service.store), {
    getMany: (keys: readonly Deno.KvKey[]) =>
      Promise.resolve(keys.map((key) => ({ key, value: encodeJson("acct_1"), versionstamp: "1" }))),
  });
  const keys = new ApiKeys({
    ...{ store, environment: "staging", keys: FORM, permits: service.app.permits },
    accounts: versions.watch(ACCOUNTS_VERSION),
  });

  await Promise.all(upTo(21_000).map((number) => keys.identify(`${number}`)));

  assertEquals([0, 20_999].map((number) => keys.known(`${number}`)?.accountId), ["acct_1", "acct_1"]);
});

Deno.test("two processes hold one limit over four keys, exactly", async () => {
  await using service = await Harness.open();
  await using other = service.beside();
  const { account: { id }, apiKey: first } = await service.createAccount({ minute: 100, day: 1_000 });
  const keys = [first];
  for (const label of ["a", "b", "c"]) {
    keys.push((await service.accounts.addKey(id, { label, scope: "read" })).apiKey);
  }

  const replies = (await Promise.all(keys.map((key) => callAtOnce(60, [service, other], key)))).flat();

  assertEquals(tally(replies), { 200: 100, "429 rate_limit_minute": 140 });
  assertEquals(remainders(replies).length, 100);
  await Promise.all([service, other].map(({ app }) => app.close()));
  assertEquals((await service.accounts.usage(id)).usedToday, 100);
});

Deno.test("the next request with a revoked key gets 401 in every process, whatever the processes hold", async () => {
  await using service = await Harness.open();
  await using other = service.beside();
  const { apiKey: first } = await service.createAccount();
  const outcomes: Reply[] = [];
  for (const label of upTo(10)) {
    const { apiKey, id } = await add(label % 2 ? service : other, first, { label: `${label}` });
    for (const process of [service, other]) await callAtOnce(5, [process], apiKey);
    await revoke(label % 3 ? service : other, first, id);
    outcomes.push(...await callAtOnce(24, [service, other], apiKey));
    service.address = other.address = `192.0.2.${label + 2}`;
  }

  assertEquals(tally(outcomes), { "401 invalid_api_key": 240 });
});

Deno.test("added keys are valid while a first key of their list is the first key or its stored predecessor", () => {
  const account = (keyHash: string, previous?: string): Account => ({
    ...{
      id: "acct_1",
      name: "a",
      environment: "staging",
      plan: "free",
      limits: PLANS.limits.free,
      signedUp: false,
    },
    ...{ createdAt: NOON, suspendedAt: null, closedAt: null, keyHash },
    previousKey: previous === undefined ? null : { hash: previous, expiresAt: NOON - DAY },
  });
  const key = { id: "key_1", label: "a", scope: "read", hash: "added", createdAt: NOON } as const;
  const of = (list: readonly string[], holder: Account) =>
    hasKey({ ...holder, addedKeys: { of: list, keys: [key] } }, "added", NOON);

  assertEquals(withAddedKeys(account("2", "1"), [key]).addedKeys, { of: ["2", "1"], keys: [key] });
  assertEquals(of(["1"], account("1")), true);
  assertEquals(of(["1"], account("2", "1")), true); // An older release has rotated with a grace, which has ended.
  assertEquals(of(["2", "1"], account("3", "1")), true); // With the predecessor, because the response was lost.
  assertEquals(of(["1"], account("2")), false); // Without a grace.
  assertEquals(of(["2", "1"], account("4", "3")), false);
  assertEquals(of([], account("1")), false);
  assertEquals(addedKeysOf(account("1")), []);
  assertEquals(
    hasKey({ ...account("1"), closedAt: NOON, addedKeys: { of: ["1"], keys: [key] } }, "added", NOON),
    false,
  );
});

Deno.test("a list of added keys that an older release has ended stays so, and the next addition replaces it", async () => {
  await using service = await Harness.open();
  const { account: { id }, apiKey: first } = await service.createAccount();
  const { apiKey: added } = await service.accounts.addKey(id, { label: "a", scope: "read" });
  // What an older release writes.
  const apiKey = FORM.create("staging");
  const hash = hashApiKey(apiKey);
  await service.accounts.change(id, { keyHash: hash, previousKey: null });
  await service.kv.set(apiKeyKey(hash), encodeJson(id));
  await service.kv.delete(apiKeyKey(hashApiKey(first)));

  assertEquals(await outcomesOf(service, [first, added, apiKey]), [
    ...["401 invalid_api_key", "401 invalid_api_key", "200"],
  ]);
  assertEquals(await listed(service, apiKey), []);
  await service.accounts.change(id, { name: "b" });
  assertEquals(await outcomesOf(service, [added]), ["401 invalid_api_key"]);
  await add(service, apiKey, { label: "a" });
  assertEquals(await outcomesOf(service, [added]), ["401 invalid_api_key"]);
  assertEquals(await service.countRows("api_keys"), 2);
});

Deno.test("sweepSignUps() keeps an account to which an operator has added a key", async () => {
  await using service = await Harness.open();
  const response = await service.fetch("POST /v1/accounts", { json: { name: "me" } });
  const { id } = await response.json();
  await service.accounts.addKey(id, { label: "a", scope: "read" });

  await sweepSignUps(
    service.store,
    (id, condition) => service.accounts.remove(id, condition),
    PLANS,
    NOON + 31 * DAY,
  );

  assert(await service.accounts.find(id));
  assertEquals(await service.countRows("sign_ups"), 0);
});

Deno.test("createKeySweep() removes rows of keys that their account does not have, 100 rows at each call", async () => {
  await using service = await Harness.open();
  const transactions = new Transactions(service.store, () => NOON);
  const sweep = createKeySweep(service.store, (removal) => transactions.run(removal));
  const { account: { id } } = await service.createAccount();
  const { key: { hash } } = await service.accounts.addKey(id, { label: "a", scope: "read" });
  await service.accounts.rotate(id, HOUR);
  const names = upTo(250).map((number) => `0 ${`${number}`.padStart(3, "0")}`); // Before all hashes.
  const known = names.filter((_, index) => index % 5 === 0);
  await service.accounts.change(id, Object({ ofLaterRelease: known }));
  for (const [index, name] of names.entries()) {
    await service.kv.set(apiKeyKey(name), encodeJson(index % 5 < 4 ? id : "acct_gone"));
  }
  const counts = [];

  for (const _ of upTo(4)) {
    assertEquals(await sweep(), false);
    counts.push(await service.countRows("api_keys"));
  }

  assertEquals(counts, [173, 93, 53, 53]);
  assert((await service.kv.get(apiKeyKey(hash))).versionstamp);
});

Deno.test("createKeySweep() keeps a key that is added after the sweep has read its account", async () => {
  await using service = await Harness.open();
  const { account } = await service.createAccount();
  const late = apiKeyKey("late");
  await service.kv.set(late, encodeJson(account.id));
  const sweep = createKeySweep(service.store, async (removal) => {
    await service.kv.set(accountKey(account.id), encodeJson({ ...account, ofLaterRelease: ["late"] }));
    return await new Transactions(service.store, () => NOON).run(removal);
  });

  await sweep();

  assert((await service.kv.get(late)).versionstamp);
});

Deno.test("the log names the added key of a request, and never its label", async () => {
  await using service = await Harness.open({ operatorToken: OPERATOR_TOKEN });
  const { account: { id: accountId }, apiKey: first } = await service.createAccount({ minute: 3, day: 9 });
  const path = `/operator/v1/accounts/${accountId}/keys`;
  const json = { label: "Zoë's secret", scope: "read", collections: ["things"] };
  const added = await call(service, OPERATOR_TOKEN, `POST ${path}`, { json });
  const { id, apiKey } = Object(added.json);
  service.accesses.length = 0;

  await call(service, apiKey);
  await call(service, apiKey, "POST /v1/things", { json: HAMMER });
  await call(service, first);
  await call(service, apiKey);
  await call(service, OPERATOR_TOKEN, `DELETE ${path}/${id}`);
  await call(service, apiKey);

  const logged = service.accesses.filter(({ route }) => route.startsWith("/v1"));
  assertEquals(logged.map(({ status, accountId, keyId }) => [status, accountId, keyId]), [
    [200, accountId, id],
    [403, accountId, id],
    [200, accountId, undefined],
    [429, accountId, id],
    [401, accountId, undefined],
  ]);
  assertEquals(service.operations.map(({ operation, ids, changed }) => ({ operation, ids, changed })), [
    {
      operation: "addAccountKey",
      ids: [accountId, id],
      changed: { addedKey: { id, scope: "read", collections: ["things"] } },
    },
    { operation: "revokeAccountKey", ids: [accountId, id], changed: { revokedKey: id } },
  ]);
  const all = JSON.stringify([service.accesses, service.operations]);
  assertEquals([all.includes("secret"), all.includes(apiKey)], [false, false]);
});
