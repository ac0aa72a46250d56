import { assertEquals, assertGreaterOrEqual, assertLessOrEqual } from "@std/assert";
import { VERSION } from "../../src/version.ts";
import { ConnectServer } from "../support/connect_server.ts";
import type { Variables } from "../support/deno_process.ts";
import { TcpProxy } from "../support/tcp_proxy.ts";
import { addAnimal, type Answer, call, outcome, tally } from "./client.ts";
import { ServerProcess } from "./server_process.ts";
import { inOneDay, TemporaryStore } from "./temporary_store.ts";

const LIMIT = 3_000;
const CLIENTS = 8;

/** A KV file behind a KV Connect server, and that behind a network which can be made bad. */
class FarStore implements AsyncDisposable {
  readonly file: TemporaryStore;
  readonly proxy: TcpProxy;
  readonly #server: ConnectServer;

  private constructor(file: TemporaryStore, server: ConnectServer) {
    this.file = file;
    this.#server = server;
    this.proxy = new TcpProxy(server.url);
  }

  static async create(): Promise<FarStore> {
    const file = await TemporaryStore.create();
    return new FarStore(file, await ConnectServer.start({ file: file.kvPath }));
  }

  serve(): Promise<ServerProcess> {
    return ServerProcess.start({ KV_PATH: this.proxy.url });
  }

  serveOnDeploy(variables: Variables = {}): Promise<ServerProcess> {
    const deployed = { DENO_DEPLOYMENT_ID: "7f3k", DENO_KV_DEFAULT_PATH: this.proxy.url };
    return ServerProcess.start({ ...deployed, ...variables });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.proxy[Symbol.asyncDispose]();
    await this.#server[Symbol.asyncDispose]();
    await this.file[Symbol.asyncDispose]();
  }
}

Deno.test("server waits for a KV Connect server, and says so in one line, when that is not up yet", async () => {
  await using far = await FarStore.create();
  const { key } = await far.file.createAccount();
  far.proxy.treatment = "refuse";

  await using server = new ServerProcess({ KV_PATH: far.proxy.url });
  await server.wrote("stderr", /^Waiting/m);
  far.proxy.treatment = "pass";
  await server.listening();
  const answer = await addAnimal(server, "Rex", { key });
  const { code, errorLines } = await server.stop();

  assertEquals(outcome(answer), "201");
  assertEquals(code, 0);
  const { host } = new URL(far.proxy.url);
  assertEquals(errorLines, [
    `Waiting for the KV ${host} to answer.`,
    `Listening on http://localhost:${server.port}/`,
    `Animal Store ${VERSION}: environment staging, sign-up open, data in the KV ${host}.`,
  ]);
});

Deno.test("server exits 0 when it is stopped while it waits for a KV Connect server", async () => {
  await using far = await FarStore.create();
  far.proxy.treatment = "swallow";
  await using server = new ServerProcess({ KV_PATH: far.proxy.url });
  await server.wrote("stderr", /^Waiting/m);

  assertEquals((await server.stop()).code, 0);
});

Deno.test("server answers 503 in time when the store is silent, and exits 1 when it is stopped then, as it cannot give back what it leased", async () => {
  await using far = await FarStore.create();
  const { key } = await far.file.createAccount();
  await using server = await far.serve();
  await using stopped = await far.serve();
  const list = (server: ServerProcess) => call(server, "GET /v1/pets", { key });
  for (const each of [server, stopped]) assertEquals(outcome(await list(each)), "200");

  far.proxy.treatment = "swallow";
  const swallowed = far.proxy.silence();
  const inFlight = list(stopped);
  await swallowed;
  const { code } = await stopped.stop();
  const answers = [await inFlight, await list(server), await list(server)];

  assertEquals(tally(answers), { "503 store_unavailable": 3 });
  assertEquals(answers.map(({ headers }) => headers.get("retry-after")), ["1", "5", "5"]);
  assertEquals([answers[0]?.headers.get("connection"), code], ["close", 1]);
  assertEquals(outcome(await call(server, "GET /health")), "200");
});

Deno.test("server recovers by itself and stays exact when its store is away after connections to it died silently", () =>
  inOneDay(async () => {
    await using far = await FarStore.create();
    const account = await far.file.createAccount({ perDay: LIMIT });
    await using server = await far.serve();
    const answers: Answer[] = [];

    await Promise.all(Array.from({ length: CLIENTS }, async () => {
      for (let status = 0; status !== 429;) {
        const answer = await call(server, "GET /v1/pets", account);
        ({ status } = answer);
        if (answers.push(answer) === LIMIT / 10) loseStore(far.proxy);
        if (status === 503) far.proxy.treatment = "pass";
      }
    }));
    const { code } = await server.stop();
    const { usedToday, leasedToday } = await far.file.usageOf(account);

    const { 200: admitted = 0, "503 store_unavailable": failed = 0, ...refused } = tally(answers);
    assertEquals(refused, { "429 rate_limit_day": CLIENTS });
    assertGreaterOrEqual(failed, 1);
    assertGreaterOrEqual(usedToday, admitted);
    assertLessOrEqual(usedToday, LIMIT);
    assertLessOrEqual(usedToday - leasedToday, admitted + failed);
    assertEquals(code, 0);
  }));

Deno.test("server recovers when connections to Deno Deploy's own KV died silently", async () => {
  await using far = await FarStore.create();
  const { key } = await far.file.createAccount();
  await using server = await far.serveOnDeploy();
  const list = async () => outcome(await call(server, "GET /v1/pets", { key }));
  assertEquals(await list(), "200");

  far.proxy.silence();

  assertEquals(await list(), "503 store_unavailable");
  while (outcome(await call(server, "GET /ready")) !== "200");
  assertEquals(await list(), "200");
});

Deno.test("server says what is missing when nobody can get a key on Deno Deploy", async () => {
  await using far = await FarStore.create();
  const lines = [];

  for (const variables of [{}, { DENO_TIMELINE: "production" }]) {
    await using server = await far.serveOnDeploy(variables);
    await server.wrote("stderr", /^Animal Store .+\n/m);
    const { errorLines } = await server.stop();
    lines.push(errorLines.slice(2));
  }

  assertEquals(lines, [[], [
    "Nobody can get an API key: set OPERATOR_TOKEN, for commands, or SIGN_UP=open.",
  ]]);
});

/** Has connections die silently, and others refused. */
function loseStore(proxy: TcpProxy): void {
  proxy.treatment = "refuse";
  proxy.silence();
}
