import { assert, assertEquals, assertGreaterOrEqual, assertLessOrEqual, assertMatch } from "@std/assert";
import { VERSION } from "../../../src/app/version.ts";
import { pause } from "../../../src/base/time.ts";
import { call, outcome, type Reply, tally, upTo } from "../../support/client.ts";
import { ConnectServer, IN_HASTE, runServer, ServerProcess, type Variables } from "../../process/process.ts";
import { addItem, LIST, TITLE } from "../../process/shipped.ts";
import { TcpProxy } from "../../process/tcp_proxy.ts";
import { inOneDay, TemporaryStore } from "../../process/temporary_store.ts";

const LIMIT = 200;

/** A KV file behind a KV Connect server, and a proxy to that server. */
class FarStore implements AsyncDisposable {
  readonly file: TemporaryStore;
  readonly proxy: TcpProxy;
  /** Variables of a process that uses it as a KV Connect server, and of one on Deno Deploy. */
  readonly asServer: Variables;
  readonly asDeploy: Variables;
  readonly #server: ConnectServer;

  private constructor(file: TemporaryStore, server: ConnectServer) {
    this.file = file;
    this.#server = server;
    this.proxy = new TcpProxy(server.url);
    this.asServer = { KV_PATH: this.proxy.url };
    this.asDeploy = { DENO_DEPLOYMENT_ID: "7f3k", DENO_KV_DEFAULT_PATH: this.proxy.url };
  }

  static async create(): Promise<FarStore> {
    const file = await TemporaryStore.create();
    return new FarStore(file, await ConnectServer.start({ file: file.kvPath }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.proxy[Symbol.asyncDispose]();
    await this.#server[Symbol.asyncDispose]();
    await this.file[Symbol.asyncDispose]();
  }
}

Deno.test("server waits while its KV Connect server is not up yet, and exits 0 if it is stopped meanwhile", async () => {
  await using far = await FarStore.create();
  const { key } = await far.file.createAccount();
  far.proxy.refuses = true;
  await using server = new ServerProcess(far.asServer);
  await using stopped = new ServerProcess(far.asServer);
  for (const waiting of [stopped, server]) await waiting.wrote("stderr", /^Waiting/m);
  assertEquals((await stopped.stop()).code, 0);

  far.proxy.refuses = false;
  await server.listening();
  const answer = await addItem(server, key);
  const { code, errorLines } = await server.stop();

  assertEquals([outcome(answer), code], ["201", 0]);
  const { host } = new URL(far.proxy.url);
  assertEquals(errorLines, [
    `Waiting for the KV ${host} to respond.`,
    `Listening on http://localhost:${server.port}/`,
    `${TITLE} ${VERSION}: environment staging, sign-up open, data version 1 in the KV ${host}.`,
  ]);
});

Deno.test("server returns 503 and recovers, with exact counts, after its connections to any KV die silently", () =>
  inOneDay(async () => {
    await Promise.all((["asServer", "asDeploy"] as const).map(async (kind) => {
      await using far = await FarStore.create();
      const account = await far.file.createAccount({ perDay: LIMIT });
      await using server = await ServerProcess.start(far[kind], IN_HASTE);
      const replies: Reply[] = [];
      const list = async () => {
        const reply = await call(server, account.key, LIST);
        replies.push(reply);
        return reply.status;
      };
      for (const _ of upTo(20)) await list();

      far.proxy.silence();
      const silent = await Promise.all(upTo(8).map(list));
      assert(silent.includes(503) && !silent.includes(429), `${silent}`);
      assertEquals(outcome(await call(server, undefined, "GET /health")), "200");
      while ((await call(server, undefined, "GET /ready")).status !== 200) await pause(50);
      await Promise.all(
        upTo(8).map(async () => {
          while (await list() !== 429);
        }),
      );
      const { code } = await server.stop();
      const { usedToday, leasedToday } = await far.file.usageOf(account);

      const { 200: admitted = 0, "503 store_unavailable": failed = 0, ...refused } = tally(replies);
      assertEquals(refused, { "429 rate_limit_day": 8 });
      assertEquals(replies.find(({ status }) => status === 503)?.headers.get("retry-after"), "5");
      assertGreaterOrEqual(usedToday, admitted);
      assertLessOrEqual(usedToday, LIMIT);
      assertLessOrEqual(usedToday - leasedToday, admitted + failed);
      assertEquals(code, 0);
    }));
  }));

Deno.test("server refuses to start on Deno Deploy if no KV is attached", async () => {
  const { code, stdout, errorLines } = await runServer({ DENO_DEPLOYMENT_ID: "7f3k" });

  assertEquals([code, stdout, errorLines.length], [1, "", 1], errorLines.join("\n"));
  assertMatch(errorLines.join(), /^The KV of this deployment cannot be used: .+[^.]\.$/);
});
