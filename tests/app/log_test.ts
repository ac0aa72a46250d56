import { setImmediate } from "node:timers/promises";
import { assertEquals, assertMatch } from "@std/assert";
import { MAX_ROTATIONS } from "../../src/accounts/account.ts";
import { createLog, errorRecord, LineWriter, type Output } from "../../src/app/log.ts";
import { Metrics } from "../../src/app/metrics.ts";
import { Counter } from "../../src/base/prometheus.ts";
import { DAY } from "../../src/base/time.ts";
import { encodeJson } from "../../src/engine/row.ts";
import { usageKey } from "../../src/limits/usage.ts";
import { Invalid } from "../../src/web/schema.ts";
import { assertError } from "../support/assertions.ts";
import { JSON_TYPE } from "../support/client.ts";
import { Harness } from "../support/harness.ts";
import { KEYS } from "../support/things.ts";
import { NOON, VirtualTime } from "../support/time.ts";
import { Workshop } from "../support/workshop.ts";

const TOKEN = "the.operator's+token";
const TIME = "2027-01-15T12:00:00.000Z";
const ADDRESS = "192.0.2.1";
const ACCESS = {
  ...{ time: TIME, id: "r1", address: ADDRESS, method: "GET", route: "/", status: 200 },
  ...{ code: "", ms: 1, accountId: "" },
};
const OPERATION = { time: TIME, id: "r1", address: ADDRESS, operation: "listAccounts", ids: [], status: 200 };
const EVENT = { time: TIME, event: "ban", accountId: "acct_1", until: TIME } as const;
const ERROR = { time: TIME, id: "r1", route: "/", error: "TypeError", at: "src/app.ts:1" };

/** An output that stores lines after some turns of the event loop. */
class LateOutput implements Output {
  readonly lines: string[] = [];
  readonly #turns: number;

  constructor(turns: number) {
    this.#turns = turns;
  }

  async write(bytes: Uint8Array): Promise<number> {
    for (let turn = 0; turn < this.#turns; turn++) await setImmediate();
    this.lines.push(...new TextDecoder().decode(bytes).trimEnd().split("\n"));
    return bytes.length;
  }
}

/** A log to two outputs. */
function open(turns = { access: 1, errors: 1 }) {
  const [access, errors] = [new LateOutput(turns.access), new LateOutput(turns.errors)];
  const metrics = new Metrics();
  const log = createLog({ access, errors, secrets: [KEYS.secret, TOKEN], clock: () => NOON, metrics });
  return { access, errors, log, metrics };
}

Deno.test.each([{ access: 1, errors: 9 }, { access: 9, errors: 1 }])(
  "createLog() writes one JSON line per request, error, command and event, with delays of %j turns",
  async (turns) => {
    const { access, errors, log } = open(turns);

    log.access?.(ACCESS);
    log.error(ERROR);
    log.operator(OPERATION);
    log.event(EVENT);
    await log.flushed();

    assertEquals(access.lines, [JSON.stringify(ACCESS)]);
    assertEquals(errors.lines, [ERROR, OPERATION, EVENT].map((record) => JSON.stringify(record)));
  },
);

Deno.test("createLog() drops, counts and reports lines while a million characters wait", async () => {
  const { access, log, metrics } = open();

  for (let count = 0; count < 12; count++) log.access?.({ ...ACCESS, id: "x".repeat(99_999) });
  await log.flushed();
  log.access?.(ACCESS);
  await log.flushed();

  assertEquals(access.lines.slice(10), [`{"time":"${TIME}","dropped":2}`, JSON.stringify(ACCESS)]);
  assertMatch(metrics.logLinesDropped.text(), / 2\n$/);
});

/** An output whose writes complete on demand. */
class SlowOutput implements Output {
  readonly writes: string[] = [];
  readonly lines: LineWriter = new LineWriter(this, String, new Counter("lost_total", "Lost."));
  #length = 0;
  #resolve: (count: number) => void = () => {};

  write(bytes: Uint8Array): Promise<number> {
    this.writes.push(new TextDecoder().decode(bytes));
    const { promise, resolve } = Promise.withResolvers<number>();
    [this.#length, this.#resolve] = [bytes.length, resolve];
    return promise;
  }

  /** Completes the last write, or its first `count` bytes, and waits until the next one has started. */
  async complete(count: number = this.#length): Promise<void> {
    this.#resolve(count);
    await setImmediate();
  }
}

Deno.test("LineWriter writes waiting lines together in order, and flushed() waits for the last one", async () => {
  const output = new SlowOutput();
  const { lines, writes } = output;
  await lines.flushed();
  let flushed = false;

  lines.write("a");
  lines.write("b");
  assertEquals(writes, []);
  await output.complete();
  const flushing = lines.flushed().then(() => flushed = true);
  lines.write("c");
  lines.write("é");
  assertEquals(writes, ["a\nb\n"]);
  await output.complete();
  assertEquals([writes, flushed], [["a\nb\n", "c\né\n"], false]);
  await output.complete();
  await flushing;
});

Deno.test("LineWriter.write() continues after a partial write", async () => {
  const output = new SlowOutput();

  output.lines.write("abcdef");
  for (const count of [0, 2, 4, 1]) await output.complete(count);

  assertEquals(output.writes, ["abcdef\n", "cdef\n", "\n"]);
});

Deno.test("LineWriter.write() tries the next line after a failure and counts the lost lines", async () => {
  const lost = new Counter("lost_total", "Lost.");
  const tried: string[] = [];
  const write = (bytes: Uint8Array) => {
    tried.push(new TextDecoder().decode(bytes));
    return Promise.reject(new Deno.errors.BrokenPipe());
  };
  const lines = new LineWriter({ write }, String, lost);

  for (const some of [["a", "b"], ["c"]]) {
    for (const line of some) lines.write(line);
    await lines.flushed();
  }

  assertEquals(tried, ["a\nb\n", "c\n"]);
  assertMatch(lost.text(), / 3\n$/);
});

Deno.test.each([
  ["a string", "secret", "string"],
  ["an error whose cause is a string", new Error("secret", { cause: "secret" }), "Error"],
  [
    "an error with a cause",
    new RangeError("secret", { cause: new TypeError("secret") }),
    "RangeError (TypeError)",
  ],
])("errorRecord() contains only the names of %s", (_, thrown, error) => {
  assertEquals(errorRecord(thrown, NOON, "/", "r1"), { time: TIME, id: "r1", route: "/", error, at: "" });
});

Deno.test("errorRecord() contains the first source location of an error or its cause in src of the service", () => {
  const sources = import.meta.resolve("../../src/");
  const others = "  at f (file:///srv/src/app.ts:1:1)\n  at g (file:///srv/w-src/tests/time.ts:2:1)";
  const cause = new Error();
  cause.stack =
    `Error: secret\n${others}\n  at f (${sources}kv/store.ts:12:3)\n  at g (${sources}app.ts:1:1)`;

  assertEquals(errorRecord(cause, NOON, "/").at, "src/kv/store.ts:12");
  assertEquals(errorRecord(new Error("", { cause }), NOON, "/").at, "src/kv/store.ts:12");
});

Deno.test("createLog() removes secrets from a reason before truncating it to 200 characters", async () => {
  const { errors, log } = open();

  log.error({ ...ERROR, reason: `${"x".repeat(190)}${TOKEN} is not known here` });
  log.error({ ...ERROR, reason: `${"x".repeat(188)} ${"as_test_"}${"A1".repeat(19)}${"y".repeat(99)}` });
  await log.flushed();

  const reasons = errors.lines.map((line) => JSON.parse(line).reason);
  assertEquals(reasons, [`${"x".repeat(190)}[secret] i`, `${"x".repeat(188)} [secret]`]);
});

Deno.test("service returns a bare 500 for an internal error, and logs where it was thrown", async () => {
  await using service = await Harness.open();
  service.expectsErrors = true;
  const { account: { id }, apiKey: key } = await service.createAccount();
  await service.kv.set(usageKey(id), new TextEncoder().encode("confidential"));

  const response = await service.fetch("GET /v1/things/1", { key, headers: { "x-request-id": "r1" } });

  assertEquals(response.headers.get("x-request-id"), "r1");
  await assertError(response, 500, "internal_error", /^Something went wrong in the service\.$/);
  const [{ at = "", detail: _, ...record } = {}, ...others] = service.errors;
  assertEquals(others, []);
  const reason = "A row of usage is not JSON";
  assertEquals(record, { time: TIME, id: "r1", route: "/v1/things/:thingId", error: "CorruptRow", reason });
  assertMatch(at, /^src\/engine\/row\.ts:\d+$/);
});

Deno.test("service logs KV's own message if KV fails, and names an item that it cannot read", async () => {
  await using workshop = await Workshop.open();
  workshop.expectsErrors = true;
  const thing = { name: "secret", weight: 1 };
  const { getMany } = workshop.kv;

  workshop.kv.getMany = () => Promise.reject(new TypeError("database or disk is full\n  at secret"));
  const unavailable = await workshop.call("POST /v1/things", { json: thing });
  workshop.kv.getMany = getMany;
  await workshop.kv.set(["items", "things", 1], thing);
  const corrupt = await workshop.call("GET /v1/things/1");

  assertEquals([unavailable.status, corrupt.status], [503, 500]);
  const logged = workshop.errors.map(({ error, reason }) => [error, reason]);
  assertEquals(logged, [
    ["StoreUnavailable (TypeError)", "database or disk is full"],
    ["CorruptRow", "Item 1 of things is not a thing"],
  ]);
  assertEquals(JSON.stringify(workshop.errors).includes("secret"), false);
});

Deno.test("service logs each request with its ID, address, route, account, duration and error code", async () => {
  await using time = new VirtualTime();
  await using service = await Harness.open();
  const { account: { id }, apiKey: key } = await service.createAccount({ minute: 4, day: 100 });
  const [closed, suspended] = [await service.createAccount(), await service.createAccount()];
  await service.accounts.change(closed.account.id, { closedAt: service.now });
  await service.accounts.suspend(suspended.account.id, service.now);
  const pull = (controller: ReadableStreamDefaultController) => {
    service.now -= 1_000; // Setting the clock does not affect durations.
    time.now += 249.6;
    controller.close();
  };
  const body = new ReadableStream({ pull }, { highWaterMark: 0 });

  const responses = [
    await service.fetch("GET /v1/things?state=lost&private=1", { key, headers: { "x-request-id": "r1" } }),
    await service.fetch("PUT /v1/things/private", { key }),
    await service.fetch("PRIVATE /v1/private", { key }),
    await service.fetch("POST /v1/things", { key, headers: JSON_TYPE, body }),
    await service.fetch("GET /v1/things", { key }),
    await service.fetch("GET /v1/things"),
    await service.fetch("GET /v1/things", { key: closed.apiKey }),
    await service.fetch("GET /v1/things", { key: suspended.apiKey }),
    await service.fetch("OPTIONS /v1/things"),
  ];
  service.address = "2001:db8::/64";
  responses.push(await service.fetch("GET /health"));

  const ids = responses.map(({ headers }) => headers.get("x-request-id"));
  assertEquals([ids[0], service.accesses.map(({ id }) => id)], ["r1", ids]);
  const logged = service.accesses.map((
    { id: _, time, address, method, route, status, code, ms, accountId },
  ) => [time.slice(11, 19), address, method, route, status, code, ms, accountId]);
  assertEquals(logged, [
    ["12:00:00", ADDRESS, "GET", "/v1/things", 200, "", 0, id],
    ["12:00:00", ADDRESS, "PUT", "/v1/things/:thingId", 405, "method_not_allowed", 0, id],
    ["12:00:00", ADDRESS, "other", "", 404, "not_found", 0, id],
    ["12:00:00", ADDRESS, "POST", "/v1/things", 400, "invalid_json", 250, id],
    ["11:59:59", ADDRESS, "GET", "/v1/things", 429, "rate_limit_minute", 0, id],
    ["11:59:59", ADDRESS, "GET", "/v1/things", 401, "missing_api_key", 0, ""],
    ["11:59:59", ADDRESS, "GET", "/v1/things", 401, "invalid_api_key", 0, closed.account.id],
    ["11:59:59", ADDRESS, "GET", "/v1/things", 403, "account_suspended", 0, suspended.account.id],
    ["11:59:59", ADDRESS, "OPTIONS", "/v1/things", 204, "", 0, ""],
    ["11:59:59", "2001:db8::/64", "GET", "/health", 200, "", 0, ""],
  ]);
});

Deno.test("service logs whose limit refused a request, and the account of the key, even if the address was charged", async () => {
  await using service = await Harness.open();
  const [one, suspended, replaced] = [
    await service.createAccount({ minute: MAX_ROTATIONS + 1, day: 10 * MAX_ROTATIONS }),
    await service.createAccount(),
    await service.createAccount(),
  ];
  const list = (key?: string) => service.fetch("GET /v1/things", { ...(key && { key }) });
  await list(replaced.apiKey);
  await service.accounts.suspend(suspended.account.id, service.now);
  await service.accounts.rotate(replaced.account.id);
  const signUp = (address: string) => {
    service.address = address;
    return service.fetch("POST /v1/accounts", { json: { name: "me" } });
  };
  const rotate = () => service.fetch("POST /v1/account/key", { key: one.apiKey, json: {} });

  for (const key of [suspended.apiKey, replaced.apiKey]) await list(key);
  for (let count = 0; count < 58; count++) await list();
  for (const key of [suspended.apiKey, replaced.apiKey, undefined]) await list(key);
  for (let count = 0; count < MAX_ROTATIONS + 2; count++) await list(one.apiKey);
  for (let count = 0; count < 6; count++) await signUp("192.0.2.2");
  await service.kv.set(["sign_ups_by_day", Math.floor(NOON / DAY)], encodeJson(1_000));
  await signUp("192.0.2.3");
  service.now += 60_000;
  for (let count = 0; count <= MAX_ROTATIONS; count++) await rotate();

  const refused = service.accesses.filter(({ status }) => status >= 400).map((
    { status, code, accountId, limitOf },
  ) => [status, code, accountId, limitOf]);
  const limit = "rate_limit_minute";
  assertEquals(refused.filter(([, , accountId, limitOf]) => accountId !== "" || limitOf !== undefined), [
    [403, "account_suspended", suspended.account.id, undefined],
    [401, "invalid_api_key", replaced.account.id, undefined],
    [429, limit, suspended.account.id, "address"],
    [429, limit, replaced.account.id, "address"],
    [429, limit, "", "address"],
    [429, limit, one.account.id, "account"],
    [429, "sign_up_limit", "", "address"],
    [429, "sign_up_limit", "", "service"],
    [429, "rotation_limit", one.account.id, "account"],
  ]);
});

/** Sends a request whose handler throws this. */
async function fail(workshop: Workshop, error: Error): Promise<Response> {
  const operation = workshop.app.operations.find(({ id }) => id === "listThings");
  const respond = () => {
    throw error;
  };
  Object.assign(operation ?? {}, { respond });
  return await workshop.call("GET /v1/things");
}

Deno.test.each([["staging", true], ["production", false]] as const)(
  "service logs message and stack of an unexpected error in %s: %s",
  async (environment, isShown) => {
    const { errors, log } = open();
    await using workshop = await Workshop.open({ log, environment });
    const error = new RangeError("unexpected", { cause: new TypeError(`with ${workshop.key}`) });

    const { status } = await fail(workshop, error);
    await log.flushed();

    const [{ detail = "" } = {}, ...more] = errors.lines.map((line) => JSON.parse(line));
    assertEquals([status, more], [500, []]);
    assertEquals(/^RangeError: unexpected\n +at [^]*TypeError: with \[secret\]\n +at /.test(detail), isShown);
    assertEquals(detail.includes(workshop.key), false);
  },
);

Deno.test("service returns 400 with its faults if a handler throws Invalid", async () => {
  await using workshop = await Workshop.open();

  const response = await fail(workshop, new Invalid("Name must be red", "Weight must be 7").in("Name"));

  await assertError(response, 400, "invalid_request", /^Name must be red\. Weight must be 7\.$/);
});

Deno.test("service never logs a key, valid or not, or another secret, wherever the client puts it", async () => {
  const { access, errors, log } = open();
  await using service = await Harness.open({ log });
  const { apiKey } = await service.createAccount();
  const headers = { "x-request-id": apiKey, host: apiKey };

  for (const key of [apiKey, apiKey.slice(0, -1)]) await service.fetch("GET /v1/things", { key });
  await service.fetch("GET /v1/things", { headers: { "x-request-id": `${TOKEN}${TOKEN}` } });
  for (const target of [`GET /v1/things?key=${apiKey}`, `GET /v1/${apiKey}`, `${apiKey} /v1/things`]) {
    await service.fetch(target, { headers });
  }
  service.kv.getMany = () => Promise.reject(new Error(apiKey));
  await service.fetch("GET /v1/things", { key: apiKey, headers });
  await log.flushed();

  const lines = [...access.lines, ...errors.lines];
  assertEquals([access.lines.length, errors.lines.length], [7, 1]);
  assertEquals(lines.filter((line) => line.includes(apiKey.slice(0, -1)) || line.includes(TOKEN)), []);
  assertEquals(access.lines.filter((line) => line.includes('"[secret]')).length, 5);
});
