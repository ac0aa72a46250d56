import { ApiError } from "../http/error.ts";
import { randomBase62 } from "../access/api_key.ts";
import { AGAIN, retried } from "../kv/deadline.ts";
import { type Along, GroupCommit, NO_CHANGE } from "../kv/group_commit.ts";
import { decodeCount, decodeJson, encodeJson, versionstampOf } from "../kv/row.ts";
import type { Store } from "../kv/store.ts";
import type { Message, NewMessage } from "./message.ts";

/** Most messages of one account that wait. */
export const MAX_WAITING = 1_000;

const MESSAGES = "messages";
/** How many messages wait, of all accounts. */
const WAITING: Deno.KvKey = ["messages_waiting"];
const LIST_PAGE = 100;

/** Accepted messages, in the order of their creation. Every method throws StoreUnavailable when KV fails. */
export class MessageStore {
  readonly #store: Store;
  readonly #group: GroupCommit;
  /** Messages by account that this process is about to accept. */
  readonly #arriving: Map<string, number> = new Map();
  /** Place in time of the last message, in microseconds. */
  #last = 0;

  constructor(store: Store) {
    this.#store = store;
    this.#group = new GroupCommit(store, []);
  }

  /**
   * Accepts a message at `now` (ms), if another change can be made along with it; else null.
   *
   * @throws {ApiError} `queue_full`.
   */
  async create(
    newMessage: NewMessage,
    now: number,
    along: Along<Message> = () => NO_CHANGE,
  ): Promise<Message | null> {
    const { accountId } = newMessage;
    const createdAt = new Date(now).toISOString();
    const message: Message = { id: this.#nextId(now), ...newMessage, status: "queued", createdAt };
    const arriving = (this.#arriving.get(accountId) ?? 0) + 1;
    this.#arriving.set(accountId, arriving);
    try {
      const count = await this.#store.get(waitingKey(accountId));
      const waiting = decodeCount(count);
      if (waiting >= MAX_WAITING) throw queueFull();
      // Only in the second half of the queue can it be that too many arrive at once.
      const isHalfFull = waiting + arriving > MAX_WAITING / 2;
      const versionstamp = versionstampOf(count);
      const checks = isHalfFull ? [{ key: waitingKey(accountId), versionstamp }] : [];
      return await this.#accept(message, checks, along);
    } finally {
      this.#arriving.set(accountId, (this.#arriving.get(accountId) ?? 1) - 1);
      if (this.#arriving.get(accountId) === 0) this.#arriving.delete(accountId);
    }
  }

  async #accept(
    message: Message,
    unchanged: readonly Deno.AtomicCheck[],
    along: Along<Message>,
  ): Promise<Message | null> {
    const key = [MESSAGES, message.id];
    const { checks, sets } = along(message);
    const { ok } = await this.#group.commit({
      checks: [{ key, versionstamp: null }, ...unchanged, ...checks],
      sets: [[key, encodeJson(message)], ...sets],
      increments: [WAITING, waitingKey(message.accountId)],
    });
    return ok ? message : null;
  }

  /** How many messages wait: of one account, or of all. */
  async countWaiting(accountId?: string): Promise<number> {
    const key = accountId === undefined ? WAITING : waitingKey(accountId);
    return decodeCount(await this.#store.get(key));
  }

  /** The oldest messages, up to `count`. */
  async *list(count: number): AsyncGenerator<Message> {
    let after = "";
    for (let left = count; left > 0;) {
      const range = { start: [MESSAGES, `${after}\0`], end: [MESSAGES, "~"] };
      const page = (await this.#store.list(range, Math.min(left, LIST_PAGE))).map((entry) =>
        decodeJson<Message>(entry)
      );
      yield* page;
      after = page.at(-1)?.id ?? "";
      left = page.length < LIST_PAGE ? 0 : left - page.length;
    }
  }

  /** Removes messages that have been taken over. */
  async remove(ids: readonly string[]): Promise<void> {
    const { maxChecks } = this.#store;
    const distinct = [...new Set(ids)];
    for (let start = 0; start < distinct.length; start += maxChecks) {
      const keys = distinct.slice(start, start + maxChecks).map((id) => [MESSAGES, id]);
      await retried(async () => {
        const entries = await this.#store.getMany(keys);
        const messages = entries.filter((entry) => entry !== null);
        const { ok } = await this.#store.commit((operation) => {
          for (const entry of messages) {
            operation.check(entry).delete(entry.key);
            operation.sum(WAITING, ONE_LESS).sum(waitingKey(decodeJson<Message>(entry).accountId), ONE_LESS);
          }
        });
        return ok ? undefined : AGAIN;
      });
    }
  }

  /** Forgets an account of which no message waits. */
  async forget(accountId: string): Promise<void> {
    await this.#store.remove([waitingKey(accountId)]);
  }

  /** Ids sort by time, those of one process in the order they were made in. */
  #nextId(now: number): string {
    this.#last = Math.max(now * 1_000, this.#last + 1);
    return `msg_${this.#last.toString(36).padStart(11, "0")}${randomBase62(4)}`;
  }
}

/** Sums wrap around at 2^64. */
const ONE_LESS = 2n ** 64n - 1n;

function waitingKey(accountId: string): Deno.KvKey {
  return [...WAITING, accountId];
}

function queueFull(): ApiError {
  const message = `${MAX_WAITING} messages of this account wait to be sent. Try again in 60 s.`;
  return new ApiError("queue_full", message, { "retry-after": "60" });
}
