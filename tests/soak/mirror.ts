// Mirrors that follow the feed of changes while processes and their KV server are killed.
import { assert, assertEquals, assertGreater } from "@std/assert";
import { pause } from "../../src/base/time.ts";
import { ConnectServer, type ServerProcess } from "../process/process.ts";
import { TcpProxy } from "../process/tcp_proxy.ts";
import { type Credential, TemporaryStore } from "../process/temporary_store.ts";
import { call, nextTarget, type Reply } from "../support/client.ts";
import { OPERATOR_TOKEN } from "../support/desk.ts";
import { findFaults } from "../support/stored_rows.ts";
import { CATALOGUE } from "./catalogue.ts";

/** Options of {@linkcode mirror}. */
export interface MirrorOptions {
  readonly isRemote: boolean;
  /** Number of kills of processes, and how many of these also kill the KV server. */
  readonly kills: number;
  readonly serverKills: number;
  /** Time between kills, in ms. */
  readonly interval: number;
}

const WRITERS_OF_ACCOUNT = 4;
/** Number of items that the writers of an account change. */
const RECENT = 20;
const STARTS = 5;
/** One in this many replies of the KV server is lost. */
const LOST_ONE_IN = 100;
const COLLECTIONS = ["things", "notes"] as const;
type Collection = typeof COLLECTIONS[number];

/** A change in the feed. */
interface Change {
  readonly collection: Collection;
  readonly id: number;
  readonly change: "created" | "updated" | "deleted";
}

/** What is known of the changes of an item: how many were acknowledged, and how many may have been made, too. */
interface Known {
  readonly owner: string;
  updates: number;
  maybeUpdates: number;
  isDeleted: boolean;
  maybeDeleted: boolean;
}

/** The processes, some of which may be down. */
class Processes implements AsyncDisposable {
  readonly up: ServerProcess[] = [];
  readonly #start: () => Promise<ServerProcess>;

  constructor(start: () => Promise<ServerProcess>) {
    this.#start = start;
  }

  /** Starts one. A start may fail if its first replies are lost. */
  async add(tries: number = STARTS): Promise<void> {
    try {
      this.up.push(await this.#start());
    } catch (error) {
      if (tries === 1) throw error;
      await this.add(tries - 1);
    }
  }

  /** Kills one, and starts another. */
  async replace(): Promise<void> {
    const [killed] = this.up.splice(Math.floor(Math.random() * this.up.length), 1);
    await killed?.crash();
    await this.add();
  }

  /** Sends a request to any; undefined if there was no complete response, or it does not say what was done. */
  async ask(target: string, key: string, json?: unknown): Promise<Reply | undefined> {
    const process = this.up[Math.floor(Math.random() * this.up.length)];
    if (process === undefined) return await pause(50).then(() => undefined);
    try {
      const reply = await call(process, key, target, json === undefined ? {} : { json });
      return reply.status === 503 || reply.status === 500 ? undefined : reply;
    } catch (error) {
      if (error instanceof TypeError || error instanceof SyntaxError) return undefined;
      throw error;
    }
  }

  /** Repeats a request that changes nothing, until it has a response. */
  async read(target: string, key: string, json?: unknown): Promise<Reply> {
    for (;; await pause(20)) {
      const reply = await this.ask(target, key, json);
      if (reply) return reply;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const process of this.up) await process.crash();
  }
}

function nameOf({ collection, id }: Pick<Change, "collection" | "id">): string {
  return `${collection} ${id}`;
}

/** Where somebody reads: `/v1` or, for operators, `/operator/v1`. */
function rootOf(key: string): string {
  return key === OPERATOR_TOKEN ? "/operator/v1" : "/v1";
}

/** All items that somebody sees, as JSON, by collection and id. */
async function listAll(processes: Processes, key: string): Promise<Map<string, string>> {
  const items = new Map<string, string>();
  for (const collection of COLLECTIONS) {
    for (let target: string | undefined = `GET ${rootOf(key)}/${collection}?limit=100`; target;) {
      const reply: Reply = await processes.read(target, key);
      assert(Array.isArray(reply.json), JSON.stringify(reply.json));
      for (const item of reply.json) items.set(`${collection} ${item.id}`, JSON.stringify(item));
      target = nextTarget(reply);
    }
  }
  return items;
}

/** A mirror of all items that somebody sees. */
class Mirror {
  readonly seen: Change[] = [];
  items: Map<string, string> = new Map();
  readonly #processes: Processes;
  readonly #key: string;
  #cursor = "";

  constructor(processes: Processes, key: string) {
    this.#processes = processes;
    this.#key = key;
  }

  async start(): Promise<void> {
    const { json } = await this.#read("");
    this.#cursor = json.cursor;
    this.items = await listAll(this.#processes, this.#key);
  }

  /** Follows the feed until `isLast` says that the next response without changes is the last. */
  async follow(isLast: () => boolean): Promise<void> {
    const wait = this.#key === OPERATOR_TOKEN ? "" : "&wait=2";
    while (true) {
      const last = isLast();
      const { json } = await this.#read(`?after=${this.#cursor}&limit=200${last ? "" : wait}`);
      this.#cursor = json.cursor;
      await this.#apply(json.changes);
      if (last && json.changes.length === 0 && !json.more) return;
      if (wait === "" && json.changes.length === 0) await pause(100);
    }
  }

  async #read(query: string) {
    const reply = await this.#processes.read(`GET ${rootOf(this.#key)}/changes${query}`, this.#key);
    assertEquals(reply.status, 200, JSON.stringify(reply.json));
    return reply as Reply & {
      readonly json: { readonly changes: Change[]; readonly cursor: string; readonly more: boolean };
    };
  }

  /** Reads the items that were changed, a few at a time. */
  async #apply(changes: readonly Change[]): Promise<void> {
    this.seen.push(...changes);
    const names = [...new Set(changes.map(nameOf))];
    while (names.length > 0) {
      await Promise.all(
        names.splice(0, 8).map(async (name) => {
          const path = `${rootOf(this.#key)}/${name.replace(" ", "/")}`;
          // Operators can get no single item, but a change of nothing returns it.
          const { status, json } = this.#key === OPERATOR_TOKEN
            ? await this.#processes.read(`PATCH ${path}`, this.#key, {})
            : await this.#processes.read(`GET ${path}`, this.#key);
          if (status === 404) this.items.delete(name);
          else this.items.set(name, JSON.stringify(json));
        }),
      );
    }
  }
}

/** Somebody who adds, changes and deletes items, mostly items that others change, too. */
class Writer {
  readonly #processes: Processes;
  readonly #account: Credential;
  /** Of all items that were acknowledged. */
  readonly #known: Map<string, Known>;
  /** Names of the account's items that all of its writers change. */
  readonly #recent: string[];
  #count = 0;

  constructor(
    processes: Processes,
    account: Credential,
    { known, recent }: { readonly known: Map<string, Known>; readonly recent: string[] },
  ) {
    this.#processes = processes;
    this.#account = account;
    this.#known = known;
    this.#recent = recent;
  }

  async write(): Promise<void> {
    const chance = Math.random();
    if (chance < 0.3) return await this.#create();
    const name = this.#recent[Math.floor(Math.random() * this.#recent.length)] ?? "";
    const known = this.#known.get(name);
    if (known) await (chance < 0.8 ? this.#change(name, known) : this.#remove(name, known));
  }

  get #name(): string {
    return `${this.#account.id} ${this.#count++} ${Math.random()}`;
  }

  async #create(): Promise<void> {
    const collection = COLLECTIONS[Math.floor(Math.random() * COLLECTIONS.length)];
    const json = { name: this.#name, ...(collection === "things" && { weight: 1 }) };
    const reply = await this.#processes.ask(`POST /v1/${collection}`, this.#account.key, json);
    if (reply === undefined) return;
    assertEquals(reply.status, 201, reply.code);
    const { id } = reply.json as { readonly id: number };
    const name = `${collection} ${id}`;
    this.#recent.push(name);
    if (this.#recent.length > RECENT) this.#recent.shift();
    this.#known.set(name, {
      ...{ owner: this.#account.id, updates: 0, maybeUpdates: 0, isDeleted: false, maybeDeleted: false },
    });
  }

  async #change(name: string, known: Known): Promise<void> {
    const target = `PATCH /v1/${name.replace(" ", "/")}`;
    known.maybeUpdates++;
    const reply = await this.#processes.ask(target, this.#account.key, { name: this.#name });
    if (reply === undefined) return;
    known.maybeUpdates--;
    if (reply.status === 200) known.updates++;
    else assertEquals(reply.status, 404, reply.code);
  }

  async #remove(name: string, known: Known): Promise<void> {
    known.maybeDeleted = true;
    const reply = await this.#processes.ask(`DELETE /v1/${name.replace(" ", "/")}`, this.#account.key);
    if (reply?.status === 204) {
      known.isDeleted = true;
      const index = this.#recent.indexOf(name);
      if (index >= 0) this.#recent.splice(index, 1);
    } else if (reply) assertEquals(reply.status, 404, reply.code);
  }
}

/**
 * Lets two accounts change public and private items on several processes, which are killed, as is their KV server, whose
 * replies get lost. Meanwhile, both accounts and an operator follow the feed. In the end, all have what the lists have,
 * and have seen each change once, in the order of the item's changes.
 */
export async function mirror(
  { isRemote, kills, serverKills, interval }: MirrorOptions,
  note: (line: string) => void,
): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  const store = cleanup.use(await TemporaryStore.create());
  const accounts = [await store.createAccount(), await store.createAccount()];
  const server = isRemote ? await RestartedServer.start(store.kvPath, cleanup) : undefined;
  const variables = { OPERATOR_TOKEN, ...(server && { KV_PATH: server.proxy.url }) };
  const runtime = ["--import-map", "tests/soak/import_map.json"];
  const processes = cleanup.use(new Processes(() => store.serve(variables, { runtime })));
  await Promise.all(Array.from({ length: isRemote ? 3 : 2 }, () => processes.add()));
  const on = await processes.ask("PUT /operator/v1/changes", OPERATOR_TOKEN, { days: 7 });
  assertEquals(on?.status, 200);

  const known = new Map<string, Known>();
  let [isWriting, isLast] = [true, false];
  const writing = accounts.flatMap((account) => {
    const recent: string[] = [];
    return Array.from({ length: WRITERS_OF_ACCOUNT }, async () => {
      const writer = new Writer(processes, account, { known, recent });
      while (isWriting) await writer.write();
    });
  });
  const mirrors = [...accounts.map(({ key }) => key), OPERATOR_TOKEN].map((key) =>
    new Mirror(processes, key)
  );
  const following = mirrors.map(async (mirror) => {
    await mirror.start();
    await mirror.follow(() => isLast);
  });
  const all = Promise.all([...writing, ...following]);
  all.catch(() => {}); // It is awaited in the end.
  for (let kill = 1; kill <= kills; kill++) {
    await Promise.race([pause(interval), all]);
    await Promise.all([
      processes.replace(),
      server !== undefined && kill <= serverKills ? server.restart() : undefined,
    ]);
  }
  await Promise.race([pause(interval), all]);
  isWriting = false;
  await Promise.all(writing);
  isLast = true;
  await all;

  for (const [index, key] of [...accounts.map(({ key }) => key), OPERATOR_TOKEN].entries()) {
    const { items = new Map(), seen = [] } = mirrors[index] ?? {};
    assertEquals(items, await listAll(processes, key));
    requireInOrder(seen);
    const sees = (name: string, { owner }: Known) =>
      name.startsWith("things") || key === OPERATOR_TOKEN || owner === accounts[index]?.id;
    const changes = Map.groupBy(seen, nameOf);
    for (const [name, one] of known) {
      requireSeen(
        name,
        sees(name, one) ? one : undefined,
        (changes.get(name) ?? []).map(({ change }) => change),
      );
    }
  }
  for (const process of processes.up) await process.crash();
  await server?.crash();
  using kv = await Deno.openKv(store.kvPath);
  assertEquals(await findFaults(kv, CATALOGUE.resources), []);
  const [, , ofAll] = mirrors;
  note(
    `${ofAll?.seen.length} changes seen by operators, ${known.size} items, ${server?.proxy.lost ?? 0} lost`,
  );
  assertGreater(known.size, kills);
}

/** Requires that each item is created first, and that nothing follows its deletion. */
function requireInOrder(seen: readonly Change[]): void {
  const last = new Map<string, string>();
  for (const { change, ...item } of seen) {
    const name = nameOf(item);
    const before = last.get(name);
    assert(before !== "deleted", `${name} was ${change} after it was deleted`);
    assert(change !== "created" || before === undefined, `${name} was created after it was ${before}`);
    last.set(name, change);
  }
}

/** Requires that each change of an item was seen once; of an item that is undefined, none. */
function requireSeen(name: string, known: Known | undefined, changes: readonly string[]): void {
  if (known === undefined) return assertEquals(changes, [], `${name} of another`);
  // It may have been in the list already.
  if (changes[0] !== "created") return;
  const updates = changes.filter((change) => change === "updated").length;
  const { updates: least, maybeUpdates } = known;
  assert(updates >= least && updates <= least + maybeUpdates, `${name}: ${updates} updates, not ${least}`);
  const isDeleted = changes.at(-1) === "deleted";
  assert(known.isDeleted ? isDeleted : !isDeleted || known.maybeDeleted, `${name}: ${changes}`);
}

/** A KV Connect server behind a proxy that loses replies. It can be killed and started again. */
class RestartedServer {
  readonly proxy: TcpProxy;
  readonly #file: string;
  #server: ConnectServer;

  private constructor(server: ConnectServer, file: string, proxy: TcpProxy) {
    this.#server = server;
    this.#file = file;
    this.proxy = proxy;
  }

  static async start(file: string, cleanup: AsyncDisposableStack): Promise<RestartedServer> {
    const server = await ConnectServer.start({ file });
    const proxy = cleanup.use(new TcpProxy(server.url));
    const restarted = new RestartedServer(server, file, proxy);
    cleanup.defer(() => restarted.crash());
    proxy.losesOneIn = LOST_ONE_IN;
    return restarted;
  }

  async crash(): Promise<void> {
    await this.#server.crash();
  }

  async restart(): Promise<void> {
    await this.crash();
    this.#server = await ConnectServer.start({ file: this.#file });
    this.proxy.target = Number(new URL(this.#server.url).port);
  }
}
