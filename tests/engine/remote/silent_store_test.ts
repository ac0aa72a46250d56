import { assertEquals, assertGreaterOrEqual, assertLessOrEqual } from "@std/assert";
import { call, outcome, type Reply, tally } from "../../support/client.ts";
import type { ServerProcess } from "../../process/process.ts";
import { LIST } from "../../process/shipped.ts";
import type { TcpProxy } from "../../process/tcp_proxy.ts";
import { inOneDay } from "../../process/temporary_store.ts";
import { FarStore, untilReady } from "./far_store.ts";

const LIMIT = 1_000;
const CLIENTS = 8;

Deno.test("server returns 503 while KV is silent, and exits 1 if stopped meanwhile", async () => {
  await using far = await FarStore.create();
  const { key } = await far.file.createAccount();
  await using server = await far.serve();
  await using stopped = await far.serve();
  const list = (server: ServerProcess) => call(server, key, LIST);
  for (const each of [server, stopped]) assertEquals(outcome(await list(each)), "200");

  far.proxy.treatment = "swallow";
  const swallowed = far.proxy.silence();
  const inFlight = list(stopped);
  await swallowed;
  const [{ code }, first, ...others] = await Promise.all([stopped.stop(), list(server), inFlight]);
  const answers = [...others, first, await list(server)];

  assertEquals(tally(answers), { "503 service_stopping": 1, "503 store_unavailable": 2 });
  assertEquals(answers.map(({ headers }) => headers.get("retry-after")), ["1", "5", "5"]);
  assertEquals([answers[0]?.headers.get("connection"), code], ["close", 1]);
  assertEquals(outcome(await call(server, undefined, "GET /health")), "200");
});

Deno.test("server recovers, with exact counts, after its connections to KV die silently", () =>
  inOneDay(async () => {
    await using far = await FarStore.create();
    const account = await far.file.createAccount({ perDay: LIMIT });
    await using server = await far.serve();
    const answers: Reply[] = [];

    await Promise.all(Array.from({ length: CLIENTS }, async () => {
      for (let status = 0; status !== 429 && answers.length < 2 * LIMIT;) {
        const answer = await call(server, account.key, LIST);
        ({ status } = answer);
        if (answers.push(answer) === LIMIT / 10) loseStore(far.proxy);
        if (status !== 503) continue;
        far.proxy.treatment = "pass";
        await untilReady(server);
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

/** Silences existing connections and refuses new ones. */
function loseStore(proxy: TcpProxy): void {
  proxy.treatment = "refuse";
  proxy.silence();
}
