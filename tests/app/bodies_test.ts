import { pause } from "../../src/base/time.ts";
import { originOf, Server } from "../../src/web/server.ts";
import { assertError } from "../support/assertions.ts";
import { call } from "../support/client.ts";
import { Harness, RecordingService } from "../support/harness.ts";
import { ALL } from "../support/operations.ts";
import { HAMMER } from "../support/things.ts";
import { assertEquals } from "@std/assert";
import { setImmediate } from "node:timers/promises";

const CHUNKED = { "transfer-encoding": "chunked" };

function encode(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}

/** A body whose parts each arrive after a pause. */
function pausingBody(parts: readonly string[], pause: () => Promise<void>) {
  const source = { cancelled: false };
  let next = 0;
  const pull = async (controller: ReadableStreamDefaultController) => {
    await pause();
    const part = parts[next++];
    if (part === undefined) controller.close();
    else controller.enqueue(encode(part));
  };
  const cancel = () => void (source.cancelled = true);
  return Object.assign(source, { stream: new ReadableStream({ pull, cancel }, { highWaterMark: 0 }) });
}

Deno.test.each([[false, 408], [true, 201]])(
  "service answers a chunked body that pauses for 2,100 ms, on Deploy: %s, with %i",
  async (onDeploy, status) => {
    await using service = await RecordingService.open({ onDeploy });
    const { apiKey: key } = await service.time.until(service.createAccount(), 1_000);
    const { stream: body } = pausingBody(['{"name":"Hammer",', '"weight":1}'], () => pause(2_100));
    const headers = { "content-type": "application/json", ...CHUNKED };

    const response = await service.time.until(
      service.fetch("POST /v1/things", { key, headers, body }),
      10_000,
    );

    assertEquals(response.status, status);
  },
);

Deno.test.each([["1.1", true], ["2", false]])(
  "service accepts a body of unknown length over HTTP/%s",
  async (_, http1) => {
    await using service = await Harness.open();
    const { apiKey } = await service.createAccount("free");
    const server = new Server({ port: 0, hostname: "127.0.0.1", onFailure() {} }, service.app.fetch);
    using client = Deno.createHttpClient({ http1, http2: !http1 });

    const response = await fetch(`${originOf(server.address)}/v1/things`, {
      client,
      method: "POST",
      headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
      body: ReadableStream.from(['{"name":"Hammer",', '"weight":1}'].map(encode)),
    });

    assertEquals([response.status, (await response.json()).name], [201, "Hammer"]);
    await server.stop();
  },
);

/** A service, and clients whose bodies stall until it is disposed. */
class Crowd implements AsyncDisposable {
  readonly service: Harness;
  readonly #end: PromiseWithResolvers<void> = Promise.withResolvers();
  readonly #sent: Promise<Response>[] = [];

  private constructor(service: Harness) {
    this.service = service;
  }

  static async open(): Promise<Crowd> {
    return new Crowd(await Harness.open(ALL));
  }

  /** Creates an account, and returns its key. */
  async join(): Promise<string> {
    return (await this.service.createAccount({ minute: 2_000, day: 2_000 })).apiKey;
  }

  /** Begins `count` bodies at once, of an account or, without a key, of many addresses. Returns how many get a place. */
  async stall(count: number, key?: string): Promise<number> {
    const target = key === undefined ? "POST /v1/accounts" : "POST /v1/things";
    const options = { ...(key !== undefined && { key }), headers: { "content-type": "application/json" } };
    const [begun, refused] = [new Set<number>(), new Set<number>()];
    for (let index = 0; index < count; index++) {
      const pull = async (controller: ReadableStreamDefaultController) => {
        begun.add(index);
        await this.#end.promise;
        controller.close();
      };
      this.service.address = `192.0.2.${index % 250}`;
      const body = new ReadableStream({ pull }, { highWaterMark: 0 });
      const sent = this.service.fetch(target, { ...options, body });
      this.#sent.push(sent);
      sent.then(({ status }) => status === 503 && refused.add(index));
    }
    for (let turn = 0; turn < 1_000_000 && begun.union(refused).size < count; turn++) await setImmediate();
    // A body takes its place one turn after its reading has begun.
    for (let turn = 0; turn < 10; turn++) await setImmediate();
    return count - refused.size;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.resolve();
    for (const sent of this.#sent) await (await sent).body?.cancel();
    await this.service[Symbol.asyncDispose]();
  }
}

Deno.test("service reads 1,000 bodies at a time, at most 50 of an account while fewer than 500 can be added", async () => {
  await using crowd = await Crowd.open();
  const keys: string[] = [];
  for (let count = 0; count < 12; count++) keys.push(await crowd.join());

  const stalled: number[] = [];
  for (const key of keys) stalled.push(await crowd.stall(key === keys[0] ? 600 : 60, key));

  assertEquals(stalled, [501, 50, 50, 50, 50, 50, 50, 50, 50, 50, 49, 0]);
});

Deno.test("service reads 500 bodies without an account at a time, and those of accounts and operators beside them", async () => {
  await using crowd = await Crowd.open();

  assertEquals(await crowd.stall(520), 500);
  assertEquals(await crowd.stall(60, await crowd.join()), 50);
  const created = await crowd.service.fetch("POST /operator/v1/accounts", {
    key: ALL.operatorToken,
    json: { name: "me" },
  });
  assertEquals(created.status, 201);
});

Deno.test.each([["leased", 8], ["committed", 0]])(
  "service does not charge a request whose body gets no place, and gives its %s permit back",
  async (_, before) => {
    await using crowd = await Crowd.open();
    const key = await crowd.join();
    const other = await crowd.join();
    await crowd.stall(501, other);
    await crowd.stall(50, key);
    // Requests in quick succession create a lease.
    for (let count = 0; count < before; count++) await call(crowd.service, key);
    const used = 50 + before;

    const refused = await crowd.service.fetch("POST /v1/things", { key, json: HAMMER });

    assertEquals(refused.headers.get("retry-after"), "1");
    assertEquals(refused.headers.get("x-ratelimit-remaining"), `${2_000 - used}`);
    await assertError(refused, 503, "overloaded", /Too many bodies are being read/);
    assertEquals((await call(crowd.service, key)).remaining, 2_000 - used - 1);
    await crowd.service.app.settle();
    const account = await crowd.service.fetch("GET /v1/account", { key });
    assertEquals((await account.json()).usage.minute.used, used + 2);
  },
);

Deno.test("service gives back no permit for a rotation that took none, if its body gets no place", async () => {
  await using crowd = await Crowd.open();
  const { service } = crowd;
  const { account: { id }, apiKey: key } = await service.createAccount({ minute: 50, day: 2_000 });
  await crowd.stall(501, await crowd.join());
  await crowd.stall(50, key);

  const refused = await call(service, key, "POST /v1/account/key", { json: {} });

  assertEquals([refused.code, refused.remaining], ["overloaded", 0]);
  await service.app.settle();
  assertEquals((await service.accounts.usage(id)).used, 50);
});

Deno.test("service does not charge the address of a request whose body gets no place", async () => {
  await using crowd = await Crowd.open();
  await crowd.stall(500);
  crowd.service.address = "198.51.100.1";

  const refused = await call(crowd.service, undefined, "POST /v1/accounts", { json: { name: "me" } });

  assertEquals([refused.code, refused.remaining], ["overloaded", 60]);
  assertEquals((await call(crowd.service)).remaining, 59);
});

Deno.test("service reads more than 1,000 bodies at a time if they arrive with their headers", async () => {
  await using service = await Harness.open();
  const { apiKey: key } = await service.createAccount({ minute: 2_000, day: 2_000 });
  const sent = Array.from({ length: 1_100 }, () => service.fetch("POST /v1/things", { key, json: {} }));

  const statuses = new Set((await Promise.all(sent)).map(({ status }) => status));

  assertEquals(statuses, new Set([400]));
});
