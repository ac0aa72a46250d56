import { assertEquals, assertRejects } from "@std/assert";
import { type Budget, IN_FLIGHT_LIMITS, InFlight, OutOfTime } from "../../src/app/in_flight.ts";
import { pause } from "../../src/base/time.ts";
import { whenReady } from "../../src/base/when_ready.ts";
import { assertError } from "../support/assertions.ts";
import { type Disturbance, FakeKv } from "../support/fake_kv.ts";
import { Harness, RecordingService } from "../support/harness.ts";
import { HAMMER } from "../support/things.ts";
import { VirtualTime } from "../support/time.ts";

const TOKEN = "operator-token-of-the-tests-0123456789";

function nameOf({ name }: Error): string {
  return name;
}

function never(): Promise<never> {
  return new Promise(() => {});
}

/** Starts a request now. Its work begins once `ready`, if given, has resolved. Settles like the work. */
async function worked<Result>(
  inFlight: InFlight,
  work: (budget: Budget) => Result | Promise<Result>,
  ready?: Promise<void>,
): Promise<Result | undefined> {
  const results: Result[] = [];
  const note = (result: Result) => (results.push(result), new Response());
  const failed = (error: unknown) => {
    throw error;
  };
  await inFlight.respond({
    ...{ at: performance.now(), ready, failed, finish: (response) => response },
    work: (budget) => whenReady(work(budget), note),
  });
  return results[0];
}

/** A thing whose body arrives once `sent()` has resolved. */
function slowly(sent: () => Promise<void>) {
  const pull = async (controller: ReadableStreamDefaultController) => {
    await sent();
    controller.enqueue(new TextEncoder().encode(JSON.stringify(HAMMER)));
    controller.close();
  };
  const body = new ReadableStream({ pull }, { highWaterMark: 0 });
  return { body, headers: { "content-type": "application/json" } };
}

/** A service in virtual time whose store is slow. */
class SlowService extends RecordingService {
  /** Duration of each KV operation, and additional duration of commits, in ms. */
  latency = 0;
  delay = 0;
  readonly inFlight: InFlight;
  override disturbance: Disturbance = {
    read: () => pause(this.latency),
    commit: async ({ apply }) => (await pause(this.latency + this.delay), await apply()),
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

Deno.test("respond() settles like its work, and then frees capacity", async () => {
  const inFlight = new InFlight({ ...IN_FLIGHT_LIMITS, capacity: 2 });
  const { promise, resolve } = Promise.withResolvers<string>();
  const states = () => [inFlight.size, inFlight.isFull()];

  const first = worked(inFlight, () => promise);
  assertEquals(states(), [1, false]);
  const failing = worked(inFlight, () => Promise.reject(new Error("broken")));
  assertEquals(states(), [2, true]);
  await assertRejects(() => failing, Error, "broken");
  assertEquals(states(), [1, false]);
  const second = worked(inFlight, () => Promise.resolve("second"));
  assertEquals(states(), [2, true]);
  resolve("first");

  assertEquals([await first, await second], ["first", "second"]);
  assertEquals(states(), [0, false]);
  await inFlight.stop();
});

Deno.test("respond() returns a synchronous response without a promise", () => {
  const inFlight = new InFlight();

  const [made, whole] = [new Response(), new Response()];
  const [failed, finish] = [() => made, (response: Response) => response === made ? whole : response];
  const response = inFlight.respond({ at: performance.now(), work: () => made, failed, finish });

  assertEquals([response === whole, inFlight.size], [true, 0]);
});

Deno.test("respond() times out each request by its own deadline, within 100 ms", async () => {
  using time = new VirtualTime();
  const inFlight = new InFlight({ ...IN_FLIGHT_LIMITS, capacity: 9, budgetMs: 1_000, stopMs: 9_000 });
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
  using time = new VirtualTime();
  const inFlight = new InFlight({ ...IN_FLIGHT_LIMITS, capacity: 9, budgetMs: 1_000, stopMs: 9_000 });
  const calls: unknown[] = [];
  const start = (name: string, ms: number, ready?: Promise<void>) =>
    inFlight.respond({
      at: performance.now(),
      ready,
      work: () => pause(ms).then(() => Promise.reject(name)),
      failed(error) {
        calls.push(error instanceof OutOfTime ? "OutOfTime" : error);
        return new Response();
      },
      finish: (response) => (calls.push("finished"), response),
    });

  start("slow", 3_000);
  start("quick", 500);
  start("not ready", 0, pause(3_500).then(() => Promise.reject("unavailable")));
  await time.advance(4_000);

  assertEquals(calls, ["quick", "finished", "OutOfTime", "finished", "OutOfTime", "finished", "slow"]);
});

Deno.test("respond() counts each of several requests that wait for the same promise", async () => {
  const inFlight = new InFlight({ ...IN_FLIGHT_LIMITS, capacity: 3 });
  const [ready, other] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const begin = (ready: Promise<void>) => worked(inFlight, () => inFlight.size, ready);

  const answers = [begin(ready.promise), begin(ready.promise)];
  assertEquals([inFlight.size, inFlight.isFull()], [2, false]);
  const failing = assertRejects(() => begin(other.promise), Error, "broken");
  assertEquals([inFlight.size, inFlight.isFull()], [3, true]);
  other.reject(new Error("broken"));
  await failing;
  assertEquals(inFlight.size, 2);
  ready.resolve();
  assertEquals(await Promise.all(answers), [2, 1]);
  assertEquals(await begin(ready.promise), 1);
  assertEquals(inFlight.size, 0);
  await inFlight.stop();
});

Deno.test("respond() starts no work for a request that times out before it is ready", async () => {
  using time = new VirtualTime();
  const inFlight = new InFlight({ ...IN_FLIGHT_LIMITS, capacity: 9, budgetMs: 5_000, stopMs: 1_000 });
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

Deno.test("stop() waits for work that begins after its ready promise resolves", async () => {
  using time = new VirtualTime();
  const inFlight = new InFlight();
  const events: string[] = [];
  const work = () => pause(1_000).then(() => events.push("answered"));
  worked(inFlight, work, pause(1_000));

  inFlight.stop().then(() => events.push("stopped"));
  await time.advance(3_000);

  assertEquals(events, ["answered", "stopped"]);
});

Deno.test("pausedFor() stops a request's clock, whether its promise resolves or rejects", async () => {
  using time = new VirtualTime();
  const inFlight = new InFlight({ ...IN_FLIGHT_LIMITS, capacity: 9, budgetMs: 1_000, stopMs: 9_000 });
  const work = async (budget: Budget) => {
    await pause(300);
    await budget.pausedFor(pause(60_000));
    await budget.pausedFor(pause(60_000).then(() => Promise.reject())).catch(() => {});
    return await never();
  };

  await time.until(assertRejects(() => worked(inFlight, work), OutOfTime), 200_000);

  assertEquals(time.now, 300 + 120_000 + 700);
});

Deno.test("stop() waits for the last answer, but at most stopMs, even for paused requests", async () => {
  using time = new VirtualTime();
  const inFlight = new InFlight({ ...IN_FLIGHT_LIMITS, capacity: 9, budgetMs: 60_000, stopMs: 3_000 });
  const events: string[] = [];
  const note = (what: string) => () => void events.push(`${what} at ${time.now}`);
  worked(inFlight, () => pause(1_000)).then(note("done"));
  worked(inFlight, never).catch(note("given up"));
  worked(inFlight, (budget) => budget.pausedFor(never())).catch(note("given up"));
  await time.advance(500);

  inFlight.stop().then(note("stopped"));
  assertEquals(inFlight.isStopping, true);
  await time.advance(10_000);

  assertEquals(events.sort(), ["done at 1000", "given up at 3500", "given up at 3500", "stopped at 3500"]);
  await new InFlight().stop();
});

Deno.test("service returns 503 overloaded and charges nothing while it is at capacity", async () => {
  await using service = await Harness.open({ inFlight: new InFlight({ ...IN_FLIGHT_LIMITS, capacity: 1 }) });
  const { apiKey: key } = await service.createAccount();
  await service.fetch("GET /v1/nowhere", { key }); // From now on, the key is in memory.
  const { promise, resolve } = Promise.withResolvers<void>();
  const first = service.fetch("POST /v1/things", { key, ...slowly(() => promise) });

  const refused = await service.fetch("GET /v1/things");
  resolve();
  const accepted = await first;
  const next = await service.fetch("GET /v1/things");

  assertEquals(refused.headers.get("retry-after"), "1");
  assertEquals(refused.headers.get("x-ratelimit-remaining"), "60");
  await assertError(refused, 503, "overloaded");
  assertEquals([accepted.status, next.status], [201, 401]);
  assertEquals(next.headers.get("x-ratelimit-remaining"), "59");
});

Deno.test("service answers /health, /ready and /metrics while it is at capacity, 100 at a time beside other requests", async () => {
  const inFlight = new InFlight({ ...IN_FLIGHT_LIMITS, capacity: 1 });
  await using service = await Harness.open({ inFlight, operatorToken: TOKEN });
  const { apiKey: key } = await service.createAccount();
  const { promise, resolve } = Promise.withResolvers<void>();
  const monitor = () =>
    ["/health", "/ready", "/metrics"].map((path) => service.fetch(`GET ${path}`, { key: TOKEN }));

  const early = monitor();
  const first = service.fetch("POST /v1/things", { key, ...slowly(() => promise) });
  const answered = await Promise.all([...early, ...monitor()]);
  const refused = await service.fetch("GET /v1/things", { key });
  const waiting = Array.from({ length: 100 }, () => service.fetch("GET /metrics", { key: TOKEN }));
  const tooMany = monitor();
  resolve();

  assertEquals(answered.map(({ status }) => status), Array(6).fill(200));
  await assertError(refused, 503, "overloaded");
  for (const response of tooMany) await assertError(await response, 503, "overloaded");
  assertEquals(new Set((await Promise.all(waiting)).map(({ status }) => status)), new Set([200]));
  assertEquals((await first).status, 201);
});

Deno.test("service responds within 5 s even if only the sum of its KV operations takes longer", async () => {
  await using service = new SlowService();
  service.latency = 2_000;

  const answered = await service.send({ json: HAMMER });
  const response = await answered(5_100);

  assertEquals(response.headers.get("retry-after"), "5");
  await assertError(response, 503, "store_unavailable", /store does not respond/);
});

Deno.test("service logs the error of a request that fails after its timeout", async () => {
  await using service = new SlowService();
  service.latency = 600;
  const answered = await service.send({ json: HAMMER });
  service.delay = 30_000;
  service.expectsErrors = true;

  assertEquals((await answered(5_100)).status, 503);
  assertEquals(service.errors, []);
  await service.time.advance(10_000);

  assertEquals(service.errors.length, 1);
});

Deno.test("service allows 10 s for a body in addition to 5 s for the request", async () => {
  await using service = new SlowService();
  service.latency = 500;

  const slow = await service.send(slowly(() => pause(9_000)));
  assertEquals((await slow(14_000)).status, 201);
  const stalled = await service.send(slowly(never));

  await assertError(await stalled(14_000), 408, "request_timeout", /within 10 s/);
});

Deno.test("service refuses new requests while it stops, and answers those in flight within 3 s", async () => {
  await using service = new SlowService();
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
  assertEquals((await service.fetch("GET /health")).status, 200);
  await assertError(await service.fetch("GET /ready"), 503, "service_stopping", /is stopping/);
  const policies = responses.map(({ headers }) => headers.get("ratelimit-policy"));
  assertEquals(policies, ['"minute";q=60;w=60', '"minute";q=1000;w=60, "day";q=100000;w=86400']);
});
