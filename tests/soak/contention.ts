import { decodeText } from "../../src/kv/row.ts";
import { addAnimal, call, outcome, readAnimal } from "../support/client.ts";
import type { ServerProcess } from "../support/process.ts";
import { findFaults } from "../support/stored_rows.ts";
import { TemporaryStore } from "../support/temporary_store.ts";
import { atLeast, type Effort, exactly, type Finding, type Note, pause } from "./part.ts";

const PROCESSES = 3;
const ANIMALS = 50;
const CLIENTS = 24;
const LOST_ONE_IN = 10;
const KILL_EVERY = 2_000;
const STATUSES = ["available", "pending", "sold"] as const;
/** Errors that a change may get: the animal has changed, or the file was locked for too long. */
const REFUSALS = ["412 precondition_failed", "503 store_unavailable"];

/** Numbers that changes set in one animal's name: those accepted, and those that may have been. */
interface Tally {
  readonly accepted: Set<number>;
  readonly uncertain: Set<number>;
}

function nothing(): Tally {
  return { accepted: new Set(), uncertain: new Set() };
}

/** Changes the same animals in several processes with If-Match, while processes are killed and responses get lost. */
export async function contention({ seconds }: Pick<Effort, "seconds">, note: Note): Promise<Finding[]> {
  await using store = await TemporaryStore.create();
  const { key } = await store.createAccount();
  const servers = await Promise.all(Array.from({ length: PROCESSES }, () => store.serve()));
  await addAnimals(servers[0], key);
  const tallies = Array.from({ length: ANIMALS }, nothing);
  const end = performance.now() + seconds * 1_000;
  let doubled = 0;
  let kills = 0;

  async function client(): Promise<void> {
    while (performance.now() < end) {
      const index = Math.floor(ANIMALS * Math.random());
      const change = await changeOnce(pick(servers), key, index + 1);
      const { accepted, uncertain } = tallies[index] ?? nothing();
      if (change?.isDone === false) uncertain.add(change.count);
      if (!change?.isDone) continue;
      if (accepted.has(change.count)) doubled++;
      accepted.add(change.count);
    }
  }

  const clients = Promise.all(Array.from({ length: CLIENTS }, client));
  for (; performance.now() < end - KILL_EVERY / 2; kills++) {
    await pause(Math.min(KILL_EVERY, end - performance.now() - KILL_EVERY / 4));
    await servers[kills % PROCESSES]?.crash();
    servers[kills % PROCESSES] = await store.serve();
    note(`contention: ${kills + 1} kills, ${countOf(tallies, "accepted")} changes accepted`);
  }
  await clients;
  for (const server of servers) await server.crash();
  using kv = await Deno.openKv(store.kvPath);
  const counts = await readCounts(kv);
  const missing = tallies.flatMap((tally, index) => missingIn(tally, counts[index] ?? 0));
  const stored = counts.reduce((sum, count) => sum + count, 0);
  const unconfirmed = stored - countOf(tallies, "accepted");

  return [
    atLeast("processes killed", kills, 1),
    atLeast("changes accepted", countOf(tallies, "accepted"), ANIMALS),
    atLeast("changes stored although the response was lost", unconfirmed, 0),
    exactly("changes accepted but not stored, or stored but not sent", missing.length, 0),
    exactly("changes accepted for the same state", doubled, 0),
    exactly("rows without their counterpart", (await findFaults(kv)).length, 0),
  ];
}

/** Increments an animal's name unless it has changed; undefined if the change was certainly not made. */
async function changeOnce(
  server: ServerProcess,
  key: string,
  id: number,
): Promise<{ count: number; isDone: boolean } | undefined> {
  let count: number | undefined;
  try {
    const got = await call(server, key, `GET /v1/pets/${id}`);
    if (got.status !== 200) return undefined;
    count = Number(readAnimal(got.json).name) + 1;
    const answer = await call(server, key, `PATCH /v1/pets/${id}`, {
      json: { name: `${count}`, status: pick(STATUSES) },
      headers: { "if-match": got.headers.get("etag") ?? "" },
      signal: Math.random() < 1 / LOST_ONE_IN ? AbortSignal.timeout(5 * Math.random()) : null,
    });
    if (answer.status === 200) return { count, isDone: true };
    if (!REFUSALS.includes(outcome(answer))) throw new Error(outcome(answer));
    return answer.status === 503 ? { count, isDone: false } : undefined;
  } catch (error) {
    const isLost = error instanceof TypeError || error instanceof SyntaxError ||
      error instanceof DOMException;
    if (!isLost) throw error;
    return count === undefined ? undefined : { count, isDone: false };
  }
}

/** Accepted numbers above the stored one, and numbers up to it that no change has set. */
function missingIn({ accepted, uncertain }: Tally, stored: number): number[] {
  const beyond = [...accepted].filter((count) => count > stored);
  const all = Array.from({ length: stored }, (_, index) => index + 1);
  return [...beyond, ...all.filter((count) => !accepted.has(count) && !uncertain.has(count))];
}

function countOf(tallies: readonly Tally[], kind: keyof Tally): number {
  return tallies.reduce((sum, tally) => sum + tally[kind].size, 0);
}

async function addAnimals(server: ServerProcess | undefined, key: string): Promise<void> {
  for (let id = 1; server && id <= ANIMALS; id++) await addAnimal(server, key, "0");
}

/** The number in each animal's name, in the order of IDs. */
async function readCounts(kv: Deno.Kv): Promise<number[]> {
  return await Array.fromAsync(
    kv.list({ prefix: ["pets"] }),
    (entry) => Number(readAnimal(JSON.parse(decodeText(entry).split("\n")[0] ?? "")).name),
  );
}

function pick<Item>(items: readonly Item[]): Item {
  const item = items[Math.floor(items.length * Math.random())];
  if (item === undefined) throw new RangeError("There is nothing to pick");
  return item;
}
