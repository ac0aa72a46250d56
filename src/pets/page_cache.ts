import { Representation } from "../http/conditional.ts";
import type { Head } from "../kv/collection.ts";
import { BoundedMap } from "../kv/bounded_map.ts";
import { encodeCursor } from "./cursor.ts";
import { parsePetQuery } from "./pet_query.ts";
import type { PetQuery, PetStore } from "./pet_store.ts";

/** A page of a listing, ready to send. */
export interface RenderedPage {
  readonly representation: Representation;
  /** Query string of the next page; undefined on the last page. */
  readonly nextQuery: string | undefined;
}

interface CachedPage {
  readonly query: PetQuery;
  /** Of the catalogue that the page was made from. */
  readonly versionstamp: string | null;
  readonly page: Promise<RenderedPage>;
}

const MAX_PAGES = 100;

/** Keeps recent pages for as long as the catalogue stays at the version they were made from. */
export class PageCache {
  readonly #pets: PetStore;
  /** By query string. */
  readonly #pages: BoundedMap<string, CachedPage> = new BoundedMap(MAX_PAGES);

  constructor(pets: PetStore) {
    this.#pets = pets;
  }

  /**
   * The page that a query string asks for, of the catalogue as it was at some time after the moment.
   *
   * @throws {ApiError} `invalid_request`, naming the parameter and what was expected.
   * @throws {StoreUnavailable}
   */
  async get(queryString: string, after: number): Promise<RenderedPage> {
    const query = this.#pages.get(queryString)?.query ?? parsePetQuery(queryString);
    const head = await this.#pets.head(after);
    const cached = this.#pages.get(queryString);
    if (cached?.versionstamp === head.versionstamp) return cached.page;
    const page = this.#render(query, head);
    page.catch(() => this.#pages.delete(queryString));
    this.#pages.set(queryString, { query, versionstamp: head.versionstamp, page });
    return page;
  }

  async #render(query: PetQuery, head: Head): Promise<RenderedPage> {
    const { limit, status = "any", after } = query;
    const { pets, next } = await this.#pets.list(query, head);
    const etag = `"${head.versionstamp ?? 0}.${limit}.${status}.${after}"`;
    return {
      representation: new Representation(`[${pets.join(",")}]`, { etag }),
      nextQuery: next === undefined ? undefined : nextQuery(query, next),
    };
  }
}

function nextQuery({ limit, status }: PetQuery, lastId: number): string {
  const filter = status === undefined ? "" : `&status=${status}`;
  return `?limit=${limit}${filter}&cursor=${encodeCursor(lastId)}`;
}
