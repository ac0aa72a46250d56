import { whenReady } from "../base/mod.ts";
import { VersionedCache } from "../engine/mod.ts";
import { etagOf, quickEtagOf } from "../web/headers.ts";
import { Representation } from "../web/mod.ts";
import type { FoundItem, ItemPage, ItemQuery, Items } from "./items.ts";
import { queryTextOf } from "./list_parameters.ts";
import { mayRead } from "./resource.ts";

/** Maximum number of URL prefixes that a page keeps responses for: those used last. Clients can send any Host. */
const MAX_BASES = 4;
/** Memory of a kept response and of a clone with the headers of a policy, without their text, in bytes. */
const OVERHEAD = 4_000;

/** Options of {@linkcode Pages}. */
export interface PagesOptions {
  /** Maximum memory of the responses, in bytes. */
  readonly maxBytes: number;
  /** Further headers of a single item. */
  readonly itemHeaders: Readonly<Record<string, string>>;
}

/** An item, and its response once an account that may see it has asked. */
interface Single {
  readonly found: FoundItem;
  representation: Representation | undefined;
}

/** A collection's responses to reads, each kept until an item changes. Call the methods after a version check. */
export class Pages {
  readonly #items: Items;
  readonly #itemHeaders: Readonly<Record<string, string>>;
  /** Pages without a cursor. Requests for others do not evict them. */
  readonly #first: VersionedCache<string, Page>;
  readonly #others: VersionedCache<string, Page>;
  readonly #single: VersionedCache<number, Single | null>;
  /**
   * Query strings by parsed query, because parsed queries are cached and arrive again and again. All accounts share
   * them, so they never name an account.
   */
  readonly #strings: WeakMap<ItemQuery, string> = new WeakMap();

  constructor(items: Items, { maxBytes, itemHeaders }: PagesOptions) {
    this.#items = items;
    this.#itemHeaders = itemHeaders;
    this.#first = new VersionedCache(items.version, maxBytes / 2, ({ size }) => size);
    this.#others = new VersionedCache(items.version, maxBytes / 4, ({ size }) => size);
    this.#single = new VersionedCache(
      items.version,
      maxBytes / 4,
      // The row, its text, and the body of the response.
      (single) => OVERHEAD + 3 * (single?.found.bytes ?? 0),
    );
  }

  /** A page as an account sees it. If accounts see different items, none gets a page that was kept for another. */
  page(query: ItemQuery, accountId: string): Page | Promise<Page> {
    const name = this.#stringOf(query);
    const reader = this.#items.resource.readableBy === "owner" ? accountId : "";
    const cache = query.cursor === undefined ? this.#first : this.#others;
    return cache.get(reader + name, (earlier) => this.#render(query, reader, { name, earlier }));
  }

  /**
   * An item, or null if there is none that the account may see. Another account's item is not even decoded, so that the
   * time of the response tells little about whether there is one.
   *
   * @throws {UnreadableItem}
   */
  single(id: number, accountId: string): Representation | null | Promise<Representation | null> {
    const single = this.#single.get(id, async () => {
      const found = await this.#items.find(id);
      return found && { found, representation: undefined };
    });
    return whenReady(single, (single) => {
      const isSeen = single && mayRead(this.#items.resource, single.found.ownerId ?? accountId, accountId);
      return isSeen ? single.representation ??= this.#represent(single.found) : null;
    });
  }

  #represent({ json }: FoundItem): Representation {
    const text = json();
    return new Representation(text, { headers: this.#itemHeaders, etag: quickEtagOf(text) });
  }

  /** Returns `earlier`, with its responses, if it is still current: most changes leave most pages as they were. */
  async #render(
    query: ItemQuery,
    reader: string,
    { name, earlier }: { readonly name: string; readonly earlier: Page | undefined },
  ): Promise<Page> {
    const read = await this.#items.list(query, reader, earlier?.read);
    if (read === earlier?.read) return earlier;
    const next = read.next === undefined ? "" : this.#stringOf({ ...query, cursor: read.next });
    // Includes the link to the next page, which can change although the items are the same.
    const etag = etagOf([name, next, read.json].join("\n"));
    return new Page(read, etag, next && this.#items.resource.path + next);
  }

  /** The canonical query string of a page. */
  #stringOf(query: ItemQuery): string {
    const known = this.#strings.get(query);
    if (known !== undefined) return known;
    const made = `?limit=${query.limit}${queryTextOf(this.#items.resource, query)}`;
    this.#strings.set(query, made);
    return made;
  }
}

/** A page as responses. */
export class Page {
  readonly read: ItemPage;
  /** Approximate maximum of its memory, in bytes. */
  readonly size: number;
  readonly #etag: string;
  readonly #next: string;
  /** By URL prefix, the one used last at the end. */
  readonly #representations: Map<string, Representation> = new Map();
  #latest: string | undefined;

  /** `next` is the path and the query string of the next page; empty if there is none. */
  constructor(read: ItemPage, etag: string, next: string) {
    this.read = read;
    this.size = OVERHEAD + (2 + MAX_BASES) * read.bytes;
    this.#etag = etag;
    this.#next = next;
  }

  /**
   * A shared response: the page with URLs that begin with `base`, or 304 if `known`, the value of If-None-Match, has
   * the current entity tag.
   */
  respondTo(known: string | undefined, base: string): Response {
    const kept = this.#representations;
    const representation = kept.get(base) ?? this.#represent(base);
    if (base !== this.#latest) { // Most clients use the same, and to move an entry takes time.
      kept.delete(base);
      kept.set(base, representation);
      const [oldest = base] = kept.keys();
      if (kept.size > MAX_BASES) kept.delete(oldest);
      this.#latest = base;
    }
    return representation.respondTo(known);
  }

  #represent(base: string): Representation {
    const link = `<${base}${this.#next}>; rel="next"`;
    const headers: Record<string, string> = this.#next === "" ? {} : { link };
    return new Representation(this.read.json, { headers, etag: this.#etag });
  }
}
