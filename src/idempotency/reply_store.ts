import { dayOf } from "../accounts/usage.ts";
import type { Row } from "../batching/change.ts";
import { CorruptRow, decodeCount, decodeText, encodeText, type Entry, versionstampOf } from "../kv/row.ts";
import type { Store } from "../kv/store.ts";

/** The reply to a successful creation. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** What was answered to the first request with an idempotency key. */
export interface StoredReply extends Reply {
  /** Of the request that it answered. */
  readonly fingerprint: string;
  /** Until when it is replayed, ms since the epoch. */
  readonly expiresAt: number;
}

/** What is known of an idempotency key. */
export interface FoundReply {
  readonly reply: StoredReply | null;
  /** Version of its row, null where there is none. */
  readonly versionstamp: string | null;
  /** Replies that the account was given on the same UTC day. */
  readonly count: number;
}

/** What an idempotency key is unique within, and the key: account id, operation, key. */
export type ReplyName = readonly [accountId: string, operation: string, key: string];

/** Most replies of one account that are kept of a UTC day. */
export const MAX_REPLIES = 100_000;

const REPLIES = "idempotency";
const EXPIRIES = "idempotency_by_expiry";
const COUNTS = "idempotency_counts";
const NOTHING = new Uint8Array();
/** To a KV that may be far away; to one on this machine, they would keep requests waiting. */
const COMMITS_AT_ONCE = 10;

/** First replies by idempotency key, and their removal once expired. Throws StoreUnavailable when KV fails. */
export class ReplyStore {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** The reply, which may have expired, and how many the account was given on the UTC day of `now` (ms). */
  async find(name: ReplyName, now: number): Promise<FoundReply> {
    const keys = [replyKey(name), replyCountKey(name[0], now)];
    const [entry = null, count = null] = await this.#store.getMany(keys);
    return { reply: entry && decode(entry), versionstamp: versionstampOf(entry), count: decodeCount(count) };
  }

  /** Removes some of what has expired by `now` (ms); resolves to whether there may be more. */
  async sweep(now: number): Promise<boolean> {
    return await this.#sweepReplies(now) ||
      await this.#store.removeAll({ start: [COUNTS], end: [COUNTS, dayOf(now) - 1] });
  }

  /** Removes in each commit as many as it can check. */
  async #sweepReplies(now: number): Promise<boolean> {
    const { maxChecks, isLocal } = this.#store;
    const limit = maxChecks * (isLocal ? 1 : COMMITS_AT_ONCE);
    const expired = await this.#store.list({ start: [EXPIRIES], end: [EXPIRIES, now] }, limit);
    const starts = Array.from({ length: Math.ceil(expired.length / maxChecks) }, (_, i) => i * maxChecks);
    const removed = await Promise.all(
      starts.map((start) => this.#remove(expired.slice(start, start + maxChecks), now)),
    );
    return expired.length === limit || removed.includes(false);
  }

  /** Resolves to whether that could be done: not where others change the same rows. */
  async #remove(expired: readonly Entry[], now: number): Promise<boolean> {
    const names = expired.map(({ key: [, , ...name] }) => [REPLIES, ...name]);
    const replies = await this.#store.getMany(names);
    const { ok } = await this.#store.commit((operation) => {
      for (const { key } of expired) operation.delete(key);
      // A key that was used again after its reply expired has a newer reply, and a later expiry row.
      for (const reply of replies) {
        if (reply !== null && hasExpired(reply, now)) operation.check(reply).delete(reply.key);
      }
    });
    return ok;
  }
}

/** Key of the reply's row. */
export function replyKey(name: ReplyName): Deno.KvKey {
  return [REPLIES, ...name];
}

/** Key of the number of an account's replies of a UTC day. */
export function replyCountKey(accountId: string, now: number): Deno.KvKey {
  return [COUNTS, dayOf(now), accountId];
}

/** The rows that store a reply until it is swept. */
export function replyRows(name: ReplyName, reply: StoredReply): Row[] {
  return [[replyKey(name), encode(reply)], [[EXPIRIES, reply.expiresAt, ...name], NOTHING]];
}

/** JSON of all but the body, a newline, and the body. */
function encode({ body, ...rest }: StoredReply): Uint8Array<ArrayBuffer> {
  return encodeText(`${JSON.stringify(rest)}\n${body}`);
}

/** Whether a row holds no later reply; a corrupt one holds none at all. */
function hasExpired(entry: Entry, now: number): boolean {
  try {
    return decode(entry).expiresAt <= now;
  } catch (error) {
    if (error instanceof CorruptRow || error instanceof SyntaxError) return true;
    throw error;
  }
}

function decode(entry: Entry): StoredReply {
  const text = decodeText(entry);
  const end = text.indexOf("\n");
  return { ...JSON.parse(text.slice(0, end)), body: text.slice(end + 1) };
}
