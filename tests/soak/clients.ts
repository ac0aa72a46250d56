import { call, outcome, type Reply } from "../support/client.ts";
import type { ServerProcess } from "../process/process.ts";
import { idIn, LIST, PATH, SHIPPED } from "../process/shipped.ts";
import type { Credential } from "../process/temporary_store.ts";
import { ABSENT, type Ledger } from "./ledger.ts";

/** The status of a response that does not say whether the request was carried out. */
const UNKNOWN = 503;

/** An account with a daily limit, and the number of requests admitted each day. */
export class LimitedAccount {
  readonly credential: Credential;
  /** Number of admitted requests, keyed by the end of their day in seconds since the epoch. */
  readonly admitted: Map<number, number> = new Map();
  #pausesUntil = 0;

  constructor(credential: Credential) {
    this.credential = credential;
  }

  /** Lists items; undefined while the account waits for a new day. */
  async list(server: ServerProcess): Promise<Reply | undefined> {
    if (Date.now() < this.#pausesUntil) return undefined;
    const answer = await call(server, this.credential.key, `${LIST}?limit=5`);
    const reset = Number(answer.headers.get("x-ratelimit-reset"));
    if (answer.status === 200) this.admitted.set(reset, (this.admitted.get(reset) ?? 0) + 1);
    else if (answer.status === 429) this.#pausesUntil = reset * 1_000;
    else expectStatus(answer, 200);
    return answer;
  }

  /** Number of requests admitted above a limit, on all days. */
  countAbove(limit: number): number {
    return [...this.admitted.values()].reduce((sum, count) => sum + Math.max(0, count - limit), 0);
  }
}

/** State that clients share. */
export interface Shop {
  /** The field of items that has a name, which no other item has, and the number of its last change. */
  readonly textField: string;
  readonly ledger: Ledger;
  /** The account that writes. */
  readonly key: string;
  readonly limited: LimitedAccount;
}

interface Known {
  readonly name: string;
  readonly id: number;
}

interface Creation {
  readonly name: string;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Sends a mix of requests, one after the other. If the outcome of a change is unknown, it no longer uses that item.
 * A create with an Idempotency-Key is repeated until its outcome is known.
 */
export class Client {
  readonly #name: string;
  readonly #shop: Shop;
  readonly #own: Known[] = [];
  #count = 0;
  #repeat: Creation | undefined;

  constructor(name: string, shop: Shop) {
    this.#name = name;
    this.#shop = shop;
  }

  /** Sends one request. Rejects if there is no response. */
  async send(server: ServerProcess): Promise<Reply> {
    if (this.#repeat) return await this.#create(server, this.#repeat);
    const chance = Math.random();
    const name = `${this.#name}.${this.#count++}`;
    if (chance < 0.2) return await this.#create(server, { name, headers: { "idempotency-key": name } });
    if (chance < 0.35) return await this.#create(server, { name, headers: {} });
    if (chance < 0.45) return await this.#message(server, name);
    const item = chance < 0.8 ? this.#own.pop() : undefined;
    if (item) return await (chance < 0.6 ? this.#change(server, item) : this.#remove(server, item));
    return await this.#shop.limited.list(server) ?? await call(server, this.#shop.key, `${LIST}?limit=5`);
  }

  async #create(server: ServerProcess, creation: Creation): Promise<Reply> {
    const { ledger, key, textField } = this.#shop;
    const { name, headers } = creation;
    const isKeyed = "idempotency-key" in headers;
    this.#repeat = isKeyed ? creation : undefined;
    ledger.send(name, 0);
    const answer = await call(server, key, `POST ${PATH}`, {
      headers,
      json: { ...SHIPPED.examples.item, [textField]: `${name} 0` },
    });
    if (expectStatus(answer, 201) === UNKNOWN) return answer;
    this.#repeat = undefined;
    const id = idIn(answer.json);
    ledger.acknowledge(name, 0);
    ledger.noteId(name, id);
    this.#own.unshift({ name, id });
    return answer;
  }

  async #change(server: ServerProcess, item: Known): Promise<Reply> {
    const { ledger, key, textField } = this.#shop;
    const value = ++this.#count;
    ledger.send(item.name, value);
    const answer = await call(server, key, `PATCH ${PATH}/${item.id}`, {
      json: { ...SHIPPED.examples.change, [textField]: `${item.name} ${value}` },
    });
    if (expectStatus(answer, 200) === UNKNOWN) return answer;
    ledger.acknowledge(item.name, value);
    this.#own.unshift(item);
    return answer;
  }

  async #remove(server: ServerProcess, { name, id }: Known): Promise<Reply> {
    const { ledger, key } = this.#shop;
    ledger.send(name, ABSENT);
    const answer = await call(server, key, `DELETE ${PATH}/${id}`);
    if (expectStatus(answer, 204) !== UNKNOWN) ledger.acknowledge(name, ABSENT);
    return answer;
  }

  async #message(server: ServerProcess, message: string): Promise<Reply> {
    const { ledger, key } = this.#shop;
    ledger.send(message, 0);
    const answer = await call(server, key, "POST /v1/messages", { json: { message } });
    // The queue is full or left out.
    if (["429 queue_full", "404 not_found"].includes(outcome(answer))) return answer;
    if (expectStatus(answer, 202) !== UNKNOWN) ledger.acknowledge(message, 0);
    return answer;
  }
}

/** Throws unless the status is the expected one or 503. */
function expectStatus(answer: Reply, expected: number): number {
  const { status } = answer;
  if (status !== expected && status !== UNKNOWN) {
    throw new Error(`${outcome(answer)} instead of ${expected}`);
  }
  return status;
}
