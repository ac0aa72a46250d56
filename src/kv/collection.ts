import { batched, type Waiting } from "./batcher.ts";
import { decodeJson, encodeJson, type JsonValue } from "./json_value.ts";
import { retried } from "./retry.ts";
import type { Entry, Store } from "./store.ts";

/** The newest state of a collection: its last id, and a versionstamp that changes with every append. */
export interface Head {
  readonly lastId: number;
  /** Null while nothing was ever appended. */
  readonly versionstamp: string | null;
}

/** What the row of a head holds; its versionstamp is the head's. */
export type HeadRow = JsonValue<{ readonly lastId: number }>;

/** A key and the value to store under it. */
export type Row = readonly [key: Deno.KvKey, value: Uint8Array<ArrayBuffer>];

/** What else an append stores in its commit, on condition that `guard` still holds. */
export interface Attachment<Item> {
  readonly guard: Deno.AtomicCheck;
  rows(item: Item): readonly Row[];
}

/** How a collection is kept. */
export interface CollectionOptions<Draft, Item> {
  /** Key of the row that allocates ids and versions the whole collection. */
  readonly head: Deno.KvKey;
  /** Appends that one commit may carry, such that their rows fit into one atomic operation. */
  readonly appendsPerCommit: number;
  /** The item that a draft becomes with its id. */
  item(draft: Draft, id: number): Item;
  /** The rows an item is stored in. */
  rows(item: Item): readonly Row[];
}

interface Append<Draft, Item> {
  readonly draft: Draft;
  readonly attachment: Attachment<Item> | undefined;
}

type WaitingAppend<Draft, Item> = Waiting<Append<Draft, Item>, Item | undefined>;

/** The head that a row holds. */
export function headOf(entry: Entry<HeadRow> | null): Head {
  return entry ? { ...decodeJson(entry.value), versionstamp: entry.versionstamp } : EMPTY;
}

const EMPTY: Head = { lastId: 0, versionstamp: null };

/** Items with ascending ids from 1, appended durably; one commit carries every append that waits. */
export class Collection<Draft, Item> {
  readonly #append: (append: Append<Draft, Item>) => Promise<Item | undefined>;
  readonly #store: Store;
  readonly #options: CollectionOptions<Draft, Item>;
  #known: Head | undefined;

  constructor(store: Store, options: CollectionOptions<Draft, Item>) {
    this.#store = store;
    this.#options = options;
    this.#append = batched((round) => this.#appendRound(round), { patient: true });
  }

  /**
   * Resolves to the item once it is stored, or to undefined when the attachment's guard had changed.
   *
   * @throws {StoreUnavailable}
   */
  append(draft: Draft, attachment?: Attachment<Item>): Promise<Item | undefined> {
    return this.#append({ draft, attachment });
  }

  async #readHead(): Promise<Head> {
    return headOf(await this.#store.get<HeadRow>(this.#options.head));
  }

  async #appendRound(round: readonly WaitingAppend<Draft, Item>[]): Promise<void> {
    let waiting = round;
    while (waiting.length > 0) {
      const { slice, rest } = this.#firstSlice(waiting);
      await this.#appendUntilStored(slice);
      waiting = rest;
    }
  }

  async #appendUntilStored(slice: readonly WaitingAppend<Draft, Item>[]): Promise<void> {
    let waiting = slice;
    await retried(async () => {
      if (await this.#appendSlice(waiting)) return true;
      waiting = await this.#withdrawGuarded(waiting);
      return waiting.length === 0 ? true : undefined;
    });
  }

  /** As many as fit into one commit; of two with the same guard, the second has to see the first's rows. */
  #firstSlice(
    waiting: readonly WaitingAppend<Draft, Item>[],
  ): Record<"slice" | "rest", WaitingAppend<Draft, Item>[]> {
    const slice: WaitingAppend<Draft, Item>[] = [];
    const rest: WaitingAppend<Draft, Item>[] = [];
    const guards = new Set<string>();
    const maxGuards = this.#store.maxChecks - 1;
    for (const call of waiting) {
      const { attachment } = call.item;
      const guard = attachment && JSON.stringify(attachment.guard.key);
      const guardFits = guard === undefined || (!guards.has(guard) && guards.size < maxGuards);
      const fits = guardFits && slice.length < this.#options.appendsPerCommit;
      if (fits && guard !== undefined) guards.add(guard);
      (fits ? slice : rest).push(call);
    }
    return { slice, rest };
  }

  async #appendSlice(slice: readonly WaitingAppend<Draft, Item>[]): Promise<boolean> {
    const head = this.#known ?? await this.#readHead();
    this.#known = undefined;
    const items = slice.map(({ item: { draft } }, index) =>
      this.#options.item(draft, head.lastId + 1 + index)
    );
    const lastId = head.lastId + slice.length;
    const versionstamp = await this.#store.commit(this.#options.head.join("/"), (operation) => {
      operation.check({ key: this.#options.head, versionstamp: head.versionstamp });
      operation.set(this.#options.head, encodeJson({ lastId }));
      items.forEach((item, index) => {
        const attachment = slice[index]?.item.attachment;
        if (attachment) operation.check(attachment.guard);
        for (const [key, value] of this.#options.rows(item)) operation.set(key, value);
        for (const [key, value] of attachment?.rows(item) ?? []) operation.set(key, value);
      });
    });
    if (versionstamp === undefined) return false;
    this.#known = { lastId, versionstamp };
    slice.forEach(({ resolve }, index) => resolve(items[index]));
    return true;
  }

  /** After a refused commit: settles the appends whose guard has changed, and returns the others. */
  async #withdrawGuarded(
    slice: readonly WaitingAppend<Draft, Item>[],
  ): Promise<WaitingAppend<Draft, Item>[]> {
    const guards = slice.flatMap(({ item: { attachment } }) => attachment ? [attachment.guard] : []);
    const entries = await this.#store.getMany(guards.map(({ key }) => key));
    const changed = new Set(guards.filter((guard, index) => !holds(guard, entries[index])));
    return slice.filter(({ item: { attachment }, resolve }) => {
      const withdrawn = attachment !== undefined && changed.has(attachment.guard);
      if (withdrawn) resolve(undefined);
      return !withdrawn;
    });
  }
}

function holds(guard: Deno.AtomicCheck, entry: Entry<unknown> | null | undefined): boolean {
  return guard.versionstamp === (entry?.versionstamp ?? null);
}
