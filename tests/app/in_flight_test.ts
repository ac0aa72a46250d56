// Requests in flight and their bodies: how many at a time, and for how long.
import { assertEquals, assertRejects } from "@std/assert";
import { type Budget, IN_FLIGHT_LIMITS, InFlight, OutOfTime } from "../../src/app/in_flight.ts";
import { monotonicNow, type MonotonicTime, msBetween, pause } from "../../src/base/time.ts";
import { whenReady } from "../../src/base/when_ready.ts";
import { originOf, Server } from "../../src/web/server.ts";
import { assertError } from "../support/assertions.ts";
import { call, JSON_TYPE, upTo } from "../support/client.ts";
import { type Disturbance, FakeKv } from "../support/fake_kv.ts";
import { Harness, RecordingService } from "../support/harness.ts";
import { ALL } from "../support/operations.ts";
import { HAMMER } from "../support/things.ts";
import { VirtualTime } from "../support/time.ts";
import { Workshop } from "../support/workshop.ts";

const LIMITS = { ...IN_FLIGHT_LIMITS, budgetMs: 1_000, stopMs: 9_000 };

function nameOf({ name }: Error): string {
  return name;
}

function never(): Promise<never> {
  return new Promise(() => {});
}

/** A JSON body whose parts each arrive after a pause. */
function bodyOf(parts: readonly string[], pause: () => Promise<void>) {
  const left = [...parts];
  const pull = async (controller: ReadableStreamDefaultController) => {
    await pause();
    controller.enqueue(new TextEncoder().encode(left.shift()));
    if (left.length === 0) controller.close();
  };
  return { body: new ReadableStream({ pull }, { highWaterMark: 0 }), headers: JSON_TYPE };
}

/** A thing whose body arrives once `sent()` has resolved. */
function slowly(sent: () => Promise<void>) {
  return bodyOf([JSON.stringify(HAMMER)], sent);
}

/** Starts a request now. Its work begins once `ready`, if given, has resolved. Settles like the work. */
async function worked<Result>(
  inFlight: InFlight,
  work: (budget: Budget) => Result | Promise<Result>,
  ready?: Promise<void>,
): Promise<Result | undefined> {
  const results: Result[] = [];
  const note = (result: Result) => (results.push(result), new Response());
  const failed = (_: unknown, error: unknown) => {
    throw error;
  };
  await inFlight.run(undefined, {
    work: (_, budget) => whenReady(work(budget), note),
    failed,
    finish: (_, response) => response,
    ended() {},
  }, { at: monotonicNow(), ready });
  return results[0];
}

Deno.test("respond() settles like its work, and counts each request until then, however many share a promise", async () => {
  const inFlight = new InFlight({ ...LIMITS, capacity: 3 });
  const [ready, other] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const states = () => [inFlight.size, inFlight.isFull()];
  const begin = (ready?: Promise<void>) => worked(inFlight, () => inFlight.size, ready);

  const waiting = [begin(ready.promise), begin(ready.promise)];
  assertEquals(states(), [2, false]);
  const unready = assertRejects(() => begin(other.promise), Error, "broken");
  assertEquals(states(), [3, true]);
  other.reject(new Error("broken"));
  await unready;
  const failing = assertRejects(
    () => worked(inFlight, () => Promise.reject(new Error("worse"))),
    Error,
    "worse",
  );
  assertEquals(states(), [3, true]);
  await failing;
  assertEquals(states(), [2, false]);
  ready.resolve();
  assertEquals(await Promise.all(waiting), [2, 1]);
  for (let count = 0; count < 2; count++) assertEquals(await begin(ready.promise), 1);
  assertEquals(states(), [0, false]);
  await inFlight.stop();
});

Deno.test("respond() times out each request by its own deadline, within 100 ms", async () => {
  await using time = new VirtualTime();
  const inFlight = new InFlight(LIMITS);
  const events: string[] = [];
  const start = (work: () => Promise<string>) =>
    worked(inFlight, work).catch(nameOf).then((answer) => events.push(`${answer} at ${time.now}`));

  start(never);
  await time.advance(550);
  start(never);
  start(() => pause(900).then(() => "done"));
  await time.advance(2_000);

  assertEquals(events, ["OutOfTime at 1000", "done at 1450", "OutOfTime at 1600"]);
});

Deno.test("respond() finishes one response, and reports what fails after its request has timed out", async () => {
  await using time = new VirtualTime();
  const inFlight = new InFlight(LIMITS);
  const calls: unknown[] = [];
  const start = (name: string, ms: number, ready?: Promise<void>) =>
    inFlight.run(name, {
      work: () => pause(ms).then(() => Promise.reject(name)),
      failed(_, error) {
        calls.push(error instanceof OutOfTime ? "OutOfTime" : error);
        return new Response();
      },
      finish: (_, response) => (calls.push("finished"), response),
      ended() {},
    }, { at: monotonicNow(), ready });

  start("slow", 3_000);
  start("quick", 500);
  start("not ready", 0, pause(3_500).then(() => Promise.reject("unavailable")));
  await time.advance(4_000);

  assertEquals(calls, ["quick", "finished", "OutOfTime", "finished", "OutOfTime", "finished", "slow"]);
});

Deno.test("respond() tells when the work of each request began, and once when it ended", async () => {
  await using time = new VirtualTime();
  const inFlight = new InFlight(LIMITS);
  const start = time.now;
  const events: string[] = [];
  const ms = (at: MonotonicTime) => msBetween(arrived, at);
  const arrived = monotonicNow();
  const begin = (name: string, work: () => Response | Promise<Response>, ready?: Promise<void>) =>
    inFlight.run(name, {
      work(_, { begun }) {
        events.push(`${name} began at ${ms(begun)}`);
        return work();
      },
      failed: () => new Response(),
      finish: (_, response) => response,
      ended: (_, at) => void events.push(`${name} ended at ${ms(at)}, ${time.now - start}`),
    }, { at: arrived, ready });
  const ready = pause(200);

  begin("immediate", () => new Response());
  begin("late", never);
  begin("ready", () => new Response(), ready);
  begin("failed", () => Promise.reject(new Error()), ready);
  begin("slow", () => pause(300).then(() => new Response()), ready);
  await time.advance(1_200);

  assertEquals(events, [
    "immediate began at 0",
    "immediate ended at 0, 0",
    "late began at 0",
    "ready began at 200",
    "failed began at 200",
    "slow began at 200",
    "ready ended at 200, 200",
    "failed ended at 200, 200",
    "slow ended at 500, 500",
    "late ended at 1000, 1000",
  ]);
});

Deno.test("respond() starts no work for a request that times out before it is ready", async () => {
  await using time = new VirtualTime();
  const inFlight = new InFlight({ ...LIMITS, budgetMs: 5_000, stopMs: 1_000 });
  const events: string[] = [];
  const begin = (ready: Promise<void>) => {
    worked(inFlight, () => events.push("begun"), ready)
      .catch((error) => events.push(`${nameOf(error)} at ${time.now}`));
  };

  const ready = pause(6_000);
  begin(ready);
  await time.advance(4_000);
  begin(ready);
  await time.advance(1_500);
  begin(ready);
  await time.advance(2_500);
  begin(never());
  const stopping = inFlight.stop();
  await time.advance(2_000);
  await stopping;

  assertEquals(events, ["OutOfTime at 5000", "begun", "begun", "OutOfTime at 9000"]);
  assertEquals(inFlight.size, 0);
});

Deno.test("stop() waits for the last answer, even of work that is not ready, but at most stopMs, even for paused requests", async () => {
  await using time = new VirtualTime();
  const inFlight = new InFlight({ ...LIMITS, budgetMs: 60_000, stopMs: 3_000 });
  const events: string[] = [];
  const note = (what: string) => () => void events.push(`${what} at ${time.now}`);
  worked(inFlight, () => pause(1_000)).then(note("done"));
  worked(inFlight, () => pause(1_000), pause(1_500)).then(note("begun late, and done"));
  worked(inFlight, never).catch(note("given up"));
  worked(inFlight, (budget) => budget.pausedFor(never())).catch(note("given up"));
  await time.advance(500);

  inFlight.stop().then(note("stopped"));
  assertEquals(inFlight.isStopping, true);
  await time.advance(10_000);

  const done = ["begun late, and done at 2500", "done at 1000"];
  assertEquals(events.sort(), [...done, "given up at 3500", "given up at 3500", "stopped at 3500"]);
  await new InFlight().stop();
});

Deno.test("stop() waits for the answer of a request that would be idle only after the stop began", async () => {
  await using time = new VirtualTime();
  const inFlight = new InFlight(LIMITS);
  const events: string[] = [];
  const client = new AbortController().signal;
  const work = async (budget: Budget) => {
    await pause(200);
    await inFlight.idle(
      budget,
      client,
      (signal) => Promise.resolve(events.push(`aborted: ${signal.aborted}`)),
    );
    await pause(300);
  };
  worked(inFlight, work).then(() => events.push(`done at ${time.now}`));
  await time.advance(100);

  inFlight.stop().then(() => events.push(`stopped at ${time.now}`));
  await time.advance(1_000);

  assertEquals(events.sort(), ["aborted: true", "done at 500", "stopped at 500"]);
});

Deno.test("idle() takes the request of a handler that waits at once out of those in flight until the wait is over", async () => {
  const inFlight = new InFlight(LIMITS);
  const wait = Promise.withResolvers<void>();
  const done = worked(inFlight, async (budget) => {
    await inFlight.idle(budget, new AbortController().signal, () => wait.promise);
    return inFlight.size;
  });
  const before = inFlight.size;

  await Promise.resolve();
  const meanwhile = inFlight.size;
  wait.resolve();

  assertEquals([before, meanwhile, await done, inFlight.size], [1, 0, 1, 0]);
  await inFlight.stop();
});

Deno.test("quiet() resolves half a second after the last request of a stop, if no other came, and after two seconds at most", async () => {
  await using time = new VirtualTime();
  const ends: Record<string, number> = {};
  const stopped = (name: string, inFlight: InFlight) => {
    inFlight.stop().then(() => inFlight.quiet()).then(() => ends[name] = time.now - start);
    return inFlight;
  };
  const start = time.now;
  const busy = new InFlight(IN_FLIGHT_LIMITS);
  worked(busy, () => pause(800));

  stopped("idle", new InFlight());
  const refusing = stopped("refusing", new InFlight());
  const flooded = stopped("flooded", new InFlight());
  stopped("busy", busy);
  setTimeout(() => refusing.restartQuiet(), 400);
  const flood = setInterval(() => flooded.restartQuiet(), 100);
  await time.advance(3_000);
  clearInterval(flood);

  assertEquals(ends, { idle: 500, refusing: 900, busy: 1_300, flooded: 2_000 });
});

/** A service in virtual time whose store is slow. */
class SlowService extends RecordingService {
  /** Duration of each KV operation, in ms. */
  latency = 0;
  readonly inFlight: InFlight;
  override disturbance: Disturbance = {
    read: () => pause(this.latency),
    commit: async ({ apply }) => (await pause(this.latency), await apply()),
  };

  constructor(inFlight: InFlight = new InFlight()) {
    super(new VirtualTime(), new FakeKv(), { inFlight });
    this.inFlight = inFlight;
  }

  /** Adds a thing with the key of a new account. */
  async send(thing: object): Promise<(ms: number) => Promise<Response>> {
    const { apiKey: key } = await this.time.until(this.createAccount(), 10_000);
    const sent = this.fetch("POST /v1/things", { key, ...thing });
    return (ms) => this.time.until(sent, ms);
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await this.time.advance(60_000); // Requests that timed out are still running.
    await super[Symbol.asyncDispose]();
  }
}

Deno.test("service returns 503 overloaded and charges nothing at capacity, except to 100 requests of monitoring", async () => {
  const inFlight = new InFlight({ ...IN_FLIGHT_LIMITS, capacity: 1 });
  await using service = await Harness.open({ inFlight, ...ALL });
  const { apiKey: key } = await service.createAccount();
  await call(service, key); // From now on, the key is in memory.
  const { promise, resolve } = Promise.withResolvers<void>();
  const send = (path: string) => service.fetch(`GET ${path}`, { key: ALL.operatorToken });
  const monitor = () => ["/health", "/ready", "/metrics"].map(send);

  const early = monitor();
  const first = service.fetch("POST /v1/things", { key, ...slowly(() => promise) });
  const answered = await Promise.all([...early, ...monitor()]);
  const refused = await service.fetch("GET /v1/things");
  const waiting = upTo(100).map(() => send("/metrics"));
  const tooMany = monitor();
  resolve();

  assertEquals(answered.map(({ status }) => status), Array(6).fill(200));
  assertEquals(refused.headers.get("retry-after"), "1");
  assertEquals(refused.headers.get("x-ratelimit-remaining"), "60");
  await assertError(refused, 503, "overloaded");
  for (const response of tooMany) await assertError(await response, 503, "overloaded");
  assertEquals(new Set((await Promise.all(waiting)).map(({ status }) => status)), new Set([200]));
  assertEquals((await first).status, 201);
  assertEquals((await call(service)).remaining, 59);
});

Deno.test("service allows 10 s for a body in addition to 5 s for the request", async () => {
  await using service = new SlowService();
  service.latency = 500;
  service.expectsErrors = true;

  const slow = await service.send(slowly(() => pause(9_000)));
  assertEquals((await slow(14_000)).status, 201);
  const slower = await service.send(slowly(async () => {
    await pause(9_000);
    service.latency = 3_000;
  }));
  await assertError(await slower(14_100), 503, "store_unavailable");
  await service.time.advance(10_000);
  service.latency = 500;
  const stalled = await service.send(slowly(never));

  await assertError(await stalled(14_000), 408, "request_timeout", /within 10 s/);
});

Deno.test("service refuses new requests while it stops, and answers those in flight within 3 s", async () => {
  await using service = new SlowService();
  service.expectsErrors = true;
  const stalled = await service.send(slowly(never));
  await service.time.advance(100);

  const stopping = service.inFlight.stop();
  const refused = await service.send({ json: HAMMER });
  const responses = [await refused(0), await stalled(3_100)];
  await stopping;

  for (const response of responses) {
    assertEquals(response.headers.get("retry-after"), "1");
    assertEquals(response.headers.get("connection"), "close");
    await assertError(response, 503, "service_stopping", /is stopping/);
  }
  const health = await service.fetch("GET /health");
  assertEquals([health.status, health.headers.get("connection")], [200, "close"]);
  await assertError(await service.fetch("GET /ready"), 503, "service_stopping", /is stopping/);
  const policies = responses.map(({ headers }) => headers.get("ratelimit-policy"));
  assertEquals(policies, ['"minute";q=60;w=60', '"minute";q=1000;w=60, "day";q=100000;w=86400']);
});

Deno.test("service stops half a second after the last request of a client; monitoring does not delay that", async () => {
  for (const [path, end] of [["/ready", 500], ["/health", 500], ["/v1/things", 900]] as const) {
    await using service = new SlowService();
    const start = service.time.now;
    service.inFlight.stop();
    const quiet = service.inFlight.quiet().then(() => service.time.now - start);
    await service.time.advance(400);
    await service.fetch(`GET ${path}`);

    assertEquals([path, await service.time.until(quiet, 5_000)], [path, end]);
  }
});

Deno.test.each([[false, 408], [true, 201]])(
  "service answers a chunked body that pauses for 2,100 ms, on Deploy: %s, with %i",
  async (onDeploy, status) => {
    await using service = await RecordingService.open({ onDeploy });
    const { apiKey: key } = await service.createAccount();
    const { body } = bodyOf(['{"name":"Hammer",', '"weight":1}'], () => pause(2_100));
    const headers = { ...JSON_TYPE, "transfer-encoding": "chunked" };

    const sent = service.fetch("POST /v1/things", { key, headers, body });

    assertEquals((await service.time.until(sent, 10_000)).status, status);
    await service.time.advance(2_100);
  },
);

Deno.test("service accepts a body of unknown length over HTTP/2", async () => {
  await using workshop = await Workshop.open();
  const server = new Server({ port: 0, hostname: "127.0.0.1", onFailure() {} }, workshop.app.fetch);
  using client = Deno.createHttpClient({ http1: false, http2: true });

  const response = await fetch(`${originOf(server.address)}/v1/things`, {
    ...{ client, method: "POST", ...slowly(() => Promise.resolve()) },
    headers: { ...JSON_TYPE, authorization: `Bearer ${workshop.key}` },
  });

  assertEquals([response.status, (await response.json()).name], [201, "Hammer"]);
  await server.stop();
});

/** A service whose time stands still, and clients whose bodies stall until it is disposed. */
class Crowd extends RecordingService {
  readonly #end: PromiseWithResolvers<void> = Promise.withResolvers();
  readonly #sent: Promise<Response>[] = [];

  constructor() {
    super(new VirtualTime(), new FakeKv(), ALL);
  }

  /** Creates an account, and returns its key. */
  async join(): Promise<string> {
    return (await this.createAccount({ minute: 2_000, day: 2_000 })).apiKey;
  }

  /** Begins `count` bodies at once, of an account or, without a key, of many addresses. Returns how many get a place. */
  async stall(count: number, key?: string): Promise<number> {
    const target = key === undefined ? "POST /v1/accounts" : "POST /v1/things";
    let refused = 0;
    for (let index = 0; index < count; index++) {
      this.address = `192.0.2.${index % 250}`;
      const body = bodyOf(["{}"], () => this.#end.promise);
      const sent = this.fetch(target, { ...(key !== undefined && { key }), ...body });
      this.#sent.push(sent);
      sent.then(({ status }) => status === 503 && refused++);
    }
    await this.time.advance(0);
    return count - refused;
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    this.#end.resolve();
    for (const sent of this.#sent) await (await sent).body?.cancel();
    await super[Symbol.asyncDispose]();
  }
}

Deno.test("service reads 1,000 bodies at a time, at most 50 of an account while fewer than 500 can be added", async () => {
  await using crowd = new Crowd();
  const stalled = [await crowd.stall(600, await crowd.join())];

  for (let count = 0; count < 11; count++) stalled.push(await crowd.stall(60, await crowd.join()));

  assertEquals(stalled, [501, 50, 50, 50, 50, 50, 50, 50, 50, 50, 49, 0]);
});

Deno.test("service reads 500 bodies without an account at a time, and those of accounts and operators beside them", async () => {
  await using crowd = new Crowd();

  assertEquals(await crowd.stall(520), 500);
  assertEquals(await crowd.stall(60, await crowd.join()), 50);
  const request = { key: ALL.operatorToken, json: { name: "me" } };
  assertEquals((await crowd.fetch("POST /operator/v1/accounts", request)).status, 201);
  crowd.address = "198.51.100.1";
  const refused = await call(crowd, undefined, "POST /v1/accounts", { json: { name: "me" } });
  // Its address is not charged.
  assertEquals([refused.code, refused.remaining], ["overloaded", 60]);
  assertEquals((await call(crowd)).remaining, 59);
});

Deno.test.each([["leased", 0], ["committed", 5_000]])(
  "service does not charge a request whose body gets no place, and gives its %s permit back",
  async (_, ms) => {
    await using crowd = new Crowd();
    await crowd.stall(501, await crowd.join());
    const key = await crowd.join();
    await crowd.stall(50, key);
    for (let count = 0; count < 8; count++) await call(crowd, key);
    await crowd.time.advance(ms); // Then the lease is given back.
    crowd.forget();

    const refused = await crowd.fetch("POST /v1/things", { key, json: HAMMER });

    assertEquals(crowd.commits.length, ms === 0 ? 0 : 1);
    assertEquals(refused.headers.get("retry-after"), "1");
    assertEquals(refused.headers.get("x-ratelimit-remaining"), "1942");
    await assertError(refused, 503, "overloaded", /Too many bodies are being read/);
    assertEquals((await call(crowd, key)).remaining, 1_941);
    await crowd.app.close();
    const { json } = await call(crowd, key, "GET /v1/account");
    assertEquals(Object(json).usage.minute.used, 60);
  },
);

Deno.test("service gives back no permit for a rotation that took none, if its body gets no place", async () => {
  await using crowd = new Crowd();
  const { account: { id }, apiKey: key } = await crowd.createAccount({ minute: 50, day: 2_000 });
  await crowd.stall(501, await crowd.join());
  await crowd.stall(50, key);

  const refused = await call(crowd, key, "POST /v1/account/key", { json: {} });

  assertEquals([refused.code, refused.remaining], ["overloaded", 0]);
  await crowd.app.close();
  assertEquals((await crowd.accounts.usage(id)).used, 50);
});

Deno.test("service reads more than 1,000 bodies at a time if they arrive with their headers", async () => {
  await using workshop = await Workshop.open();
  const sent = upTo(1_100).map(() => workshop.call("POST /v1/things", { json: {} }));

  const statuses = new Set((await Promise.all(sent)).map(({ status }) => status));

  assertEquals(statuses, new Set([400]));
});
