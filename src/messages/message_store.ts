import { randomBase62 } from "../accounts/api_key.ts";
import { batched, type Waiting } from "../store/batch.ts";
import { type Along, both, type Change, NO_CHANGE } from "../batching/change.ts";
import { GroupCommit } from "../batching/group_commit.ts";
import { BoundedMap } from "../store/cache.ts";
import { ApiError } from "../http/error.ts";
import { AGAIN, retried } from "../kv/retried.ts";
import { decodeCount, decodeJson, encodeJson, versionstampOf } from "../kv/row.ts";
import type { Store } from "../kv/store.ts";

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

const MESSAGES = "messages";
/** How many messages wait, of all accounts. */
const WAITING: Deno.KvKey = ["messages_waiting"];
const LIST_PAGE = 100;
const MAX_QUEUES = 1_000;
/** Messages that share a commit. */
const MAX_AT_ONCE = 100;

/** A message that is to be accepted, and what is to be changed along with it. */
interface Submission {
  readonly message: Message;
  readonly change: Change;
}

type WaitingSubmission = Waiting<Submission, boolean>;

/** Has a message accepted; resolves to whether it was. */
type Queue = (submission: Submission) => Promise<boolean>;

/** Accepted messages, in the order of their creation. Every method throws StoreUnavailable when KV fails. */
export class MessageStore {
  readonly #store: Store;
  readonly #group: GroupCommit;
  /** By account. */
  readonly #queues: BoundedMap<string, Queue> = new BoundedMap(MAX_QUEUES);
  /** When the last message was queued, in microseconds. */
  #last = 0;

  constructor(store: Store) {
    this.#store = store;
    this.#group = new GroupCommit(store);
  }

  /**
   * Accepts a message at `now` (ms), if another change can be made along with it; else null. It is null, too,
   * when another process has accepted one of the account meanwhile.
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
    const isAccepted = await this.#queueOf(accountId)({ message, change: along(message) });
    return isAccepted ? message : null;
  }

  #queueOf(accountId: string): Queue {
    const known = this.#queues.get(accountId);
    if (known !== undefined) return known;
    const queue: Queue = batched((round) => this.#acceptRound(accountId, round));
    this.#queues.set(accountId, queue);
    return queue;
  }

  /** Accepts what waits as long as there is room, on condition that nobody else accepts any meanwhile. */
  async #acceptRound(accountId: string, round: readonly WaitingSubmission[]): Promise<void> {
    const key = waitingKey(accountId);
    const count = await this.#store.get(key);
    let [room, versionstamp] = [MAX_WAITING - decodeCount(count), versionstampOf(count)];
    if (room <= 0) throw queueFull();
    let next = 0;
    for (let isAlone = true; isAlone && next < round.length && room > 0;) {
      const some = fitting(round.slice(next, next + room), this.#store.maxChecks);
      const check = { key, versionstamp };
      const commits = some.map(async ({ item, resolve, reject }) => {
        const result = await this.#group.commit(changeOf(item, check)).catch(reject);
        resolve(result?.ok ?? false);
        return result?.ok ? result.versionstamp : null;
      });
      const versionstamps = new Set(await Promise.all(commits));
      isAlone = versionstamps.size === 1 && !versionstamps.has(null);
      [versionstamp = null] = versionstamps;
      next += some.length;
      room -= some.length;
    }
    // Whoever is left may try again: there may be no room then, but the first reply to the same request.
    for (const { resolve } of round.slice(next)) resolve(false);
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

  /** Forgets an account, if no message of it waits. */
  async forget(accountId: string): Promise<void> {
    const count = await this.#store.get(waitingKey(accountId));
    if (count === null || decodeCount(count) > 0) return;
    await this.#store.commit((operation) => operation.check(count).delete(count.key));
  }

  /** Ids sort by time, those of one process in the order they were made in. */
  #nextId(now: number): string {
    this.#last = Math.max(now * 1_000, this.#last + 1);
    return `msg_${this.#last.toString(36).padStart(11, "0")}${randomBase62(10)}`;
  }
}

/** Sums wrap around at 2^64. */
const ONE_LESS = 2n ** 64n - 1n;

/** The first that one commit can check, beside the count. */
function fitting(waiting: readonly WaitingSubmission[], maxChecks: number): WaitingSubmission[] {
  const checks = new Set<Deno.AtomicCheck>();
  const end = waiting.findIndex(({ item }) => {
    for (const check of item.change.checks) checks.add(check);
    return checks.size + 1 > maxChecks;
  });
  return waiting.slice(0, Math.min(end === -1 ? Infinity : end, MAX_AT_ONCE));
}

function changeOf({ message, change }: Submission, count: Deno.AtomicCheck): Change {
  return both({
    checks: [count],
    sets: [[[MESSAGES, message.id], encodeJson(message)]],
    increments: [WAITING, count.key],
  }, change);
}

function waitingKey(accountId: string): Deno.KvKey {
  return [...WAITING, accountId];
}

function queueFull(): ApiError {
  const message = `${MAX_WAITING} messages of this account wait to be sent. Try again in 60 s.`;
  return new ApiError("queue_full", message, { "retry-after": "60" });
}
