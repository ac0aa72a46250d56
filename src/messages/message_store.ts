import { MINUTE } from "../base/mod.ts";
import {
  CorruptRow,
  type Decided,
  decodeCount,
  decodeJson,
  encodeJson,
  type Entry,
  type Store,
  type Transaction,
  type Write,
} from "../engine/mod.ts";
import { ApiError, type ErrorKind, invalidRequest } from "../web/mod.ts";
import { type OwnLimit, randomBase62, usedUp } from "../service/mod.ts";

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

/** A message and the account that sent it; undefined if that cannot be read. */
interface Sent extends Pick<Message, "id"> {
  readonly accountId: string | undefined;
}

/** The account has as many queued messages as it can have. */
export const QUEUE_FULL: ErrorKind = {
  code: "queue_full",
  status: 429,
  means: "Too many messages of the account are waiting to be sent.",
  todo: "Try again after Retry-After. This request counted toward your limits.",
};
/** The account cannot be deleted yet. */
export const MESSAGES_WAITING: ErrorKind = {
  code: "messages_waiting",
  status: 409,
  means: "Messages of the account are waiting to be taken.",
  todo: "Take the messages and remove them first.",
};

/** Control characters, which take six bytes each in JSON and could disrupt a terminal, except tab and line ends. */
const CONTROLS = /(?![\t\n\r])\p{Cc}/u;

/** Maximum number of queued messages of one account. */
export const MAX_WAITING = 1_000;
const QUEUED: OwnLimit = {
  of: "account",
  name: "messages",
  count: MAX_WAITING,
  kind: QUEUE_FULL,
  reason: (count) => `This account has ${count} messages waiting to be sent.`,
};
/** Counts of queued messages by account. An account without messages may have no row. */
const WAITING = "messages_waiting";
/** Maximum number of accounts whose messages are counted. */
export const MAX_COUNTED = 10_000;
const LIST_PAGE = 100;

/** Queued messages, in the order of their creation. Methods that read throw StoreUnavailable if KV fails. */
export class MessageStore {
  readonly #store: Store;
  /** Time of the last message, in microseconds. */
  #last = 0;

  constructor(store: Store) {
    this.#store = store;
  }

  /**
   * Queues a message at `now`.
   *
   * @throws {ApiError} `invalid_request` if it has a control character. Its decision says so, because 1.0.0 accepted them:
   *   the reply that it stored for an Idempotency-Key is returned before that.
   * @throws {ApiError} `queue_full`
   */
  queuing(newMessage: Pick<Message, "message" | "accountId">, now: number): Transaction<Message> {
    const createdAt = new Date(now).toISOString();
    const message: Message = { id: this.#nextId(now), ...newMessage, status: "queued", createdAt };
    const waiting = waitingKey(message.accountId);
    return {
      reads: [waiting],
      decide(rows, write) {
        if (CONTROLS.test(message.message)) {
          const rule = "have no control characters other than tab and line ends";
          throw invalidRequest(`The field message must ${rule}.`, "message");
        }
        const count = decodeCount(rows.get(waiting));
        if (count >= MAX_WAITING) throw usedUp(QUEUED, now + MINUTE, now);
        write.set(messageKey(message.id), encodeJson(message));
        putCount(waiting, count + 1, write);
        return message;
      },
    };
  }

  /** The number of queued messages, of at most MAX_COUNTED accounts. */
  async countWaiting(): Promise<number> {
    let [accounts, waiting] = [0, 0];
    for await (const page of this.#store.pages(waitingKey(""), waitingKey("~"))) {
      waiting += page.reduce((sum, count) => sum + decodeCount(count), 0);
      if ((accounts += page.length) >= MAX_COUNTED) break;
    }
    return waiting;
  }

  /** Yields up to `count` of the oldest messages. @throws {CorruptRow} if one cannot be read; it names the message. */
  async *list(count: number): AsyncGenerator<Message> {
    let left = count;
    const pages = this.#store.pages(messageKey(""), messageKey("~"), Math.min(count, LIST_PAGE));
    for await (const page of pages) {
      yield* page.slice(0, left).map(decodeMessage);
      left -= page.length;
      if (left <= 0) return;
    }
  }

  /** Reads the messages with these IDs that are still queued. One that cannot be read has no account. */
  async find(ids: readonly string[]): Promise<Sent[]> {
    const entries = await this.#store.getMany(ids.map(messageKey));
    return entries.flatMap((entry, index) => entry ? [sentIn(entry, ids[index] ?? "")] : []);
  }

  /** Removes a message, if it is still queued. */
  removing({ id, accountId }: Sent): Transaction<undefined> {
    const key = messageKey(id);
    const waiting = accountId === undefined ? undefined : waitingKey(accountId);
    return {
      reads: [key, ...(waiting ? [waiting] : [])],
      decide(rows, write) {
        if (rows.get(key) === null) return;
        write.delete(key);
        if (waiting) putCount(waiting, decodeCount(rows.get(waiting)) - 1, write);
      },
    };
  }

  /** IDs sort by time: within a process, in order of creation. */
  #nextId(now: number): string {
    this.#last = Math.max(now * 1_000, this.#last + 1);
    return `msg_${this.#last.toString(36).padStart(11, "0")}${randomBase62(10)}`;
  }
}

/**
 * Extends the removal of an account: the same commit removes the count of its messages. If some are queued, the removal
 * throws the ApiError `messages_waiting`.
 */
export function forgetting<Result extends Decided>(
  accountId: string,
  removal: Transaction<Result>,
): Transaction<Result> {
  const key = waitingKey(accountId);
  return {
    ...removal,
    reads: [key, ...removal.reads ?? []],
    decide(rows, write, now) {
      const result = removal.decide(rows, write, now);
      const row = rows.get(key);
      const waiting = decodeCount(row);
      if (waiting > 0) {
        const message = `The account still has messages waiting (${waiting}); take them first.`;
        throw new ApiError(MESSAGES_WAITING, message);
      }
      if (row) write.delete(key);
      return result;
    },
  };
}

/** @throws {CorruptRow} that says how to remove it, because it would keep all later ones in the queue. */
function decodeMessage(entry: Entry): Message {
  try {
    return decodeJson<Message>(entry);
  } catch (error) {
    if (!(error instanceof CorruptRow)) throw error;
    throw new CorruptRow(`The message ${String(entry.key.at(-1))} cannot be read: remove it`);
  }
}

function sentIn(entry: Entry, id: string): Sent {
  try {
    return decodeMessage(entry);
  } catch (error) {
    if (!(error instanceof CorruptRow)) throw error;
    return { id, accountId: undefined };
  }
}

function messageKey(id: string): Deno.KvKey {
  return ["messages", id];
}

function waitingKey(accountId: string): Deno.KvKey {
  return [WAITING, accountId];
}

function putCount(key: Deno.KvKey, count: number, write: Write): void {
  if (count > 0) write.set(key, new Deno.KvU64(BigInt(count)));
  else write.delete(key);
}
