import { assertEquals } from "@std/assert";
import { Server, type ServerHandler, uncompressed } from "../../../src/http/server.ts";
import { VirtualTime } from "../../support/time.ts";

const EXHAUSTED = new Error("Too many open files");

/** In virtual time, `Deno.serve` whose servers stop accepting connections when they are told to. */
class FakeServe implements Disposable {
  readonly time: VirtualTime = new VirtualTime();
  /** Those that were started. */
  readonly servers: { port: number; handler: unknown; exhaust: () => void; end: () => void }[] = [];
  /** What keeps others from listening. */
  failure: Error | undefined;
  readonly #original = Deno.serve;

  constructor() {
    const serve = ({ port = NaN, hostname, automaticCompression }: Deno.ServeTcpOptions, given: unknown) => {
      if (this.failure) throw this.failure;
      assertEquals([hostname, automaticCompression], ["127.0.0.1", false]);
      const [finished, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const exhaust = () => finished.reject(EXHAUSTED);
      this.servers.push({ port, handler: given, exhaust, end: ended.resolve });
      return { addr: { port: 4711 }, finished: finished.promise, shutdown: () => ended.promise };
    };
    Object.assign(Deno, { serve });
  }

  /** Starts the server, and notes what it tells of trouble. */
  start(failures: unknown[] = []): Server {
    const onFailure = (error: unknown) => void failures.push(error);
    return new Server({ port: 0, hostname: "127.0.0.1", onFailure }, handler);
  }

  [Symbol.dispose](): void {
    Object.assign(Deno, { serve: this.#original });
    this.time[Symbol.dispose]();
  }
}

function handler(): Response {
  return new Response();
}

Deno.test("Server serves again on its port after a failure, keeps trying, and tells once", async () => {
  using fake = new FakeServe();
  const failures: unknown[] = [];
  const { port } = fake.start(failures).address;

  fake.servers[0]?.exhaust();
  await fake.time.advance(999);
  assertEquals(fake.servers.length, 1);
  fake.failure = new Deno.errors.AddrInUse();
  await fake.time.advance(120_000);
  fake.failure = undefined;
  await fake.time.advance(1_000);
  fake.servers[1]?.exhaust();
  await fake.time.advance(59_000);
  assertEquals([fake.servers.length, failures], [3, [EXHAUSTED]]);
  await fake.time.advance(2_000);
  fake.servers[2]?.exhaust();
  await fake.time.advance(1_000);

  assertEquals(failures, [EXHAUSTED, EXHAUSTED]);
  assertEquals(fake.servers.map((server) => server.port), [0, port, port, port]);
  assertEquals(new Set(fake.servers.map((server) => server.handler)), new Set([handler]));
});

Deno.test("stop() waits for the connections of every server, and starts none any more", async () => {
  using fake = new FakeServe();
  const server = fake.start();
  fake.servers[0]?.exhaust();
  await fake.time.advance(1_000);
  fake.servers[1]?.exhaust();
  let stopped = false;

  server.stop().then(() => stopped = true);
  fake.servers[1]?.end();
  await fake.time.advance(10_000);
  assertEquals([stopped, fake.servers.length], [false, 2]);
  fake.servers[0]?.end();
  await fake.time.advance(0);

  assertEquals(stopped, true);
});

Deno.test("uncompressed() forbids to transform the response, beside what it says already", async () => {
  const directivesOf = async (headers: Record<string, string>) => {
    const handler: ServerHandler = () => Promise.resolve(new Response("", { headers }));
    const remoteAddr: Deno.NetAddr = { transport: "tcp", hostname: "127.0.0.1", port: 1 };
    const info = { remoteAddr, completed: Promise.resolve() };
    const response = await uncompressed(handler)(new Request("http://localhost/"), info);
    return response.headers.get("cache-control");
  };

  assertEquals(await directivesOf({}), "no-transform");
  assertEquals(
    await directivesOf({ "cache-control": "private, no-cache" }),
    "private, no-cache, no-transform",
  );
});
