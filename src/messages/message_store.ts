import { randomBase62 } from "../accounts/api_key.ts";
import { ApiError } from "../http/error.ts";
import { decodeCount, decodeJson, encodeJson } from "../kv/row.ts";
import type { Store } from "../kv/store.ts";
import type { Queue, Transaction } from "../store/transaction.ts";

/** A queued message. */
export interface Message {
  readonly id: string;
  readonly message: string;
  readonly status: "queued";
  /** ISO 8601, UTC. */
  readonly createdAt: string;
  /** The account that sent it. */
  readonly accountId: string;
}

/** A message to queue. */
export type NewMessage = Pick<Message, "message" | "accountId">;

/** Maximum number of queued messages of one account. */
export const MAX_WAITING = 1_000;

/** The Retry-After of a full queue, in seconds. */
const RETRY_AFTER = 60;
const MESSAGES = "messages";
/** Key of the number of queued messages of all accounts. */
const WAITING: Deno.KvKey = ["messages_waiting"];
const LIST_PAGE = 100;
const QUEUE: Queue = { label: "changes", lanes: () => 3 };

/** Queued messages, in the order of their creation. Methods that read throw StoreUnavailable if KV fails. */
export class MessageStore {
  readonly #store: Store;
  /** Time of the last message, in microseconds. */
  #last = 0;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Queues a message at `now` (ms since the epoch). Throws the ApiError `queue_full`. */
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

  /** The number of queued messages of one account, or of all. */
  async countWaiting(accountId?: string): Promise<number> {
    const key = accountId === undefined ? WAITING : waitingKey(accountId);
    return decodeCount(await this.#store.get(key));
  }

  /** Yields up to `count` of the oldest messages. */
  async *list(count: number): AsyncGenerator<Message> {
    let left = count;
    const pages = this.#store.pages([MESSAGES, ""], [MESSAGES, "~"], Math.min(count, LIST_PAGE));
    for await (const page of pages) {
      yield* page.slice(0, left).map((entry) => decodeJson<Message>(entry));
      left -= page.length;
      if (left <= 0) return;
    }
  }

  /** Reads the messages with these IDs that are still queued. */
  async find(ids: readonly string[]): Promise<Message[]> {
    const entries = await this.#store.getMany(ids.map(messageKey));
    return entries.filter((entry) => entry !== null).map((entry) => decodeJson<Message>(entry));
  }

  /** Removes a message, if it is still queued. */
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

  /** Removes the count of an account that has no queued messages. */
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

  /** IDs sort by time: within a process, in order of creation. */
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
