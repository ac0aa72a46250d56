import type { Handler } from "./turns.ts";

/** `usual`; lists of a collection that only owners read; or lists by so many accounts in turn. */
export type Scene = "usual" | "private" | number;

/** What the comparison tells each process. */
export interface Orders {
  readonly token: string;
  /** The path of a collection, an item to add, and the name of a field that can have any text. */
  readonly path: string;
  readonly item: Readonly<Record<string, unknown>>;
  readonly field: string;
  /** The plan of accounts with limits of their own. */
  readonly plan: string;
  /** Which kinds of requests to prepare. */
  readonly scene: Scene;
}

/** A kind of request. */
export interface Kind {
  /** Creates the next request. */
  readonly next: () => Request;
  /** What `Deno.serve` says about the connection. */
  readonly info: () => Deno.ServeHandlerInfo;
  readonly status: number;
  readonly isWrite: boolean;
}

/** The path of the collection that `private.ts` declares. */
export const PRIVATE_PATH = "/v1/bench_notes";
const ORIGIN = "http://localhost:8000";
const NEVER = { minute: 100_000_000, day: 1_000_000_000 };
/** So many refusals in a day are no ban. */
const SPENT = { minute: 100_000, day: 100_000 };
const BANNED = { minute: 1, day: 1_000_000_000 };
/** After this time, refusals in a minute count toward a ban, in ms. */
const UNAWARE = 5_100;
const ITEMS = 64;
const AT_ONCE = 64;
/** Simultaneous requests of operators; more are refused by some checkouts. */
const AT_ONCE_BY_OPERATORS = 8;
/** So many requests without a valid key come from one address; a sixty-first in a minute would get 429. */
const PER_ADDRESS = 32;

/** Creates accounts and items, by requests. Resolves to the kinds of requests, by name. */
export async function prepare(handler: Handler, orders: Orders): Promise<ReadonlyMap<string, Kind>> {
  const desk = new Desk(handler, orders);
  const account = await desk.createAccount(NEVER);
  if (orders.scene === "private") return await privateKinds(desk, account.key);
  if (orders.scene !== "usual") return await manyKinds(desk, orders.scene, orders.path);
  const ids: unknown[] = [];
  for (let count = 0; count < ITEMS; count++) {
    ids.push((await desk.send(desk.post(account.key, orders.item), 201))["id"]);
  }
  const [refused, banned] = [await desk.createAccount(SPENT), await desk.createAccount(BANNED)];
  const list = `${orders.path}?limit=20`;
  const etag = await desk.etagOf(list, account.key);
  await desk.spend(refused.key, list, SPENT.day);
  await desk.ban(banned.key, list);
  const unknown = await desk.createAccount(NEVER);
  await desk.rotate(unknown.id);

  const strangers = addresses();
  let serial = 0;
  const reading = (key: string, path: string, status = 200, headers = {}): Kind => ({
    ...{ status, info: desk.info, isWrite: false },
    next: () => desk.get(key, path, headers),
  });
  const writing = (status: number, next: () => Request): Kind => ({
    ...{ status, next, info: desk.info, isWrite: true },
  });
  const named = () => ({ [orders.field]: `Bench ${serial++}` });
  return new Map<string, Kind>([
    ["list", reading(account.key, list)],
    ["get", reading(account.key, `${orders.path}/${ids[0]}`)],
    ["304", reading(account.key, list, 304, { "if-none-match": etag })],
    ["401", { ...reading(unknown.key, list, 401), info: strangers }],
    ["401, malformed", { ...reading(`${unknown.key}x`, list, 401), info: strangers }],
    ["429", reading(refused.key, list, 429)],
    ["429, banned", reading(banned.key, list, 429)],
    [
      "PATCH",
      writing(
        200,
        () => desk.request("PATCH", `${orders.path}/${ids[serial % ITEMS]}`, account.key, named()),
      ),
    ],
    ["create", writing(201, () => desk.post(account.key, orders.item))],
    [
      "create, Idempotency-Key",
      writing(201, () => desk.post(account.key, orders.item, { "idempotency-key": `bench-${serial++}` })),
    ],
  ]);
}

async function privateKinds(desk: Desk, key: string): Promise<ReadonlyMap<string, Kind>> {
  if (!await desk.has(PRIVATE_PATH, key)) return new Map();
  for (let count = 0; count < 20; count++) {
    await desk.send(desk.request("POST", PRIVATE_PATH, key, { title: `Note ${count}` }), 201);
  }
  const next = () => desk.get(key, `${PRIVATE_PATH}?limit=20`);
  return new Map([["private list", { next, info: desk.info, status: 200, isWrite: false }]]);
}

/** The name of lists by so many accounts in turn. */
export function nameOf(accounts: number): string {
  return `list, ${accounts.toLocaleString("en")} keys`;
}

/** Lists by accounts in turn, so that hardly any of them has a lease. */
async function manyKinds(desk: Desk, count: number, path: string): Promise<ReadonlyMap<string, Kind>> {
  const keys: string[] = [];
  while (keys.length < count) {
    const created = Array.from({ length: AT_ONCE_BY_OPERATORS }, () => desk.createAccount(NEVER));
    keys.push(...(await Promise.all(created)).map(({ key }) => key));
  }
  let turn = 0;
  const next = () => desk.get(keys[turn++ % keys.length] ?? "", `${path}?limit=20`);
  for (const _ of keys) await desk.send(next(), 200); // The process learns them.
  const kind = { next, info: desk.info, status: 200, isWrite: true };
  return new Map([[nameOf(count), kind]]);
}

/** Returns a function that says that a request comes from another address now and then. */
function addresses(): () => Deno.ServeHandlerInfo {
  let count = 0;
  return () => {
    const address = Math.floor(count++ / PER_ADDRESS);
    return infoFrom(`10.${address >> 16 & 255}.${address >> 8 & 255}.${address & 255}`);
  };
}

function infoFrom(hostname: string): Deno.ServeHandlerInfo {
  return { remoteAddr: { transport: "tcp", hostname, port: 40_000 }, completed: Promise.resolve() };
}

/** Sends requests of operators and clients to the handler. */
class Desk {
  readonly #handler: Handler;
  readonly #orders: Orders;
  readonly #info = infoFrom("127.0.0.1");

  constructor(handler: Handler, orders: Orders) {
    this.#handler = handler;
    this.#orders = orders;
  }

  /** What `Deno.serve` says about the connection of an ordinary client. */
  readonly info = (): Deno.ServeHandlerInfo => this.#info;

  request(method: string, path: string, key: string, json: unknown, headers = {}): Request {
    const all = { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers };
    return new Request(ORIGIN + path, { method, headers: all, body: JSON.stringify(json) });
  }

  get(key: string, path: string, headers = {}): Request {
    return new Request(ORIGIN + path, { headers: { authorization: `Bearer ${key}`, ...headers } });
  }

  /** A request that adds an item. */
  post(key: string, item: unknown, headers = {}): Request {
    return this.request("POST", this.#orders.path, key, item, headers);
  }

  /** Resolves to the response's JSON. Throws if its status is another. */
  async send(request: Request, status: number): Promise<Record<string, unknown>> {
    const response = await this.#handler(request, this.#info);
    if (response.status === status) return await response.json();
    throw new Error(`${request.method} ${request.url} got ${response.status}: ${await response.text()}`);
  }

  async createAccount(limits: object): Promise<{ readonly id: string; readonly key: string }> {
    const { plan, token } = this.#orders;
    const account = { name: "bench", plan, limits };
    const { id, apiKey, account: view } = await this.send(
      this.request("POST", "/operator/v1/accounts", token, account),
      201,
    );
    const inner = typeof view === "object" && view !== null && "id" in view ? view.id : undefined;
    return { id: String(id ?? inner), key: String(apiKey) };
  }

  /** Gives an account another key, so that nobody has the one before. */
  async rotate(id: string): Promise<void> {
    await this.send(this.request("POST", `/operator/v1/accounts/${id}/rotate`, this.#orders.token, {}), 201);
  }

  /** Whether there is something at a path. */
  async has(path: string, key: string): Promise<boolean> {
    const { status } = await this.#handler(this.get(key, path), this.#info);
    return status !== 404;
  }

  async etagOf(path: string, key: string): Promise<string> {
    const response = await this.#handler(this.get(key, path), this.#info);
    return response.headers.get("etag") ?? "";
  }

  /** Uses up a limit. */
  async spend(key: string, path: string, limit: number): Promise<void> {
    for (let sent = 0; sent <= limit; sent += AT_ONCE) {
      const responses = Array.from(
        { length: AT_ONCE },
        () => this.#handler(this.get(key, path), this.#info),
      );
      for (const response of responses) await response;
    }
  }

  /** Keeps sending requests after 429 responses, until the account is banned. */
  async ban(key: string, path: string): Promise<void> {
    const end = performance.now() + 3 * UNAWARE;
    while (performance.now() < end) {
      const response = await this.#handler(this.get(key, path), this.#info);
      if (response.status === 429 && (await response.json()).code === "key_banned") return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error("The account was not banned");
  }
}
