import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { generatedReference } from "../../src/accounts/account.ts";
import { IN_FLIGHT_LIMITS, InFlight } from "../../src/app/in_flight.ts";
import { createStores } from "../../src/app/stores.ts";
import { localFetch } from "../../src/operator/local.ts";
import { operatorOperations } from "../../src/operator/operations.ts";
import type { Part } from "../../src/operator/part.ts";
import type { Catalogue, Hook } from "../../src/resource/mod.ts";
import { assertError } from "../support/assertions.ts";
import { call, type HarnessRequest, nextTarget, upTo } from "../support/client.ts";
import { OPERATOR_TOKEN } from "../support/desk.ts";
import { carryOut, type Commit, fail } from "../support/fake_kv.ts";
import { Harness, RecordingService } from "../support/harness.ts";
import { BOOKINGS, OF_ROOMS, Office, ROOMS } from "../support/office.ts";
import { assertConsistent } from "../support/stored_rows.ts";
import { HAMMER } from "../support/things.ts";
import { NOON } from "../support/time.ts";

const TOKEN = "0123456789-abcdef~0123456789+abcdef=";
const READ_TOKEN = "a-token-of-an-operator-who-only-reads";
const ACCOUNTS = "/operator/v1/accounts";
const CREATE = `POST ${ACCOUNTS}`;
const NEW = { name: "Zoë & co" };

/** The service, and requests of its operator, who has the second of two tokens. */
class OperatedService extends Harness {
  static override async open(options = {}): Promise<OperatedService> {
    return new OperatedService(await Deno.openKv(":memory:"), {
      operatorTokens: [{ token: OPERATOR_TOKEN }, { token: TOKEN, operator: "ann" }],
      operatorReadTokens: [{ token: READ_TOKEN, operator: "bob-2" }, { token: `${READ_TOKEN}0` }],
      ...options,
    });
  }

  ask(target: string, json?: unknown): Promise<Response> {
    return this.fetch(target, { key: TOKEN, ...(json !== undefined && { json }) });
  }

  /** Sends a request that must succeed. Resolves to its JSON body. */
  async done(target: string, json?: unknown) {
    const response = await this.ask(target, json);
    assert(response.ok, `${target}: ${response.status}`);
    return await response.json();
  }

  /** The status of a request of a client, or the code of its error. */
  async answerTo(key: string): Promise<string | number> {
    const { status, code } = await call(this, key);
    return code || status;
  }
}

Deno.test("operators change nothing of a closed account: every such operation returns 404", async () => {
  await using service = await OperatedService.open();
  const { account: { id }, apiKey } = await service.createAccount("free");
  await call(service, apiKey);
  await service.app.close();
  await service.accounts.close(id);
  const stateOf = async () => [await service.accounts.find(id), await service.accounts.usage(id)];
  const before = await stateOf();

  for (
    const [target, json] of [
      ...["unban", "reset", "close"].map((name) => [`POST ${ACCOUNTS}/${id}/${name}`, undefined] as const),
      [`POST ${ACCOUNTS}/${id}/rotate`, {}],
      [`PATCH ${ACCOUNTS}/${id}`, { plan: "pro" }],
      [`PATCH ${ACCOUNTS}/${id}`, { suspended: true }],
    ] as const
  ) {
    await assertError(await service.ask(target, json), 404, "account_not_found");
    assertEquals([target, await stateOf()], [target, before]);
  }
});

Deno.test("service has operators' operations only with a token, without CORS and limit headers", async () => {
  await using closed = await Harness.open();
  await using service = await OperatedService.open();
  const headers = { origin: "https://things.example" };
  const preflight = { ...headers, "access-control-request-method": "POST" };

  for (
    const [target, request, status] of [
      [CREATE, { key: TOKEN, json: NEW, headers }, 201],
      [CREATE, { json: NEW, headers }, 401],
      [CREATE, { key: `${TOKEN}x`, json: NEW, headers }, 401],
      [CREATE, { key: TOKEN, json: {}, headers }, 400],
      [`PUT ${ACCOUNTS}`, { key: TOKEN, headers }, 405],
      [`OPTIONS ${ACCOUNTS}`, { headers: preflight }, 204],
      ["GET /operator/v1/openapi.json", { headers }, 401],
    ] satisfies [string, HarnessRequest, number][]
  ) {
    await assertError(await closed.fetch(target, request), 404, "not_found");
    const response = await service.fetch(target, request);
    const names = [...response.headers.keys()].filter((name) => /^access-control-|ratelimit/.test(name));
    assertEquals([target, response.status, names], [target, status, []]);
  }
});

Deno.test("service logs each operator's request with its id, who sent it and what it changed, but no secret", async () => {
  await using service = await OperatedService.open();
  const { account: { id }, apiKey } = await service.done(CREATE, { ...NEW, reference: "7" });
  const made: { account: { id: string } }[] = await service.done(`${CREATE}/batch`, {
    accounts: [{ name: "Bob" }, { name: "Eve", reference: "8" }],
  });
  const [plan, limits] = ["free", { minute: 60, day: 1_000 }];
  assertEquals(service.operations.map(({ ids, changed }) => [ids, changed]), [
    [[id], { ...NEW, reference: "7", plan, limits }],
    [made.map(({ account }) => account.id), {
      ...{ plan, limits },
      accounts: [{ name: "Bob", reference: undefined }, { name: "Eve", reference: "8" }],
    }],
  ]);
  await service.fetch("POST /v1/things", { key: apiKey, json: HAMMER });
  service.operations.length = 0;
  const pro = { plan: "pro", limits: { minute: 300, day: 10_000 } };
  const cases: [
    target: string,
    json: unknown,
    operation: string,
    ids: readonly string[],
    status: number,
    unknown?,
  ][] = [
    [`GET ${ACCOUNTS}`, undefined, "listAccounts", [], 200],
    [`GET ${ACCOUNTS}?state=Bob`, undefined, "listAccounts", [], 400],
    [`GET ${ACCOUNTS}/${id}`, undefined, "getAccount", [id], 200],
    [`GET ${ACCOUNTS}/${apiKey}`, undefined, "getAccount", [], 404],
    [`PATCH ${ACCOUNTS}/${id}`, { plan: "pro" }, "updateAccount", [id], 200, pro],
    [`PATCH ${ACCOUNTS}/${id}`, { suspended: true }, "updateAccount", [id], 200, { suspended: true }],
    [`PATCH ${ACCOUNTS}/${id}`, { suspended: true, ...{ plan: "pro" } }, "updateAccount", [id], 200],
    [`PATCH ${ACCOUNTS}/${id}`, { suspended: false }, "updateAccount", [id], 200, { suspended: false }],
    [`POST ${ACCOUNTS}/${id}/rotate`, {}, "rotateAccountKey", [id], 201, { graceSeconds: 0 }],
    [`POST ${ACCOUNTS}/${id}/reset`, undefined, "resetAccount", [id], 200],
    [
      ...["POST /operator/v1/things", { ...HAMMER, accountId: id }, "createOwnedThing"] as const,
      ...[["2", id], 201, ["name", "weight", "state", "isSpare"]] as const,
    ],
    [`DELETE ${ACCOUNTS}/${id}`, undefined, "deleteAccount", [id], 409],
    [`POST ${ACCOUNTS}/${id}/close`, undefined, "closeAccount", [id], 200, { closed: true }],
    ["PATCH /operator/v1/things/1", { name: "Bob", weight: HAMMER.weight }, "updateOwnedThing", ["1"], 200, [
      "name",
    ]],
    ["PATCH /operator/v1/things/1", { name: "Bob" }, "updateOwnedThing", ["1"], 200],
    ["DELETE /operator/v1/things/77", undefined, "deleteOwnedThing", [], 404],
  ];

  for (const [index, [target, json]] of cases.entries()) {
    service.now += 1_000;
    const headers = { "x-request-id": `r${index}` };
    await service.fetch(target, { key: TOKEN, headers, ...(json !== undefined && { json }) });
  }
  await service.fetch(`GET ${ACCOUNTS}`, { key: `${TOKEN}x` });

  const expected = cases.map(([, , operation, ids, status, changed], index) => {
    const time = new Date(NOON + 1_000 * (index + 1)).toISOString();
    const line = { time, id: `r${index}`, address: "192.0.2.1", operator: "ann", operation, ids };
    return { ...line, ...(changed !== undefined && { changed }), status };
  });
  assertEquals<unknown>(service.operations, expected);
  assertEquals(JSON.stringify(service.operations).includes("as_test_"), false);
});

Deno.test("service accepts GET and HEAD alone with a token of OPERATOR_READ_TOKEN, also without OPERATOR_TOKEN", async () => {
  await using service = await OperatedService.open();
  await using reading = await OperatedService.open({ operatorTokens: [] });
  let pulls = 0;

  for (const one of [service, reading]) {
    const { account: { id } } = await one.createAccount();
    const read = (target: string) => one.fetch(target, { key: READ_TOKEN });
    for (const target of [`GET ${ACCOUNTS}`, `HEAD ${ACCOUNTS}`, `GET ${ACCOUNTS}/${id}`, "GET /metrics"]) {
      assertEquals([target, (await read(target)).status], [target, 200]);
    }
    for (const target of [CREATE, `PATCH ${ACCOUNTS}/${id}`, `POST ${ACCOUNTS}/${id}/close`]) {
      const body = new ReadableStream({ pull: () => void pulls++ }, { highWaterMark: 0 });
      const response = await one.fetch(target, { key: READ_TOKEN, body });
      await assertError(response, 403, "read_only_token", /^This token can only read/);
    }
    await assertError(
      await one.fetch(`DELETE ${ACCOUNTS}/${id}`, { key: `${READ_TOKEN}0` }),
      403,
      "read_only_token",
    );
    assertEquals((await one.accounts.list()).map(({ holder }) => holder.closedAt), [null]);
    const lines = one.operations.map(({ operator = "", operation, status }) =>
      `${operator} ${operation} ${status}`
    );
    assertEquals(lines, [
      ...["bob-2 listAccounts 200", "bob-2 listAccounts 200", "bob-2 getAccount 200"],
      ...["bob-2 createAccount 403", "bob-2 updateAccount 403", "bob-2 closeAccount 403"],
      " deleteAccount 403",
    ]);
  }

  assertEquals([pulls, (await reading.ask(`GET ${ACCOUNTS}`)).status], [0, 401]);
});

Deno.test("service logs wrong operator tokens in one line a second, with their number", async () => {
  await using service = await RecordingService.open({ operatorToken: TOKEN });
  const send = async (address: string, target: string, key = "wrong") => {
    service.address = address;
    await service.time.until(service.fetch(target, { key }), 1_000);
  };
  const LIST = `GET ${ACCOUNTS}`;
  const line = (address: string, count: number) =>
    ({ time: new Date(NOON).toISOString(), event: "wrong_token", address, count }) as const;

  await send("192.0.2.1", LIST);
  assertEquals(service.events, [line("192.0.2.1", 1)]);
  for (let count = 0; count < 61; count++) await send("192.0.2.2", count % 2 ? LIST : "GET /metrics");
  await send("192.0.2.3", LIST, TOKEN);
  await service.time.until(service.fetch(LIST), 1_000);
  assertEquals(service.events.length, 1);
  await service.time.advance(1_000);
  assertEquals(service.events.slice(1), [line("192.0.2.2", 61)]);
  await service.time.advance(5_000);
  for (const address of ["192.0.2.4", "192.0.2.5"]) await send(address, `POST ${ACCOUNTS}`);
  await service.app.close();

  assertEquals(service.events.slice(2), [line("192.0.2.4", 1), line("192.0.2.5", 1)]);
});

Deno.test("service logs no change if the store does not confirm it", async () => {
  const commit = (one: Commit) => one.keys.some(([table]) => table === "items") ? fail() : carryOut(one);
  await using service = await OperatedService.open({ disturbance: { commit } });
  service.expectsErrors = true;

  const headers = { "idempotency-key": "once" };
  const response = await service.fetch("POST /operator/v1/things", { key: TOKEN, json: HAMMER, headers });

  assertEquals(response.status, 503);
  assertEquals(service.operations.map(({ status, changed }) => [status, changed]), [[503, undefined]]);
});

Deno.test("service logs no operator's request that it refuses before it knows the token", async () => {
  const inFlight = new InFlight({ ...IN_FLIGHT_LIMITS, capacity: 0 });
  await using service = await OperatedService.open({ inFlight });

  for (const key of [TOKEN, "nobody"]) {
    assertEquals((await service.fetch(`DELETE ${ACCOUNTS}/acct_1`, { key })).status, 503);
  }

  assertEquals(service.operations, []);
});

Deno.test("service charges wrong operator tokens to the address, reads no body, and returns 429 to the 61st", async () => {
  await using service = await OperatedService.open();
  const { apiKey } = await service.createAccount();
  let pulls = 0;

  for (let count = 0; count < 60; count++) {
    const key = [TOKEN.slice(1), apiKey, "", `${TOKEN},${TOKEN}`, `${TOKEN}, Bearer ${TOKEN}`][count % 5] ??
      "";
    const body = new ReadableStream({ pull: () => void pulls++ }, { highWaterMark: 0 });
    const response = await service.fetch(CREATE, { body, key });
    assertEquals(response.headers.get("www-authenticate"), 'Bearer realm="thing-store-operator"');
    await assertError(response, 401, "invalid_operator_token");
  }

  await assertError(await service.fetch(`GET ${ACCOUNTS}`, { key: "x" }), 429, "rate_limit_minute");
  assertEquals([(await service.ask(`GET ${ACCOUNTS}`)).status, pulls], [200, 0]);
});

Deno.test("service handles eight requests of operators at a time, of 1 MiB each, and lets 100 more wait", async () => {
  await using service = await OperatedService.open();
  const headers = { "content-type": "application/json" };
  const create = (body: BodyInit) => service.fetch(CREATE, { key: TOKEN, headers, body });
  const unfinished = Array.from({ length: 8 }, () => new TransformStream<Uint8Array, Uint8Array>());
  const [first, ...others] = unfinished.map(({ readable }) => create(readable));
  const waiting = upTo(100).map(() => service.ask(`GET ${ACCOUNTS}`));

  const refused = await service.ask(`GET ${ACCOUNTS}`);
  const unknown = await service.fetch(`GET ${ACCOUNTS}`, { key: `${TOKEN}x` });

  assertEquals(refused.headers.get("retry-after"), "1");
  await assertError(refused, 503, "overloaded", /Too many operators' requests/);
  await assertError(unknown, 401, "invalid_operator_token");
  await unfinished[0]?.writable.abort();
  await assertError(await first ?? refused, 400, "invalid_request");
  const statuses = await Promise.all(waiting.map(async (response) => (await response).status));
  assertEquals(new Set(statuses), new Set([200]));
  for (const { writable } of unfinished.slice(1)) await writable.close();
  for (const response of others) await assertError(await response, 400, "invalid_json");
  for (const [length, status] of [[1024 * 1024 - 2, 201], [1024 * 1024, 413]] as const) {
    assertEquals((await create(JSON.stringify(NEW).padEnd(length))).status, status);
  }
});

Deno.test("listAccounts() returns all accounts in pages, and filters them by state and plan", async () => {
  await using service = await OperatedService.open();
  for (let count = 0; count < 12; count++) {
    const accounts = Array.from({ length: 50 }, (_, number) => ({ name: `${count}-${number}` }));
    await service.done(`${CREATE}/batch`, { accounts, plan: count === 11 ? "pro" : "free" });
  }
  const all: { id: string; plan: string }[] = [];
  /** Follows the pages of a query. Resolves to their sizes. */
  const sizes = async (query: string) => {
    const found: number[] = [];
    all.length = 0;
    for (let next: string | undefined = `GET ${ACCOUNTS}?${query}`; next;) {
      const response = await service.ask(next);
      const page = await response.json();
      found.push(page.length);
      all.push(...page);
      next = nextTarget(response);
    }
    return found;
  };

  assertEquals(await sizes(""), [100, 100, 100, 100, 100, 100, 0]);
  assertEquals(all.map(({ id }) => id), [...new Set(all.map(({ id }) => id))].sort());
  assertEquals(await sizes("limit=500"), [500, 100]);
  await service.done(`PATCH ${ACCOUNTS}/${all.at(-1)?.id}`, { suspended: true });
  await service.done(`POST ${ACCOUNTS}/${all[0]?.id}/close`);
  assertEquals((await sizes("plan=pro&limit=7")).every((size) => size <= 7), true);
  assertEquals([all.length, all.every(({ plan }) => plan === "pro")], [50, true]);
  assertEquals(await sizes("state=suspended"), [0, 1]);
  assertEquals(await sizes("state=closed&limit=1"), [1, 0]);
  assertEquals(await sizes("state=banned"), [0, 0]);
});

Deno.test("listAccounts() leaves out an account that cannot be read, and logs it", async () => {
  await using service = await Harness.open({ operatorToken: OPERATOR_TOKEN });
  service.expectsErrors = true;
  const made = await Promise.all(upTo(3).map(() => service.createAccount()));
  const [first, second = "", third] = made.map(({ account: { id } }) => id).sort();
  await service.kv.set(["accounts", second], new TextEncoder().encode("{"));
  const list = async (target: string) => {
    const page = await service.fetch(target, { key: OPERATOR_TOKEN });
    return [(await page.json()).map(({ id }: { id: string }) => id), nextTarget(page)];
  };
  const next = `GET /operator/v1/accounts?limit=2&cursor=${second}`;

  assertEquals(await list("GET /operator/v1/accounts?limit=2"), [[first], next]);
  assertEquals(await list(next), [[third], undefined]);

  assertEquals(service.errors.map(({ route, reason }) => [route, reason]), [
    ["accounts", `The account ${second} cannot be read: A row of accounts is not JSON`],
  ]);
});

Deno.test("operators' operations return 400 to an invalid request, and change nothing", async () => {
  await using service = await OperatedService.open();
  const { account: { id } } = await service.createAccount("free");
  const change = `PATCH ${ACCOUNTS}/${id}`;
  const before = await Array.fromAsync(service.kv.list({ prefix: [] }));

  for (
    const [target, json, message] of [
      [CREATE, { name: "a", plan: "gold" }, "The field plan must be one of free, pro, business, enterprise."],
      [CREATE, { name: "a", limits: { minute: 1, day: 1 } }, "The field limits is for the enterprise plan"],
      [CREATE, { name: "a", plan: "enterprise" }, "The fields limits.minute and limits.day are required"],
      [CREATE, { name: "a\n" }, "The field name must have"],
      [CREATE, { name: "a", reference: "ä" }, "The field reference must have only visible ASCII characters."],
      [`${CREATE}/batch`, { accounts: [NEW, { name: " " }] }, "The field accounts[1].name must have"],
      [change, { limits: { minute: 1 } }, "The field limits is for the enterprise plan; the free plan"],
      [change, { plan: "enterprise", limits: { minute: 1 } }, "The field limits.day is required for"],
      [`${CREATE}/${id}/rotate`, { graceSeconds: -1 }, "The field graceSeconds must be an integer"],
      [`GET ${ACCOUNTS}?cursor=acct_1`, undefined, "cursor must be a cursor from a Link header"],
    ] as const
  ) {
    const response = await service.ask(target, json);
    assertStringIncludes((await response.clone().json()).message, message);
    await assertError(response, 400, "invalid_request");
  }

  assertEquals(await Array.fromAsync(service.kv.list({ prefix: [] })), before);
});

Deno.test("updateAccount() changes plan, limits and suspension at the next request", async () => {
  await using service = await OperatedService.open();
  const { account: { id }, apiKey } = await service.done(CREATE, NEW);
  const change = (json: object) => service.done(`PATCH ${ACCOUNTS}/${id}`, json);

  for (
    const [json, policy] of [
      [{}, "q=60,q=1000"],
      [{ plan: "pro" }, "q=300,q=10000"],
      [{ plan: "enterprise", limits: { minute: 5, day: 50 } }, "q=5,q=50"],
      [{ limits: { day: 70 } }, "q=5,q=70"],
    ] as const
  ) {
    await change(json);
    const { headers } = await call(service, apiKey);
    assertEquals(headers.get("ratelimit-policy")?.match(/q=\d+/g)?.join(), policy);
  }
  const suspended = await change({ suspended: true });
  assertEquals(await service.answerTo(apiKey), "account_suspended");
  service.now += 1_000;
  const again = await change({ suspended: true, plan: "business" });
  const resumed = await change({ suspended: false });

  assertEquals(await service.answerTo(apiKey), 200);
  assertEquals([suspended.state, suspended.suspendedAt], ["suspended", new Date(NOON).toISOString()]);
  assertEquals([again.suspendedAt, again.plan], [suspended.suspendedAt, "business"]);
  assertEquals([resumed.state, resumed.suspendedAt], ["active", null]);
});

const REFERRED = { ...NEW, reference: "customer-7" };

Deno.test.each<[path: string, json: object]>([["", REFERRED], ["/batch", { accounts: [REFERRED] }]])(
  "POST /accounts%s creates no second account with a reference, until it is deleted",
  async (path, json) => {
    await using service = await OperatedService.open();
    const ask = async () => {
      const body = await (await service.ask(`${CREATE}${path}`, json)).json();
      return path === "" ? { outcome: body.code ?? "created", ...body } : body[0];
    };
    const first = await ask();
    const { id, reference } = first.account;

    for (const target of ["GET", "POST /close", "DELETE"]) {
      const again = await ask();
      const exists = path === "" ? "account_exists" : "exists";
      assertEquals([again.outcome, again.accountId, again.apiKey], [exists, id, undefined]);
      const [method, action = ""] = target.split(" ");
      service.now += 60_000;
      await service.ask(`${method} ${ACCOUNTS}/${id}${action}`);
    }
    await assertConsistent(service.kv);
    const second = await ask();

    assertEquals([reference, first.outcome, second.outcome], ["customer-7", "created", "created"]);
    assertEquals((await service.accounts.list()).length, 1);
    assertEquals(service.operations.slice(0, 2).map(({ ids }) => ids), [[id], [id]]);
    await assertConsistent(service.kv);
  },
);

Deno.test("createAccount() gives a reference to a new account if its account is gone without its row", async () => {
  await using service = await OperatedService.open();
  const { account: { id } } = await service.done(CREATE, REFERRED);
  await service.accounts.remove(id, () => true); // As 1.0.0 does.
  const find = () => service.done(`GET ${ACCOUNTS}?reference=customer-7`);

  assertEquals(await find(), []);
  const { account } = await service.done(CREATE, REFERRED);

  assertEquals((await find())[0].id, account.id);
  assertEquals(service.operations.at(-2)?.ids, [account.id]);
});

Deno.test("listAccounts() finds the account with a reference, and clients see none", async () => {
  await using service = await OperatedService.open();
  const made = await service.done(CREATE, { ...NEW, reference: "a&b" });
  await service.done(CREATE, NEW);

  for (
    const [query, count] of [
      ["reference=a%26b&limit=1", 1],
      ["reference=a", 0],
      ["reference=a%26b&plan=pro", 0],
      ["reference=a%26b&state=closed", 0],
    ] as const
  ) {
    const found: { id: string }[] = await service.done(`GET ${ACCOUNTS}?${query}`);
    assertEquals([query, found.map(({ id }) => id)], [query, [made.account.id].slice(0, count)]);
  }
  const shown = await service.fetch("GET /v1/account", { key: made.apiKey });
  assertEquals((await shown.text()).includes("a&b"), false);
});

Deno.test("updateAccount() renames an account, and gives it a reference once, in one transaction", async () => {
  await using service = await OperatedService.open();
  const { account: { id }, apiKey } = await service.done(CREATE, NEW);
  const { account: { id: other } } = await service.done(CREATE, REFERRED);
  const change = `PATCH ${ACCOUNTS}/${id}`;
  await service.answerTo(apiKey);

  for (
    const [reference, code] of [["customer-7", "account_exists"], ["8", ""], ["8", ""], [
      "9",
      "reference_set",
    ]]
  ) {
    const response = await service.ask(change, { name: `Zoë ${reference}`, reference });
    const body = await response.json();
    assertEquals([reference, body.code ?? "", body.accountId], [
      ...[reference, code],
      code === "account_exists" ? other : undefined,
    ]);
  }

  const shown = await (await service.fetch("GET /v1/account", { key: apiKey })).json();
  assertEquals(shown.name, "Zoë 8");
  const lines = service.operations.filter(({ operation }) => operation === "updateAccount");
  assertEquals(lines.map(({ ids, changed }) => [ids, changed]), [
    [[id, other], undefined],
    [[id], { name: "Zoë 8", reference: "8" }],
    ...[[[id], undefined], [[id], undefined]],
  ]);
  assertEquals((await service.done(`GET ${ACCOUNTS}?reference=8`)).map((one: { id: string }) => one.id), [
    id,
  ]);
  await assertError(await service.ask(CREATE, { ...NEW, reference: "8" }), 409, "account_exists", undefined, [
    "accountId",
  ]);
  await assertConsistent(service.kv);
});

Deno.test("updateAccount() replaces the reference that accounts create has sent, which nobody has chosen", async () => {
  await using service = await OperatedService.open();
  const { account } = await service.done(CREATE, { ...NEW, reference: generatedReference() });

  const { reference } = await service.done(`PATCH ${ACCOUNTS}/${account.id}`, { reference: "7" });

  assertEquals([account.reference, reference, await service.countRows("account_references")], [null, "7", 1]);
  assertEquals(service.operations.map(({ changed }) => changed), [
    { ...NEW, plan: "free", limits: { minute: 60, day: 1_000 } },
    { reference: "7" },
  ]);
  await assertConsistent(service.kv);
});

Deno.test("updateAccount() gives an account the reference of one that is gone without its row", async () => {
  await using service = await OperatedService.open();
  const gone = await service.done(CREATE, REFERRED);
  await service.accounts.remove(gone.account.id, () => true); // As 1.0.0 does.
  const { account: { id } } = await service.done(CREATE, NEW);

  const { reference } = await service.done(`PATCH ${ACCOUNTS}/${id}`, { reference: "customer-7" });

  assertEquals(reference, "customer-7");
  await assertConsistent(service.kv);
});

Deno.test("createAccounts() says what failed, or returns 503 if everything has, and may be repeated", async () => {
  await using service = await RecordingService.open({ operatorToken: TOKEN });
  service.expectsErrors = true;
  const ask = async (...references: string[]) => {
    const json = { accounts: references.map((reference) => ({ ...NEW, reference })) };
    const sent = service.fetch(`${CREATE}/batch`, { key: TOKEN, json });
    const body = await (await service.time.until(sent, 60_000)).json();
    return body.code ?? body.map(({ outcome }: { outcome: string }) => outcome);
  };
  service.disturbance = {
    commit: (commit) => commit.keys.some(([, id]) => id === "b") ? fail() : carryOut(commit),
  };

  const outcomes = [await ask("a", "b"), await ask("b")];
  service.disturbance = {};
  outcomes.push(await ask("a", "b"));

  assertEquals(outcomes, [["created", "failed"], "store_unavailable", ["exists", "created"]]);
});

Deno.test("deleteAccount() deletes the rows of a part together with the account, after its items", async () => {
  const key = ["mine", "row"];
  let isThere: boolean | undefined;
  const hook: Hook = {
    name: "mine",
    apply(rows) {
      isThere = rows.get(key) !== null;
    },
  };
  const catalogue: Catalogue = { ...OF_ROOMS, resources: [ROOMS, { ...BOOKINGS, extend: [hook] }] };
  await using office = await Office.open({ catalogue });
  const { store, kv } = office;
  const clock = () => office.now;
  const part: Part = {
    operations: () => [],
    removal: {
      errors: [],
      extend: (_id, removal) => ({
        ...removal,
        decide(rows, write, now) {
          if (rows.get(key)) write.delete(key);
          return removal.decide(rows, write, now);
        },
      }),
    },
  };
  await office.book(office.ann);
  await kv.set(key, new Uint8Array());
  const account = `/operator/v1/accounts/${await office.idOf(office.ann)}`;
  await office.operate(`POST ${account}/close`);
  office.now += 60_000;

  const stores = createStores({ store, catalogue, environment: "staging", clock, report() {} });
  const operations = operatorOperations({ ...{ store, catalogue }, ...stores, parts: [part] });
  const deleted = await localFetch(operations, { ...stores, clock })(account, { method: "DELETE" });

  assertEquals([deleted.status, isThere], [204, true]);
  assertEquals((await kv.get(key)).value, null);
});
