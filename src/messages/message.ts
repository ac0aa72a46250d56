import type { JsonObject } from "../http/body.ts";
import { stringField } from "../http/field.ts";

/** A message that waits to be sent (interface section 4.4). */
export interface Message {
  readonly id: string;
  readonly message: string;
  readonly status: "queued";
  /** ISO 8601, UTC. */
  readonly createdAt: string;
}

/** A message to accept. */
export type NewMessage = Pick<Message, "message" | "createdAt">;

/**
 * The message that a request body holds, accepted at `now` (ms).
 *
 * @throws {ApiError} `invalid_request`, naming the field and what was expected.
 */
export function parseNewMessage(object: JsonObject, now: number): NewMessage {
  const message = stringField(object, "message", { min: 1, max: 10_000 });
  return { message, createdAt: new Date(now).toISOString() };
}
