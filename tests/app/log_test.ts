import { setImmediate } from "node:timers/promises";
import { assertEquals } from "@std/assert";
import { createLog, errorRecord, type Output } from "../../src/app/log.ts";
import { Invalid } from "../../src/web/schema.ts";
import { InFlight } from "../../src/app/in_flight.ts";
import { assertError } from "../support/assertions.ts";
import { getBanned } from "../support/client.ts";
import { Harness } from "../support/harness.ts";
import { NOON, VirtualTime } from "../support/time.ts";
import { KEYS } from "../support/things.ts";

const TOKEN = "the.operator's+token";
const TIME = "2027-01-15T12:00:00.000Z";
const ADDRESS = "192.0.2.1";
const ACCESS = {
  time: TIME,
  id: "r1",
  address: ADDRESS,
  method: "GET",
  route: "/",
  status: 200,
  code: "",
  ms: 1,
  accountId: "",
};
const OPERATION = { time: TIME, address: ADDRESS, operation: "listAccounts", ids: [], status: 200 };
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
  const log = createLog({ access, errors, secrets: [KEYS.secret, TOKEN], clock: () => NOON });
  return { access, errors, log };
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

Deno.test("createLog() writes only errors if access is undefined", async () => {
  const errors = new LateOutput(1);
  const log = createLog({ access: undefined, errors, secrets: [], clock: () => NOON });

  log.error(ERROR);
  await log.flushed();

  assertEquals([log.access, errors.lines], [undefined, [JSON.stringify(ERROR)]]);
});

Deno.test("createLog() logs when lines were dropped, and how many", async () => {
  const { access, log } = open();

  for (let count = 0; count < 12; count++) log.access?.({ ...ACCESS, id: "x".repeat(99_999) });
  await log.flushed();

  assertEquals(access.lines.slice(10), [`{"time":"${TIME}","dropped":2}`]);
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

Deno.test("errorRecord() contains the source location of an error or its cause", () => {
  const sources = import.meta.resolve("../../src/");
  const cause = new Error();
  cause.stack = `Error: secret\n  at f (${sources}kv/store.ts:12:3)\n  at g (${sources}app.ts:1:1)`;

  assertEquals(errorRecord(cause, NOON, "/").at, "src/kv/store.ts:12");
  assertEquals(errorRecord(new Error("", { cause }), NOON, "/").at, "src/kv/store.ts:12");
});

Deno.test("errorRecord() skips source locations outside the folder src of the service", () => {
  const error = new Error();
  const others = "  at f (file:///srv/src/app.ts:1:1)\n  at g (file:///srv/w-src/tests/time.ts:2:1)";
  error.stack = `Error: secret\n${others}\n  at h (${import.meta.resolve("../../src/app/app.ts")}:3:1)`;

  assertEquals(errorRecord(error, NOON, "/").at, "src/app/app.ts:3");
});

Deno.test("createLog() removes secrets from a reason before truncating it to 200 characters", async () => {
  const { errors, log } = open();

  log.error({ ...ERROR, reason: `${"x".repeat(190)}${TOKEN} is not known here` });
  log.error({ ...ERROR, reason: `${"x".repeat(188)} ${"as_test_"}${"A1".repeat(19)}${"y".repeat(99)}` });
  await log.flushed();

  const reasons = errors.lines.map((line) => JSON.parse(line).reason);
  assertEquals(reasons, [`${"x".repeat(190)}[secret] i`, `${"x".repeat(188)} [secret]`]);
});

Deno.test("service logs KV's own message if KV fails, and names an item that it cannot read", async () => {
  await using service = await Harness.open();
  service.expectsErrors = true;
  const { apiKey: key } = await service.createAccount();
  const thing = { name: "secret", weight: 1 };
  const { getMany } = service.kv;

  service.kv.getMany = () => Promise.reject(new TypeError("database or disk is full\n  at secret"));
  const unavailable = await service.fetch("POST /v1/things", { key, json: thing });
  service.kv.getMany = getMany;
  await service.kv.set(["items", "things", 1], thing);
  const corrupt = await service.fetch("GET /v1/things/1", { key });

  assertEquals([unavailable.status, corrupt.status], [503, 500]);
  const logged = service.errors.map(({ error, reason }) => [error, reason]);
  assertEquals(logged, [
    ["StoreUnavailable (TypeError)", "database or disk is full"],
    ["CorruptRow", "Item 1 of things is not a thing"],
  ]);
  assertEquals(JSON.stringify(service.errors).includes("secret"), false);
});

Deno.test("service logs each request with its ID, address, route, account, duration and error code", async () => {
  using time = new VirtualTime();
  await using service = await Harness.open();
  const { account: { id: accountId }, apiKey: key } = await service.createAccount({ minute: 4, day: 100 });
  const closed = await service.createAccount();
  await service.accounts.change(closed.account.id, { closedAt: service.now });
  const headers = { "content-type": "application/json" };
  const pull = (controller: ReadableStreamDefaultController) => {
    service.now -= 1_000; // Setting the clock does not affect durations.
    time.now += 249.6;
    controller.close();
  };
  const slow = new ReadableStream({ pull }, { highWaterMark: 0 });

  const responses = [
    await service.fetch("GET /v1/things?state=lost&private=1", { key, headers: { "x-request-id": "r1" } }),
    await service.fetch("PUT /v1/things/private", { key }),
    await service.fetch("PRIVATE /v1/private", { key }),
    await service.fetch("POST /v1/things", { key, headers, body: slow }),
    await service.fetch("GET /v1/things", { key }),
    await service.fetch("GET /v1/things"),
    await service.fetch("GET /v1/things", { key: closed.apiKey }),
    await service.fetch("OPTIONS /v1/things"),
  ];
  service.address = "2001:db8::/64";
  responses.push(await service.fetch("GET /health"));

  const early = { time: TIME, address: ADDRESS };
  const late = { time: "2027-01-15T11:59:59.000Z", address: ADDRESS, ms: 0 };
  const ids = responses.map(({ headers }) => headers.get("x-request-id"));
  assertEquals([ids[0], service.accesses.map(({ id }) => id)], ["r1", ids]);
  assertEquals(service.accesses.map(({ id: _, ...record }) => record), [
    { ...early, method: "GET", route: "/v1/things", status: 200, code: "", ms: 0, accountId },
    {
      ...early,
      method: "PUT",
      route: "/v1/things/:thingId",
      status: 405,
      code: "method_not_allowed",
      ms: 0,
      accountId,
    },
    { ...early, method: "other", route: "", status: 404, code: "not_found", ms: 0, accountId },
    { ...early, method: "POST", route: "/v1/things", status: 400, code: "invalid_json", ms: 250, accountId },
    { ...late, method: "GET", route: "/v1/things", status: 429, code: "rate_limit_minute", accountId },
    { ...late, method: "GET", route: "/v1/things", status: 401, code: "missing_api_key", accountId: "" },
    { ...late, method: "GET", route: "/v1/things", status: 401, code: "invalid_api_key", accountId: "" },
    { ...late, method: "OPTIONS", route: "/v1/things", status: 204, code: "", accountId: "" },
    {
      ...late,
      address: service.address,
      method: "GET",
      route: "/health",
      status: 200,
      code: "",
      accountId: "",
    },
  ]);
});

Deno.test("service logs the account of a refused request, and counts refusals by code", async () => {
  const inFlight = new InFlight();
  await using service = await Harness.open({ inFlight });
  const { account: { id: accountId }, apiKey: key } = await service.createAccount("free");
  const ask = () => service.fetch("GET /v1/things", { key });

  await service.fetch("GET /v1/things", { key: `${key}x` });
  await getBanned(service, key);
  await service.app.settle();
  await service.accounts.suspend(accountId, service.now);
  await ask();
  await inFlight.stop();
  await ask();

  const lines = service.accesses.map(({ status, code, accountId }) => [status, code, accountId]);
  assertEquals([lines[0], ...lines.slice(-3)], [
    [401, "invalid_api_key", ""],
    [429, "key_banned", accountId],
    [403, "account_suspended", accountId],
    [503, "service_stopping", accountId],
  ]);
  const codes = [...service.metrics.refused.text().matchAll(/code="(\w+)"/g)].map(([, code]) => code);
  assertEquals(codes, ["rate_limit_minute", "key_banned", "account_suspended", "service_stopping"]);
  const until = "2027-01-15T12:05:00.000Z";
  assertEquals(service.events, [{ time: TIME, event: "ban", accountId, until }]);
});

for (const [environment, isShown] of [["staging", true], ["production", false]] as const) {
  Deno.test(`service logs message and stack of an unexpected error in ${environment}: ${isShown}`, async () => {
    const { errors, log } = open();
    await using service = await Harness.open({ log, environment });
    const { apiKey: key } = await service.createAccount();
    const operation = service.app.operations.find(({ id }) => id === "listThings");
    const respond = () => {
      throw new RangeError("unexpected", { cause: new TypeError(`with ${key}`) });
    };
    Object.assign(operation ?? {}, { respond });

    const { status } = await service.fetch("GET /v1/things", { key });
    await log.flushed();

    const [{ detail = "" } = {}, ...more] = errors.lines.map((line) => JSON.parse(line));
    assertEquals([status, more], [500, []]);
    assertEquals(/^RangeError: unexpected\n +at [^]*TypeError: with \[secret\]\n +at /.test(detail), isShown);
    assertEquals(detail.includes(key), false);
  });
}

Deno.test("service returns 400 with its faults if a handler throws Invalid", async () => {
  await using service = await Harness.open();
  const { apiKey: key } = await service.createAccount();
  const operation = service.app.operations.find(({ id }) => id === "listThings");
  const respond = () => {
    throw new Invalid("Name must be red", "Weight must be 7");
  };
  Object.assign(operation ?? {}, { respond });

  const response = await service.fetch("GET /v1/things", { key });

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
