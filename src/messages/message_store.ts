import { randomBase62 } from "../accounts/api_key.ts";
import { ApiError } from "../http/error.ts";
import { decodeCount, decodeJson, encodeJson } from "../kv/row.ts";
import type { Store } from "../kv/store.ts";
import type { Queue, Transaction } from "../store/transaction.ts";

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

/** Most messages of one account that wait. */
export const MAX_WAITING = 1_000;

/** When a client should ask again whose queue is full, in seconds. */
const RETRY_AFTER = 60;
const MESSAGES = "messages";
/** How many messages wait, of all accounts. */
const WAITING: Deno.KvKey = ["messages_waiting"];
const LIST_PAGE = 100;
const QUEUE: Queue = { label: "changes", lanes: () => 3 };

/** Accepted messages, in the order of their creation. Every method that reads throws StoreUnavailable when KV fails. */
export class MessageStore {
  readonly #store: Store;
  /** When the last message was queued, in microseconds. */
  #last = 0;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Accepts a message at `now` (ms). Throws the ApiError `queue_full`. */
  queuing(newMessage: NewMessage, now: number): Transaction<Message> {
    const createdAt = new Date(now).toISOString();
    const message: Message = { id: this.#nextId(now), ...newMessage, status: "queued", createdAt };
    const waiting = waitingKey(message.accountId);
    return {
      queue: QUEUE,
      reads: [waiting],
      peeks: [WAITING],
      decide(rows, write) {
        if (decodeCount(rows.get(waiting)) >= MAX_WAITING) throw queueFull();
        write.set(messageKey(message.id), encodeJson(message));
        write.add(WAITING, 1);
        write.add(waiting, 1);
        return message;
      },
    };
  }

  /** How many messages wait: of one account, or of all. */
  async countWaiting(accountId?: string): Promise<number> {
    const key = accountId === undefined ? WAITING : waitingKey(accountId);
    return decodeCount(await this.#store.get(key));
  }

  /** The oldest messages, up to `count`. */
  async *list(count: number): AsyncGenerator<Message> {
    let left = count;
    const pages = this.#store.pages([MESSAGES, ""], [MESSAGES, "~"], Math.min(count, LIST_PAGE));
    for await (const page of pages) {
      yield* page.slice(0, left).map((entry) => decodeJson<Message>(entry));
      left -= page.length;
      if (left <= 0) return;
    }
  }

  /** The messages with these ids that wait. */
  async find(ids: readonly string[]): Promise<Message[]> {
    const entries = await this.#store.getMany(ids.map(messageKey));
    return entries.filter((entry) => entry !== null).map((entry) => decodeJson<Message>(entry));
  }

  /** Removes a message that has been taken over, if it still waits. */
  removing({ id, accountId }: Message): Transaction<void> {
    const [key, waiting] = [messageKey(id), waitingKey(accountId)];
    return {
      queue: QUEUE,
      reads: [key],
      peeks: [WAITING, waiting],
      decide(rows, write) {
        if (rows.get(key) === null) return;
        write.delete(key);
        write.add(WAITING, -1);
        write.add(waiting, -1);
      },
    };
  }

  /** Forgets an account, if no message of it waits. */
  forgetting(accountId: string): Transaction<void> {
    const key = waitingKey(accountId);
    return {
      queue: QUEUE,
      reads: [key],
      decide(rows, write) {
        const count = rows.get(key);
        if (count !== null && decodeCount(count) === 0) write.delete(key);
      },
    };
  }

  /** Ids sort by time, those of one process in the order they were made in. */
  #nextId(now: number): string {
    this.#last = Math.max(now * 1_000, this.#last + 1);
    return `msg_${this.#last.toString(36).padStart(11, "0")}${randomBase62(10)}`;
  }
}

function messageKey(id: string): Deno.KvKey {
  return [MESSAGES, id];
}

function waitingKey(accountId: string): Deno.KvKey {
  return [...WAITING, accountId];
}

function queueFull(): ApiError {
  const message =
    `${MAX_WAITING} messages of this account are waiting to be sent. Try again in ${RETRY_AFTER} s.`;
  return new ApiError("queue_full", message, { "retry-after": `${RETRY_AFTER}` });
}
