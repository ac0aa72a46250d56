import {
  assert,
  assertEquals,
  assertGreaterOrEqual,
  assertMatch,
  assertRejects,
  assertStringIncludes,
} from "@std/assert";
import { accountKey, ACCOUNTS, ACCOUNTS_VERSION } from "../../src/accounts/account.ts";
import { ApiKeys } from "../../src/accounts/api_keys.ts";
import { openAccounts } from "../../src/accounts/plans.ts";
import { DAY, HOUR, MINUTE, pause } from "../../src/base/time.ts";
import { encodeJson } from "../../src/engine/mod.ts";
import { Transactions } from "../../src/engine/transactions.ts";
import { Permits } from "../../src/limits/permits.ts";
import { pardon, reset } from "../../src/limits/usage.ts";
import { type Catalogue, exists, resource, ResourceError } from "../../src/resource/mod.ts";
import { int64 } from "../../src/web/schema.ts";
import { assertError } from "../support/assertions.ts";
import { call, callAtOnce, tally, upTo } from "../support/client.ts";
import { operated, OPERATOR_TOKEN } from "../support/desk.ts";
import { Harness, RecordingService } from "../support/harness.ts";
import { addKnownAccounts, ALL, credentialFor, SAMPLES } from "../support/operations.ts";
import { BLUE, BOOKINGS, idIn, OF_ROOMS, Office } from "../support/office.ts";
import { assertConsistent } from "../support/stored_rows.ts";
import { HAMMER, KEYS, OF_THINGS, PLANS } from "../support/things.ts";
import { NOON } from "../support/time.ts";

Deno.test("remove() removes an account and its rows only if the condition holds", async () => {
  await using service = await Harness.open();
  const { account: { id }, apiKey } = await service.createAccount("free");
  for (const now of [NOON - 90 * DAY, NOON]) {
    service.now = now;
    await call(service, apiKey);
  }
  for (let count = 0; count < 2; count++) await service.accounts.rotate(id, HOUR, NOON);
  await service.app.close();
  const tables = ["accounts", "usage", "api_keys", "usage_days"];
  const counts = () => Promise.all(tables.map((table) => service.countRows(table)));

  assertEquals(await service.accounts.remove(id, ({ usage }) => usage.used === 0), false);
  assertEquals(await service.accounts.remove("acct_none", () => true), null);
  assertEquals(await counts(), [1, 1, 2, 1]);
  assertEquals(await service.accounts.remove(id, ({ usage }) => usage.used > 0), true);

  assertEquals(await counts(), [0, 0, 0, 0]);
  assertEquals((await call(service, apiKey)).code, "invalid_api_key");
});

Deno.test("ApiKeys.find() reads an account again if a change was noticed during the read", async () => {
  await using service = await RecordingService.open();
  const { store } = service;
  const { apiKey } = await service.createAccount();
  const clock = () => service.now;
  const transactions = new Transactions(store, clock);
  const permits = new Permits({ store, transactions, holders: ACCOUNTS, clock });
  const accounts = { key: ACCOUNTS_VERSION, version: "" };
  const keys = new ApiKeys({ store, accounts, environment: "staging", keys: KEYS, permits });
  service.disturbance = {
    read(keys) {
      if (keys.some(([table]) => table === "accounts")) accounts.version = "~";
    },
  };

  const isKnown = await keys.identify(apiKey);
  const owned = keys.known(apiKey);
  assert(owned);
  const found = await keys.find(owned, NOON);
  const again = keys.find(owned, NOON);

  assert(isKnown && found);
  assert(again instanceof Promise);
  assertEquals(await again, found);
});

Deno.test("service accepts a new key at once, regardless of MAX_STALENESS_MS", async () => {
  await using service = await RecordingService.open({ maxStalenessMs: 60_000 });
  await using other = service.beside();
  const { time } = service;
  const { account: { id }, apiKey } = await service.createAccount();
  await call(service, apiKey);
  const issued = await other.accounts.rotate(id, 0, NOON);
  service.disturbance = { read: () => pause(10) };

  const first = call(service, issued?.apiKey);
  // The key is known, but its account has not been read yet.
  await time.advance(15);
  const second = call(service, issued?.apiKey);

  assertEquals(tally(await time.until(Promise.all([first, second]), 1_000)), { 200: 2 });
});

Deno.test("getAccount() and getUsage() describe the key's account, and forbid caching", async () => {
  await using service = await Harness.open({ operatorToken: OPERATOR_TOKEN });
  const { account: { id }, apiKey: key } = await service.createAccount({ minute: 3, day: 9 });
  await callAtOnce(4, [service], key);
  service.now = NOON + DAY;

  const account = await service.fetch("GET /v1/account", { key });
  const usage = await service.fetch("GET /v1/account/usage?days=3", { key });
  const month = await service.fetch("GET /v1/account/usage", { key });
  const { out, err } = await operated(service.app.fetch, ["accounts", "usage", id, "--days", "2"]);

  for (const { headers } of [account, usage]) assertEquals(headers.get("cache-control"), "no-store");
  assertEquals(await account.json(), {
    id,
    name: "tests",
    plan: "enterprise",
    limits: { minute: 3, day: 9 },
    usage: {
      minute: { used: 1, reset: "2027-01-16T12:01:00.000Z" },
      day: { used: 1, reset: "2027-01-17T00:00:00.000Z" },
    },
    bannedUntil: null,
    createdAt: "2027-01-15T12:00:00.000Z",
    previousKeyExpiresAt: null,
    key: null,
  });
  const days = [["2027-01-16", 2, 0], ["2027-01-15", 3, 1], ["2027-01-14", 0, 0]];
  assertEquals(await usage.json(), days.map(([date, admitted, refused]) => ({ date, admitted, refused })));
  assertEquals((await month.json()).length, 30);
  assertEquals([out, err], [["2027-01-16\t3\t0", "2027-01-15\t3\t1"], ["date\tadmitted\trefused"]]);
});

Deno.test("getAccount() and getUsage() count used permits, not leased ones", async () => {
  await using service = await RecordingService.open();
  const { account: { id }, apiKey: key } = await service.createAccount({ minute: 1_000, day: 2_000 });
  await callAtOnce(50, [service], key);

  const account = await call(service, key, "GET /v1/account");
  const usage = await call(service, key, "GET /v1/account/usage?days=1");

  const { usage: { minute, day } } = Object(account.json);
  assertEquals([minute.used, day.used, Object(usage.json)[0].admitted], [51, 51, 52]);
  assert((await service.accounts.usage(id)).leased > 0);
});

Deno.test("service serves robots.txt, security.txt if it has a contact, and its document under PUBLIC_URL", async () => {
  const [contact, publicUrl] = ["mailto:security@things.example", "https://things.example/workshop"];
  await using service = await Harness.open({ securityContact: contact, publicUrl });
  await using silent = await Harness.open();

  const security = await service.fetch("GET /.well-known/security.txt");
  const robots = await service.fetch("GET /robots.txt");
  const missing = await service.fetch("GET /v1/nowhere");
  const document = await (await service.fetch("GET /v1/openapi.json")).json();

  assertEquals(missing.headers.get("link"), `<${publicUrl}/v1/openapi.json>; rel="service-desc"`);
  assertEquals(document.servers, [{ url: `${publicUrl}/v1` }]);
  assertEquals(await security.text(), `Contact: ${contact}\nExpires: 2028-01-15T12:00:00.000Z\n`);
  assertMatch(await robots.text(), /^Disallow: \/v1\/$/m);
  await assertError(await silent.fetch("GET /.well-known/security.txt"), 404, "not_found");
});

/** Closes Ann's account, and returns what deletes it. By default, a minute passes. */
async function closing(office: Office, ms = MINUTE): Promise<() => Promise<Response>> {
  const id = await office.idOf(office.ann);
  await office.operate(`POST /operator/v1/accounts/${id}/close`);
  office.now += ms;
  return () => office.operate(`DELETE /operator/v1/accounts/${id}`);
}

/** The numbers of rows of items, without those of rooms, and of hooks. */
async function countRows(office: Office): Promise<readonly [items: number, own: number]> {
  const items = await Array.fromAsync(office.kv.list({ prefix: ["items"] }));
  return [items.filter(({ key }) => key[1] !== "rooms").length, (await office.ownRows()).length];
}

Deno.test("deleteAccount() deletes nothing until a minute after the account was closed", async () => {
  await using office = await Office.open();
  await office.book(office.ann);
  const remove = await closing(office, 0);

  for (const [ms, seconds] of [[0, "60"], [1, "60"], [MINUTE - 1, "1"]] as const) {
    office.now = NOON + ms;
    const refused = await remove();
    assertEquals(refused.headers.get("retry-after"), seconds);
    await assertError(refused, 409, "account_open");
  }
  assertEquals(await countRows(office), [1, 1]);
  office.now = NOON + MINUTE;

  assertEquals((await remove()).status, 204);
  assertEquals(await countRows(office), [0, 0]);
});

Deno.test("deleteAccount() deletes what only the account can read, and frees what that held", async () => {
  await using office = await Office.open();
  const accountId = await office.idOf(office.ann);
  const json = { ...BLUE, accountId };
  const roomId = await idIn(await office.operate("POST /operator/v1/rooms", { json }));
  const confirmed = { state: "confirmed", roomId } as const;
  const bookingId = await idIn(await office.book(office.ann, confirmed));
  await Promise.all(upTo(250).map((count) => office.invite(office.ann, `${count}@b`, { bookingId })));
  await office.invite(office.ben, "c@d");
  const remove = await closing(office);

  assertEquals((await remove()).status, 204);

  assertEquals(await countRows(office), [1, 1]);
  assertEquals((await office.book(office.ben, confirmed)).status, 201);
  assertEquals((await office.invite(office.ben, "0@b")).status, 201);
  await assertConsistent(office.kv, OF_ROOMS.resources.filter(({ name }) => name !== "rooms"));
});

Deno.test("deleteAccount() deletes items that others refer to, and references of items that stay go on counting", async () => {
  const EVENTS = resource({
    name: "events",
    item: "Event",
    tag: { name: "Events", description: "All events" },
    noun: ["an event", "events"],
    fields: { bookingId: int64() },
    filters: [],
    readableBy: "everyone",
    writableBy: "owner",
    extend: [exists(BOOKINGS, "bookingId")],
    examples: { item: { bookingId: 1 }, change: {} },
  });
  await using office = await Office.open({
    catalogue: { ...OF_ROOMS, resources: [...OF_ROOMS.resources, EVENTS] },
  });
  const bookingId = await idIn(await office.book(office.ann));
  const id = await idIn(await office.fetch("POST /v1/events", { key: office.ann, json: { bookingId } }));
  const counts = async () => (await office.ownRows()).filter(([name]) => name.startsWith("events,"));
  const remove = await closing(office);

  assertEquals((await remove()).status, 204);
  assertEquals((await office.operate(`PATCH /operator/v1/bookings/${bookingId}`, { json: {} })).status, 404);
  assertEquals(await counts(), [[`events,exists(bookings, bookingId),${bookingId}`, 1]]);
  await office.operate(`DELETE /operator/v1/events/${id}`);

  assertEquals(await counts(), []);
});

Deno.test("an unused account that signed up stays if an operator has added an item for it", async () => {
  await using office = await Office.open();
  const made = await (await office.fetch("POST /v1/accounts", { json: { name: "me" } })).json();
  const json = { email: "a@b", accountId: made.id };
  await office.operate("POST /operator/v1/guests", { json });

  for (const sweep of office.app.sweeps) await sweep(office.now + 31 * DAY);

  const list = await office.fetch("GET /v1/guests", { key: made.apiKey });
  assertEquals((await list.json()).length, 1);
});

const { free, pro } = PLANS.limits;
/** A later release, with other limits of a plan and one plan fewer. */
const LATER: Catalogue = {
  ...OF_THINGS,
  plans: { limits: { free: { minute: 9, day: 99 }, pro }, signUp: "free", own: "enterprise" },
};

Deno.test.each<[fault: string, change: Partial<Catalogue>]>([
  [
    "The plan Gold must have a name of lower-case letters, digits, _ and -.",
    { plans: { ...PLANS, limits: { free, Gold: pro } } },
  ],
  [
    "The plan free must have limits from 1 to 1000000000000, not 0.",
    { plans: { ...PLANS, limits: { free: { minute: 0, day: 1 } } } },
  ],
  [
    "The plan basic of sign-up must have limits: add it to limits, or name another.",
    { plans: { ...PLANS, signUp: "basic" } },
  ],
  [
    "The plan pro must not have limits, because each of its accounts has its own: remove it from limits.",
    { plans: { ...PLANS, own: "pro" } },
  ],
  [
    "The key prefix A.s must be at most 12 lower-case letters and digits, such as my: keys then begin with my_live_.",
    { keyPrefix: "A.s" },
  ],
  ["The key prefix as must not be a former one, too: remove it from formerKeyPrefixes.", {
    formerKeyPrefixes: ["as"],
  }],
])("openAccounts() refuses a catalogue: %s", async (fault, change) => {
  await using service = await Harness.open();

  const { message } = await assertRejects(
    () => openAccounts(service.store, { ...OF_THINGS, ...change }),
    ResourceError,
  );

  assertEquals(message, fault);
});

Deno.test("openAccounts() refuses a release without a plan that an account has, until the account is moved", async () => {
  await using service = await Harness.open();
  const { account, account: { id } } = await service.createAccount("business");
  // More accounts than are read at a time, all before the one that has the plan.
  for (const number of upTo(500)) {
    await service.kv.set(accountKey(`acct_!${number}`), encodeJson({ ...account, plan: "pro" }));
  }
  const refused = () => assertRejects(() => openAccounts(service.store, LATER), ResourceError);

  const { message: ofUnknown } = await refused();
  await openAccounts(service.store, OF_THINGS);
  const { message } = await refused();
  await service.accounts.change(id, { plan: "pro", limits: pro });
  await openAccounts(service.store, LATER);

  assertEquals(ofUnknown, message);
  assertEquals(
    message,
    `Accounts have the plan business, such as ${id}, but this release does not declare it. Declare it in ` +
      "src/catalogue/plans.ts, or move these accounts first: deno task accounts plan ID PLAN.",
  );
});

Deno.test("accounts apply-plans gives open accounts the limits of their plans, and can be repeated", async () => {
  await using before = await Harness.open();
  const own = { minute: 7, day: 70 };
  const made = await Promise.all(
    (["free", "pro", own, "free"] as const).map((plan) => before.createAccount(plan)),
  );
  await Promise.all(upTo(120).map(() => before.createAccount("free")));
  const { account: { id: closed } } = await before.createAccount("free");
  await before.accounts.close(closed);
  await using later = before.beside({ catalogue: LATER, operatorToken: OPERATOR_TOKEN });
  const limits = () => Promise.all(made.map(async ({ apiKey }) => (await call(later, apiKey)).limit));
  const unchanged = await limits();

  const first = await operated(later.app.fetch, ["accounts", "apply-plans"]);
  const again = await operated(later.app.fetch, ["accounts", "apply-plans"]);

  assertEquals(first.err, ["Checked 125 accounts, changed 122."]);
  assertEquals(again.err, ["Checked 125 accounts, changed 0."]);
  assertEquals([unchanged, await limits()], [[60, 300, 7, 60], [9, 300, 7, 9]]);
  assertEquals((await later.accounts.find(closed))?.holder.limits, free);
});

Deno.test("applyPlans() gives an account that is moved meanwhile the limits of the plan that it has then", async () => {
  await using before = await Harness.open();
  const { account: { id } } = await before.createAccount("free");
  let moves = 0;
  await using later = before.beside({
    catalogue: LATER,
    operatorToken: OPERATOR_TOKEN,
    disturbance: {
      async commit(commit) {
        const concerned = commit.keys.some(([table, of]) => table === "accounts" && of === id);
        if (concerned && moves++ === 0) {
          await before.accounts.change(id, { plan: "pro", limits: free });
        }
        return await commit.apply();
      },
    },
  });

  const response = await later.fetch("POST /operator/v1/accounts/apply-plans", { key: OPERATOR_TOKEN });

  assertEquals(await response.json(), { checked: 1, changed: 1, next: null });
  const { plan, limits } = (await later.accounts.find(id))?.holder ?? {};
  assertEquals([moves, plan, limits], [2, "pro", LATER.plans.limits["pro"]]);
});

Deno.test("operations that return an API key refuse an Idempotency-Key", async () => {
  await using service = await Harness.open(ALL);
  const { apiKey } = await service.createAccount();
  await addKnownAccounts(service);
  const issuing = SAMPLES.filter(({ operation: { answers } }) => {
    return JSON.stringify(Object.values(answers).map(({ body }) => body?.definitions)).includes('"apiKey":{');
  });

  for (const { operation, target, request } of issuing) {
    const headers = { "idempotency-key": "1" };
    const response = await service.fetch(target, {
      ...request,
      ...credentialFor(operation, apiKey),
      headers,
    });
    await assertError(response, 400, "invalid_request", /^Idempotency-Key is not allowed here/);
  }

  assertGreaterOrEqual(issuing.length, 5);
});

Deno.test("keys with a former prefix stay valid, are hidden, and are no longer issued", async () => {
  await using before = await Harness.open({ catalogue: { ...OF_THINGS, keyPrefix: "old" } });
  const { apiKey: key } = await before.createAccount("free");
  await using after = before.beside();

  const response = await after.fetch("GET /v1/things", { key });
  const echoed = await after.fetch(`GET /v1/account?${key}=1`, { key });
  const rotated = await after.fetch("POST /v1/account/key", { key });

  assertEquals([key.slice(0, 9), response.status], ["old_test_", 200]);
  assertStringIncludes(await echoed.text(), "[secret]");
  assertStringIncludes((await rotated.json()).apiKey, "as_test_");
});

Deno.test("service keeps what a later version has added to the rows of accounts, usage and ids", async () => {
  await using service = await Harness.open();
  const { account: { id }, apiKey: key } = await service.createAccount();
  const add = async () => {
    assertEquals((await call(service, key, "POST /v1/things", { json: HAMMER })).status, 201);
    await service.app.close();
  };
  await add();
  const keys = [["accounts", id], ["usage", id], ["ids", "things"]] as const;
  const read = () =>
    Promise.all(keys.map(async (key) => {
      const { value } = await service.kv.get<Uint8Array>(key);
      return JSON.parse(new TextDecoder().decode(value ?? undefined));
    }));
  const [account, usage, ids] = await read();
  const surplus = [7, -1.5, null, "text", { more: [] }];
  const later = [{ ...account, badge: { since: 1.5 } }, [...usage, ...surplus], { ...ids, batch: 3 }];
  for (const [index, key] of keys.entries()) await service.kv.set(key, encodeJson(later[index]));

  for (const ms of [0, MINUTE, DAY]) {
    service.now += ms;
    await add();
  }
  await service.accounts.changeUsage(id, (usage) => reset(pardon(usage), service.now));
  for (const since of [service.now, null]) await service.accounts.suspend(id, since);
  await add();
  await service.accounts.rotate(id);
  await service.accounts.close(id);

  const [closed, used, next] = await read();
  assertEquals([closed.badge, closed.closedAt !== null, next.batch], [{ since: 1.5 }, true, 3]);
  assertEquals([used[2], used.slice(usage.length)], [1, surplus]);
});
