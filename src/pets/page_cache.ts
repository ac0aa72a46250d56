import { stringifyJson } from "../http/json.ts";
import type { Head } from "../kv/collection.ts";
import { BoundedMap } from "../kv/bounded_map.ts";
import { encodeCursor } from "./cursor.ts";
import type { PetQuery, PetStore } from "./pet_store.ts";

/** A page of a listing, ready to send. */
export interface RenderedPage {
  readonly body: Uint8Array<ArrayBuffer>;
  readonly etag: string;
  /** Where the next page starts; undefined on the last page. */
  readonly nextCursor: string | undefined;
}

interface CachedPage {
  readonly versionstamp: string | null;
  readonly page: Promise<RenderedPage>;
}

const MAX_PAGES = 100;
const ENCODER = new TextEncoder();

/** Keeps recent pages for as long as the catalogue stays at the version they were made from. */
export class PageCache {
  readonly #pets: PetStore;
  readonly #pages: BoundedMap<string, CachedPage> = new BoundedMap(MAX_PAGES);

  constructor(pets: PetStore) {
    this.#pets = pets;
  }

  /** The page of the catalogue as it is at `head`; those who ask at the same time share one read. */
  get(query: PetQuery, head: Head): Promise<RenderedPage> {
    const name = `${query.limit}.${query.status ?? "any"}.${query.after}`;
    const cached = this.#pages.get(name);
    if (cached?.versionstamp === head.versionstamp) return cached.page;
    const page = this.#render(query, head, `"${head.versionstamp ?? 0}.${name}"`);
    page.catch(() => this.#pages.delete(name));
    this.#pages.set(name, { versionstamp: head.versionstamp, page });
    return page;
  }

  async #render(query: PetQuery, head: Head, etag: string): Promise<RenderedPage> {
    const { pets, more } = await this.#pets.list(query, head);
    const last = pets.at(-1);
    return {
      body: ENCODER.encode(stringifyJson(pets)),
      etag,
      nextCursor: more && last ? encodeCursor(last.id) : undefined,
    };
  }
}
