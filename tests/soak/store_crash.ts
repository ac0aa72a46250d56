import { ConnectServer } from "../support/process.ts";
import { findFaults } from "../support/stored_rows.ts";
import { TemporaryStore } from "../support/temporary_store.ts";
import { Client, LimitedAccount } from "./clients.ts";
import { Ledger } from "./ledger.ts";
import { atLeast, atMost, type Effort, exactly, type Finding, type Note, pause } from "./part.ts";
import { Steady } from "./steady.ts";
import { readStored } from "./stored.ts";

const CLIENTS = 8;
const PER_DAY = 2_000;
/** In ms: the deadline of a request, and how much later the response may come on a busy machine. */
const DEADLINE = 5_000 + 500;
/** In ms: how long the service may take to recover after its KV server. */
const RECOVERY = 10_000;
const NOTICE_EVERY = 10;
/** Lifetime of processes, in ms. */
const LIFETIME = 3_600_000;

/** Kills and freezes the KV Connect server of the service. */
export async function storeCrash(
  { storeKills, stops, stopSeconds }: Pick<Effort, "storeKills" | "stops" | "stopSeconds">,
  note: Note,
): Promise<Finding[]> {
  await using store = await TemporaryStore.create();
  const ledger = new Ledger();
  const { key } = await store.createAccount();
  const limited = new LimitedAccount(await store.createAccount({ perDay: PER_DAY }));
  await using cleanup = new AsyncDisposableStack();
  const startKv = async (port = 0) =>
    cleanup.use(await ConnectServer.start({ file: store.kvPath, port, lifetime: LIFETIME }));
  let kvServer = await startKv();
  const { href, port } = new URL(kvServer.url);
  await using server = await store.serve({ KV_PATH: href }, { lifetime: LIFETIME });
  const clients = Array.from(
    { length: CLIENTS },
    (_, index) => new Client(`${index}`, { ledger, key, limited: [limited] }),
  );
  const load = new Steady(clients.map((client) => () => client.send(server)));
  const recoveries: number[] = [];

  for (let kill = 1; kill <= storeKills; kill++) {
    await load.answered(100);
    await kvServer.crash();
    // Usually it is back before any request fails.
    await pause(kill % 5 === 0 ? 7_000 * Math.random() : 500 * Math.random());
    kvServer = await startKv(Number(port));
    recoveries.push(await load.answered(1));
    if (kill % NOTICE_EVERY === 0) note(`store-crash: ${kill} kills, slowest response ${load.slowest} ms`);
  }
  const before = load.unavailable;
  for (let stop = 1; stop <= stops; stop++) {
    await load.answered(100);
    kvServer.signal("SIGSTOP");
    await pause(stopSeconds * 1_000);
    kvServer.signal("SIGCONT");
    recoveries.push(await load.answered(1));
    note(`store-crash: ${stop} freezes, ${load.unavailable} responses 503`);
  }
  const unavailable = load.unavailable - before;
  const end = await load.end();
  const { code } = await server.stop();
  await kvServer.crash();
  using kv = await Deno.openKv(store.kvPath);
  ledger.check(await readStored(kv));

  return [
    atLeast("kills and freezes of the KV server", storeKills + stops, 1),
    atLeast("acknowledged writes", ledger.acknowledged, storeKills + stops),
    exactly("of them lost", ledger.lost, 0),
    exactly("applied twice", ledger.doubled, 0),
    exactly("rows without their counterpart", (await findFaults(kv)).length, 0),
    exactly("requests above the limit per day", limited.countAbove(PER_DAY), 0),
    atLeast("503 responses while it was frozen", unavailable, stops),
    atMost("slowest response", load.slowest, DEADLINE, " ms"),
    atMost("longest recovery, without a restart", Math.max(...recoveries), RECOVERY, " ms"),
    atMost("until the last response at the end", end, DEADLINE, " ms"),
    exactly("exit code of the service", code, 0),
  ];
}
