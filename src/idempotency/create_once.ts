import { hash } from "node:crypto";
import { REPLAY_HOURS } from "../api/headers.ts";
import type { Call } from "../api/operation.ts";
import { type Along, NO_CHANGE } from "../batching/change.ts";
import { ApiError } from "../http/error.ts";
import { jsonResponse } from "../http/response.ts";
import { AGAIN, retried } from "../kv/retried.ts";
import {
  MAX_REPLIES,
  type Reply,
  replyCountKey,
  replyKey,
  type ReplyName,
  replyRows,
  type ReplyStore,
  type StoredReply,
} from "./reply_store.ts";

/** A POST that creates an item. */
export interface Creation<Item> {
  /** Name of the operation, within which an idempotency key is unique. */
  readonly operation: string;
  /** The request body. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Stores the item, if another change can be made along with it; else null. */
  create(along: Along<Item>): Promise<Item | null>;
  reply(item: Item): Reply;
}

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/**
 * Creates an item and replies; with an idempotency key, just once: whoever repeats the request
 * while it is kept gets the first reply again, because it is stored in the same commit as the item.
 *
 * @throws {ApiError} `idempotency_key_reused` when the key came with another body before; `idempotency_limit` when
 * the account has used too many of them on this UTC day.
 * @throws {StoreUnavailable}
 */
export function createOnce<Item>(
  key: string | undefined,
  call: Call,
  replies: ReplyStore,
  creation: Creation<Item>,
): Promise<Response> {
  if (key === undefined) {
    return retried(() =>
      create(creation, () => ({ ...NO_CHANGE, checks: call.checks(), mayBegin: call.checks }))
    );
  }
  return createWithKey([call.accountId, creation.operation, key], call, replies, creation);
}

async function createWithKey<Item>(
  name: ReplyName,
  { now, checks }: Call,
  replies: ReplyStore,
  creation: Creation<Item>,
): Promise<Response> {
  const [accountId] = name;
  const fingerprint = hash("sha256", creation.bytes);
  const expiresAt = now + REPLAY_HOURS * HOUR;
  const look = async () => {
    const { reply, ...found } = await replies.find(name, now);
    const isAlive = reply !== null && reply.expiresAt > now;
    return { ...found, replayed: isAlive ? replay(reply, fingerprint) : undefined };
  };
  return await retried(async () => {
    const { replayed, versionstamp, count } = await look();
    if (replayed) return replayed;
    if (count >= MAX_REPLIES) throw tooManyReplies(now);
    try {
      return await create(creation, (item) => ({
        checks: [...checks(), { key: replyKey(name), versionstamp }],
        sets: replyRows(name, { ...creation.reply(item), fingerprint, expiresAt }),
        increments: [replyCountKey(accountId, now)],
        mayBegin: checks,
      }));
    } catch (error) {
      // The same request may have taken the last place meanwhile.
      const { replayed } = error instanceof ApiError ? await look() : {};
      if (replayed) return replayed;
      throw error;
    }
  });
}

function create<Item>(creation: Creation<Item>, along: Along<Item>): Promise<Response | typeof AGAIN> {
  return creation.create(along).then((item) => item === null ? AGAIN : toResponse(creation.reply(item)));
}

function tooManyReplies(now: number): ApiError {
  const message = `At most ${MAX_REPLIES} Idempotency-Keys may be used in a day (UTC).`;
  const seconds = Math.ceil((DAY - now % DAY) / 1_000);
  return new ApiError("idempotency_limit", message, { "retry-after": `${seconds}` });
}

function toResponse(reply: Reply): Response {
  return jsonResponse(reply.body, reply);
}

function replay(reply: StoredReply, fingerprint: string): Response {
  if (reply.fingerprint !== fingerprint) {
    throw new ApiError(
      "idempotency_key_reused",
      "This Idempotency-Key was used with another body; use a new key.",
    );
  }
  return toResponse({ ...reply, headers: { "idempotency-replayed": "true", ...reply.headers } });
}
