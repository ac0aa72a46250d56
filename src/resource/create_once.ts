import { HOUR } from "../base/time.ts";
import { hash } from "node:crypto";
import { REPLAY_HOURS } from "../web/headers.ts";
import type { Call } from "./call.ts";
import { ApiError, ERRORS } from "../web/error.ts";
import { jsonResponse } from "../web/response.ts";
import type { Transaction } from "../engine/transaction.ts";
import {
  decodeReply,
  putReply,
  type Reply,
  replyKey,
  type ReplyName,
  type StoredReply,
} from "./reply_store.ts";

/** A POST that creates an item. */
export interface Creation<Item> {
  /** Name of the operation, within which an idempotency key is unique. */
  readonly operation: string;
  /** The request body. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Stores the item. */
  readonly creation: Transaction<Item>;
  reply(item: Item): Reply;
}

/**
 * Creates an item and returns the response. With an idempotency key, a repeated request gets the first response again
 * while it is stored.
 *
 * @throws {ApiError} `idempotency_key_reused` if the key was used with a different body.
 * @throws {StoreUnavailable}
 */
export async function createOnce<Item>(
  key: string | undefined,
  { accountId, now, transact }: Call,
  { operation, bytes, creation, reply }: Creation<Item>,
): Promise<Response> {
  if (key === undefined) return toResponse(reply(await transact(creation)));
  const name: ReplyName = [accountId, operation, key];
  return toResponse(await transact(once(name, { fingerprint: hash("sha256", bytes), now }, creation, reply)));
}

/**
 * Wraps a creation: the same commit stores its reply, which is the result. If a reply is already stored, nothing is
 * created, and that reply is the result. `now` is the time of arrival, in ms since the epoch.
 */
export function once<Item>(
  name: ReplyName,
  { fingerprint, now }: { readonly fingerprint: string; readonly now: number },
  creation: Transaction<Item>,
  reply: (item: Item) => Reply,
): Transaction<Reply> {
  const key = replyKey(name);
  return {
    ...creation,
    reads: [key, ...creation.reads ?? []],
    decide(rows, write, decidedAt) {
      const entry = rows.get(key);
      const first = entry && decodeReply(entry);
      if (first && first.expiresAt > now) return replay(first, fingerprint);
      const made = reply(creation.decide(rows, write, decidedAt));
      putReply(name, { ...made, fingerprint, expiresAt: now + REPLAY_HOURS * HOUR }, write);
      return made;
    },
  };
}

function toResponse(reply: Reply): Response {
  return jsonResponse(reply.body, reply);
}

function replay(reply: StoredReply, fingerprint: string): Reply {
  if (reply.fingerprint !== fingerprint) {
    throw new ApiError(
      ERRORS.idempotency_key_reused,
      "This Idempotency-Key was already used with a different body. Use a new key.",
    );
  }
  return { ...reply, headers: { "idempotency-replayed": "true", ...reply.headers } };
}
