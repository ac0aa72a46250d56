import { assertEquals, assertGreaterOrEqual } from "@std/assert";
import { dayEnd } from "../../src/limits/usage.ts";
import { decodeJson, decodeText } from "../../src/engine/row.ts";
import { ConnectServer, type ServerProcess } from "../process/process.ts";
import { idIn, SHIPPED, textField } from "../process/shipped.ts";
import { findFaults } from "../support/stored_rows.ts";
import { TemporaryStore } from "../process/temporary_store.ts";
import { Client, LimitedAccount } from "./clients.ts";
import { Ledger, type Stored } from "./ledger.ts";
import { pause } from "../../src/base/time.ts";

const CLIENTS = 12;
/** One in this many replies of the KV Connect server is lost. */
const LOST_ONE_IN = 5;
/** Number of kills between checks of all rows. */
const KILLS_PER_CHECK = 10;

/**
 * Repeatedly kills two processes of the service under mixed load, the second one while it goes on without the first. They
 * use the same KV file: in turn directly, and through a KV Connect server, which loses replies and is killed, too.
 */
export async function crash(kills: number, note: (line: string) => void): Promise<void> {
  await using store = await TemporaryStore.create();
  const ledger = new Ledger();
  const { key } = await store.createAccount();
  const perDay = 10 * kills;
  const limited = new LimitedAccount(await store.createAccount({ perDay }));
  const field = textField("1.23 456");
  const shop = { textField: field, ledger, key, limited };
  const clients = Array.from({ length: CLIENTS }, (_, index) => new Client(`${index}`, shop));
  const faults: string[] = [];
  let [lostReplies, uncounted] = [0, 0];

  for (let kill = 1; kill <= kills; kill++) {
    lostReplies += await killUnderLoad(store, clients, kill % 2 === 0);
    using kv = await Deno.openKv(store.kvPath);
    ledger.check(await readStored(kv, field));
    const usage = await store.usageOf(limited.credential);
    const admitted = limited.admitted.get(dayEnd(usage) / 1_000) ?? 0;
    uncounted = Math.max(uncounted, admitted - usage.usedToday);
    if (kill % KILLS_PER_CHECK !== 0 && kill !== kills) continue;
    faults.push(...await findFaults(kv, [SHIPPED]));
    note(`${kill} kills, ${ledger.acknowledged} writes acknowledged`);
  }

  const { acknowledged, lost, doubled, wrongIds } = ledger;
  assertGreaterOrEqual(acknowledged, kills);
  assertGreaterOrEqual(lostReplies, 1);
  assertEquals({ lost, doubled, wrongIds, faults }, { lost: 0, doubled: 0, wrongIds: 0, faults: [] });
  assertEquals([limited.countAbove(perDay), uncounted], [0, 0]);
}

/**
 * Kills one process after the other while every client sends one request after another. Resolves to the number of replies
 * that the KV Connect server has lost.
 */
async function killUnderLoad(
  store: TemporaryStore,
  clients: readonly Client[],
  isRemote: boolean,
): Promise<number> {
  const options = { file: store.kvPath, lostOneIn: LOST_ONE_IN };
  const kvServer = isRemote ? await ConnectServer.start(options) : undefined;
  const variables = kvServer ? { KV_PATH: kvServer.url } : {};
  const servers = await Promise.all([store.serve(variables), store.serve(variables)]);
  let answered = Promise.withResolvers<void>();
  const work = clients.map(async (client) => {
    for (let server = pick(servers); server !== undefined; server = pick(servers)) {
      try {
        await client.send(server);
        answered.resolve();
      } catch (error) {
        // This is how fetch rejects if there is no response, or only a part of one.
        if (!(error instanceof TypeError || error instanceof SyntaxError)) throw error;
      }
    }
  });
  let lost = 0;
  for (let server = servers[0]; server !== undefined; server = servers[0]) {
    answered = Promise.withResolvers();
    await Promise.race([answered.promise, Promise.all(work)]);
    await pause(50 + 200 * Math.random());
    lost = await kvServer?.lost() ?? 0;
    servers.shift();
    await server.crash();
  }
  await kvServer?.crash();
  await Promise.all(work);
  return lost;
}

function pick(servers: readonly ServerProcess[]): ServerProcess | undefined {
  return servers[Math.floor(Math.random() * servers.length)];
}

/** Reads every item and message of a KV. */
async function readStored(kv: Deno.Kv, textField: string): Promise<Stored[]> {
  const items = await Array.fromAsync(kv.list({ prefix: SHIPPED.rows.items }), (entry): Stored => {
    const item = JSON.parse(decodeText(entry).split("\n")[0] ?? "");
    const [name = "", value] = item[textField].split(" ");
    return { id: idIn(item), name, value: Number(value) };
  });
  const messages = await Array.fromAsync(kv.list({ prefix: ["messages"] }), (entry): Stored => {
    return { name: decodeJson<{ message: string }>(entry).message, value: 0 };
  });
  return [...items, ...messages];
}
