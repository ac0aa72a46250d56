import { assert, assertEquals, assertGreater } from "@std/assert";
import { openStore } from "../../src/kv/open.ts";
import { Store } from "../../src/kv/store.ts";
import { Harness } from "../harness.ts";
import { call, callAtOnce, remainders, tally, upTo } from "../access/replies.ts";
import { assertExact, createMany } from "./creations.ts";

/** How a KV Connect server behaves. */
interface ServerOptions {
  /** Of so many writes, the reply to one is lost, though it was carried out; none where this is not given. */
  readonly lostOneIn?: number;
}

/** A KV Connect server, in a process of its own because native code takes permissions that tests do not have. */
class ConnectServer implements AsyncDisposable {
  readonly url: string;
  readonly #folder: string;
  readonly #process: Deno.ChildProcess;

  private constructor(url: string, folder: string, process: Deno.ChildProcess) {
    this.url = url;
    this.#folder = folder;
    this.#process = process;
  }

  static async start(
    { lostOneIn = Infinity }: ServerOptions = {},
  ): Promise<ConnectServer> {
    Deno.env.set("DENO_KV_ACCESS_TOKEN", "any token will do");
    const folder = await Deno.makeTempDir();
    const process = new Deno.Command(Deno.execPath(), {
      args: [
        "run",
        "--quiet",
        "--allow-net=127.0.0.1",
        "--allow-ffi",
        "--allow-read",
        `--allow-write=${folder}`,
        "--allow-env",
        "--allow-sys",
        `${import.meta.dirname}/connect_server.ts`,
        `${folder}/animals.kv`,
        `${lostOneIn}`,
      ],
      stdout: "piped",
    }).spawn();
    const reader = process.stdout.pipeThrough(new TextDecoderStream()).getReader();
    const { value = "" } = await reader.read();
    await reader.cancel();
    return new ConnectServer(value.trim(), folder, process);
  }

  /** How many replies were lost. */
  async lost(): Promise<number> {
    return await (await fetch(`${this.url}lost`)).json();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#process.status;
    await Deno.remove(this.#folder, { recursive: true });
  }
}

Deno.test("openStore() opens the KV of a server, with as many checks to a commit as it takes", async () => {
  await using server = await ConnectServer.start();
  using store = await openStore(server.url);

  const versionstamp = await store.commit("test", (operation) => {
    for (const row of upTo(store.maxChecks)) operation.check({ key: [row], versionstamp: null });
  });

  assert(versionstamp);
  assertEquals(store.maxChecks, 10);
});

/** Two instances of the service on the KV of a server. */
class Pair implements Disposable {
  readonly services: readonly Harness[];

  private constructor(services: readonly Harness[]) {
    this.services = services;
  }

  static async on(url: string): Promise<Pair> {
    const kvs = [await Deno.openKv(url), await Deno.openKv(url)];
    return new Pair(kvs.map((kv) => new Harness(kv, new Store(kv, { maxChecks: 10 }))));
  }

  get one(): Harness {
    const [one] = this.services;
    assert(one);
    return one;
  }

  [Symbol.dispose](): void {
    for (const service of this.services) service[Symbol.dispose]();
  }
}

Deno.test("Limiter admits exactly the limit when two instances share the KV of a server", async () => {
  await using server = await ConnectServer.start();
  using pair = await Pair.on(server.url);
  const { secret } = await pair.one.issueKey("pro");

  const replies = await callAtOnce(340, pair.services, secret);

  assertEquals(tally(replies), { 200: 300, "429 rate_limit_minute": 40 });
  assertEquals(remainders(replies), upTo(300));
});

Deno.test("Limiter and Collection stay exact when a server's replies get lost after it applied a commit", async () => {
  await using server = await ConnectServer.start({ lostOneIn: 5 });
  using pair = await Pair.on(server.url);
  const { key: { id }, secret: key } = await pair.one.issueKey("business");

  const responses = await createMany(pair.services, key, { callers: 20, each: 5 });

  await assertExact(pair.one, id, responses);
  assertGreater(await server.lost(), 3);
});

Deno.test("Limiter admits keys by the dozen on the KV of a server", async () => {
  await using server = await ConnectServer.start();
  using pair = await Pair.on(server.url);
  const keys = await Promise.all(upTo(35).map(() => pair.one.issueKey("free")));

  for (const remaining of [58, 56]) {
    const replies = await Promise.all(keys.flatMap(({ secret }) => [0, 1].map(() => call(pair.one, secret))));
    assertEquals(tally(replies), { 200: 70 });
    assertEquals(Math.min(...replies.map((reply) => reply.remaining)), remaining);
  }
});
