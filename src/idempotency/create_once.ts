import { createHash } from "node:crypto";
import { ApiError } from "../http/error.ts";
import { jsonResponse } from "../http/response.ts";
import type { Call } from "../http/router.ts";
import type { Attachment } from "../kv/collection.ts";
import { retried } from "../kv/retry.ts";
import { readIdempotencyKey } from "./idempotency_key.ts";
import { type ReplyName, replyRow, replyRows, type ReplyStore, type StoredReply } from "./reply_store.ts";

/** The reply to a successful creation. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A POST that creates an item. */
export interface Creation<Item> {
  /** Name of the operation, within which an idempotency key is unique. */
  readonly operation: string;
  /** The request body. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Stores the item; undefined when the attachment's guard had changed. */
  create(attachment?: Attachment<Item>): Promise<Item | undefined>;
  reply(item: Item): Reply;
}

const REPLAYED_FOR = 24 * 3_600_000;

/**
 * Creates an item and replies; with an Idempotency-Key, just once: whoever repeats the request within
 * 24 hours gets the first reply again, because it is stored in the same commit as the item.
 *
 * @throws {ApiError} `idempotency_key_reused` when the key came with another body before.
 * @throws {StoreUnavailable}
 */
export async function createOnce<Item>(
  request: Request,
  call: Call,
  replies: ReplyStore,
  creation: Creation<Item>,
): Promise<Response> {
  const key = readIdempotencyKey(request);
  // Without an attachment there is no guard to change, and the first attempt is the last.
  if (key === undefined) return toResponse(creation.reply(await retried(() => creation.create())));

  const name: ReplyName = [call.keyId, creation.operation, key];
  const fingerprint = createHash("sha256").update(creation.bytes).digest("hex");
  const expiresAt = call.now + REPLAYED_FOR;
  return await retried(async () => {
    const first = await replies.find(name);
    if (first !== null && first.value.expiresAt > call.now) return replay(first.value, fingerprint);
    const item = await creation.create({
      guard: { key: replyRow(name), versionstamp: first?.versionstamp ?? null },
      rows: (item) => replyRows(name, { ...creation.reply(item), fingerprint, expiresAt }),
    });
    return item && toResponse(creation.reply(item));
  });
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
