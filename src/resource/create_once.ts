import { hash } from "node:crypto";
import { dayOf, HOUR } from "../base/mod.ts";
import {
  CorruptRow,
  type Decided,
  decodeText,
  encodeText,
  type Entry,
  type Store,
  type Transaction,
  type Write,
} from "../engine/mod.ts";
import { REPLAY_HOURS } from "../web/headers.ts";
import { ApiError, ERRORS, jsonResponse } from "../web/mod.ts";
import { type JsonObject, type Members, stringifyJson } from "../web/schema.ts";
import type { Call } from "../service/mod.ts";

/** The response to a successful creation. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Hashes of a request's body. Two requests are the same if either hash is. */
interface Fingerprints {
  /** Of its bytes. */
  readonly fingerprint: string;
  /** Of its meaning. Replies that earlier releases stored have none. */
  readonly meaning?: string;
}

/** The response to the first request with an idempotency key. */
interface StoredReply extends Reply, Fingerprints {
  /** When it expires. */
  readonly expiresAt: number;
}

/** An idempotency key, which is unique within an account and an operation. */
export type ReplyName = readonly [accountId: string, operation: string, key: string];

const REPLIES = "idempotency";
const EXPIRIES = "idempotency_by_expiry";
/** Counts of replies by UTC day and account. Only 1.0.0 writes them. */
const COUNTS = "idempotency_counts";
const NOTHING = new Uint8Array();
/** The header of a reply that was stored before. */
export const REPLAYED = "idempotency-replayed";

/** A POST that creates an item. */
export interface Creation<Item extends Decided> {
  /** Name of the operation, within which an idempotency key is unique. */
  readonly operation: string;
  /** The request body, raw and parsed, and the fields that it can have. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly body: JsonObject;
  readonly fields: Members;
  /** Stores the item. */
  readonly creation: Transaction<Item>;
  reply(item: Item): Reply;
}

/**
 * Creates an item and returns the response. With an idempotency key, a repeated request gets the first response again
 * while it is stored.
 *
 * @throws {ApiError} `idempotency_key_reused` if the key was used with other values in the body.
 * @throws {StoreUnavailable}
 */
export async function createOnce<Item extends Decided>(
  key: string | undefined,
  { accountId, now, transact }: Call,
  { operation, bytes, body, fields, creation, reply }: Creation<Item>,
): Promise<Response> {
  if (key === undefined) return toResponse(reply(await transact(creation)));
  const name: ReplyName = [accountId, operation, key];
  const meaning = hash("sha256", meaningOf(fields, body));
  const prints = { fingerprint: hash("sha256", bytes), meaning };
  return toResponse(await transact(once(name, { ...prints, now }, creation, reply)));
}

/**
 * What a body says, as JSON: its values by name, without those that are their field's default. So it is the same if a
 * default is spelled out, and stays the same if a later release adds a field with a default.
 */
function meaningOf(fields: Members, body: JsonObject): string {
  const isDefault = (name: string, value: unknown) => {
    const schema = fields[name];
    return schema && "defaultValue" in schema && stringifyJson(schema.defaultValue) === stringifyJson(value);
  };
  const said = Object.entries(body).filter(([name, value]) => !isDefault(name, value));
  return stringifyJson(said.sort(([one], [other]) => one < other ? -1 : 1));
}

/**
 * Wraps a creation: the same commit stores its reply, which is the result. If a reply is already stored, nothing is
 * created, and that reply is the result. `now` is the time of arrival, in ms since the epoch.
 */
export function once<Item extends Decided>(
  name: ReplyName,
  { now, ...prints }: Fingerprints & { readonly now: number },
  creation: Transaction<Item>,
  reply: (item: Item) => Reply,
): Transaction<Reply> {
  const key = replyKey(name);
  return {
    ...creation,
    decide(rows, write, decidedAt) {
      const entry = rows.get(key);
      const first = entry && decodeReply(entry);
      if (first && first.expiresAt > now) return replay(first, prints);
      const made = reply(creation.decide(rows, write, decidedAt));
      putReply(name, { ...made, ...prints, expiresAt: now + REPLAY_HOURS * HOUR }, write);
      return made;
    },
  };
}

function toResponse(reply: Reply): Response {
  return jsonResponse(reply.body, reply);
}

function replay(reply: StoredReply, { fingerprint, meaning }: Fingerprints): Reply {
  if (reply.fingerprint !== fingerprint && reply.meaning !== meaning) {
    throw new ApiError(
      ERRORS.idempotency_key_reused,
      "This Idempotency-Key was already used with other values in the body. Use a new key.",
    );
  }
  return { ...reply, headers: { [REPLAYED]: "true", ...reply.headers } };
}

function replyKey(name: ReplyName): Deno.KvKey {
  return [REPLIES, ...name];
}

/** Stores a reply until it is swept. */
function putReply(name: ReplyName, reply: StoredReply, write: Write): void {
  write.set(replyKey(name), encode(reply));
  write.set([EXPIRIES, reply.expiresAt, ...name], NOTHING);
}

/** Encodes a reply: JSON without the body, a newline, and the body. */
function encode({ body, ...rest }: StoredReply): Uint8Array<ArrayBuffer> {
  return encodeText(`${JSON.stringify(rest)}\n${body}`);
}

function decodeReply(entry: Entry): StoredReply {
  const text = decodeText(entry);
  const end = text.indexOf("\n");
  return { ...JSON.parse(text.slice(0, end)), body: text.slice(end + 1) };
}

/** Removes some replies that have expired by `now`. Resolves to true if there may be more. */
export async function sweepReplies(store: Store, now: number): Promise<boolean> {
  return await sweepExpired(store, now) ||
    await store.removeAll({ start: [COUNTS], end: [COUNTS, dayOf(now) - 1] });
}

/** Removes expired replies, as many in each commit as it can check. */
async function sweepExpired(store: Store, now: number): Promise<boolean> {
  const { maxChecks } = store;
  const limit = maxChecks * store.lanes;
  const expired = await store.list({ start: [EXPIRIES], end: [EXPIRIES, now] }, limit);
  const starts = Array.from({ length: Math.ceil(expired.length / maxChecks) }, (_, i) => i * maxChecks);
  const removed = await Promise.all(
    starts.map((start) => remove(store, expired.slice(start, start + maxChecks), now)),
  );
  return expired.length === limit || removed.includes(false);
}

/** Removes replies. Resolves to false if another process has changed one of them. */
async function remove(store: Store, expired: readonly Entry[], now: number): Promise<boolean> {
  const names = expired.map(({ key: [, , ...name] }) => [REPLIES, ...name]);
  const replies = await store.getMany(names);
  const { ok } = await store.commit((operation) => {
    for (const { key } of expired) operation.delete(key);
    // If a key was used again after its reply expired, it has a newer reply and another expiry row.
    for (const reply of replies) {
      if (reply !== null && hasExpired(reply, now)) operation.check(reply).delete(reply.key);
    }
  });
  return ok;
}

/** Whether the reply in a row has expired, or is corrupt. */
function hasExpired(entry: Entry, now: number): boolean {
  try {
    return decodeReply(entry).expiresAt <= now;
  } catch (error) {
    if (error instanceof CorruptRow || error instanceof SyntaxError) return true;
    throw error;
  }
}
