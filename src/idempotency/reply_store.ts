import type { Row } from "../kv/collection.ts";
import type { Entry, Store } from "../kv/store.ts";

/** What was answered to the first request with an idempotency key. */
export interface StoredReply {
  /** Of the request that it answered. */
  readonly fingerprint: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Until when it is replayed, ms since the epoch. */
  readonly expiresAt: number;
}

/** What an idempotency key is unique within, and the key: API key id, operation, key. */
export type ReplyName = readonly [keyId: string, operation: string, key: string];

const REPLIES = "idempotency";
const EXPIRIES = "idempotency_by_expiry";
const NOTHING = new Uint8Array();
const ENCODER = new TextEncoder();
const DECODER = new TextDecoder();

/** Value of a reply's row: JSON of all but the body, a newline, and the body. Rows of before hold an object. */
type ReplyRow = Uint8Array<ArrayBuffer> | (Omit<StoredReply, "body"> & { readonly body: Uint8Array });

/** First replies by idempotency key, and their removal once expired. Throws StoreUnavailable when KV fails. */
export class ReplyStore {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** The reply, which may have expired. */
  async find(name: ReplyName): Promise<Entry<StoredReply> | null> {
    const entry = await this.#store.get<ReplyRow>(replyRow(name));
    return entry && { ...entry, value: fromRow(entry.value) };
  }

  /**
   * Removes some of the replies that have expired by `now` (ms): as many as one commit can check.
   * Resolves to whether there may be more.
   */
  async sweep(now: number): Promise<boolean> {
    const limit = this.#store.maxChecks;
    const expired = await this.#store.list({ start: [EXPIRIES], end: [EXPIRIES, now] }, limit);
    if (expired.length === 0) return false;
    const names = expired.map(({ key: [, , ...name] }) => [REPLIES, ...name]);
    const replies = await this.#store.getMany<ReplyRow>(names);
    const versionstamp = await this.#store.commit("sweep", (operation) => {
      for (const { key } of expired) operation.delete(key);
      // A key that was used again after its reply expired has a newer reply, and a later expiry row.
      for (const reply of replies) {
        if (reply !== null && fromRow(reply.value).expiresAt <= now) operation.check(reply).delete(reply.key);
      }
    });
    return versionstamp === undefined || expired.length === limit;
  }
}

/** Key of the reply's row. */
export function replyRow(name: ReplyName): Deno.KvKey {
  return [REPLIES, ...name];
}

/** The rows that store a reply until it is swept. */
export function replyRows(name: ReplyName, reply: StoredReply): Row[] {
  return [[replyRow(name), toRow(reply)], [[EXPIRIES, reply.expiresAt, ...name], NOTHING]];
}

function toRow({ body, ...rest }: StoredReply): Uint8Array<ArrayBuffer> {
  return ENCODER.encode(`${JSON.stringify(rest)}\n${body}`);
}

function fromRow(row: ReplyRow): StoredReply {
  if (!(row instanceof Uint8Array)) return { ...row, body: DECODER.decode(row.body) };
  const text = DECODER.decode(row);
  const end = text.indexOf("\n");
  return { ...JSON.parse(text.slice(0, end)), body: text.slice(end + 1) };
}
