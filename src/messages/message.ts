import type { JsonObject } from "../http/body.ts";
import { stringField } from "../http/validation.ts";

/** A message that waits to be sent. */
export interface Message {
  readonly id: string;
  readonly message: string;
  readonly status: "queued";
  /** ISO 8601, UTC. */
  readonly createdAt: string;
  /** The account that sent it. */
  readonly accountId: string;
}

/** A message to accept. */
export type NewMessage = Pick<Message, "message" | "accountId">;

/**
 * The text of the message that a request body holds.
 *
 * @throws {ApiError} `invalid_request`, naming the field and what was expected.
 */
export function parseMessage(object: JsonObject): string {
  return stringField(object, "message", 10_000);
}
