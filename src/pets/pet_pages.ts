import { BoundedMap } from "../caching/bounded_map.ts";
import { VersionedCache } from "../caching/versioned_cache.ts";
import type { Watched } from "../caching/watched.ts";
import { etagOf } from "../http/etag.ts";
import { Representation } from "../http/response.ts";
import { FIRST_PAGES, parsePetQuery, toQueryString } from "./pet_query.ts";
import type { PetStore } from "./pet_store.ts";

/** Where the catalogue is. */
export const PETS_PATH = "/v1/pets";

const MAX_OTHER_PAGES = 100;
const MAX_QUERIES = 1_000;
/** Longer than the query string of any page. */
const MAX_QUERY_LENGTH = 64;
const MAX_BASES = 4;

/** Where a page is kept. */
interface Place {
  readonly cache: VersionedCache<string, RenderedPage>;
  /** The query string that stands for all that ask for the page. */
  readonly query: string;
}

/** Pages of the catalogue, each kept for as long as no animal changes. */
export class PetPages {
  readonly #pets: PetStore;
  /** Those without a cursor: there is room for all, so no other page takes the place of one. */
  readonly #first: VersionedCache<string, RenderedPage>;
  readonly #others: VersionedCache<string, RenderedPage>;
  /** By query string as it was sent: one that was seen before is not parsed again. */
  readonly #places: BoundedMap<string, Place> = new BoundedMap(MAX_QUERIES);

  /** What `get` finds is as true as the version of the catalogue: it has to have been looked at. */
  constructor(pets: PetStore, catalogue: Watched) {
    this.#pets = pets;
    const render = (query: string) => this.#render(query);
    // A bounded map is sure to keep half of what it has room for.
    this.#first = new VersionedCache(catalogue, 2 * FIRST_PAGES, render);
    this.#others = new VersionedCache(catalogue, MAX_OTHER_PAGES, render);
  }

  /**
   * The page that a query string asks for.
   *
   * @throws {ApiError} `invalid_request`, naming the parameter and what was expected.
   */
  get(query: string): RenderedPage | Promise<RenderedPage> {
    const place = this.#places.get(query) ?? this.#find(query);
    return place.cache.get(place.query);
  }

  #find(query: string): Place {
    const petQuery = parsePetQuery(query);
    const cache = petQuery.after === 0 ? this.#first : this.#others;
    const place = { cache, query: toQueryString(petQuery) };
    if (query.length <= MAX_QUERY_LENGTH) this.#places.set(query, place);
    return place;
  }

  async #render(query: string): Promise<RenderedPage> {
    const petQuery = parsePetQuery(query);
    const { pets, next } = await this.#pets.list(petQuery);
    return new RenderedPage({
      query,
      json: `[${pets.join(",")}]`,
      next: next === undefined ? "" : toQueryString({ ...petQuery, after: next }),
    });
  }
}

/** What a page is made of. */
interface PageContent {
  /** The query string that it answers. */
  readonly query: string;
  readonly json: string;
  /** The query string of the next page; empty where this is the last. */
  readonly next: string;
}

/** A page of the catalogue. */
export class RenderedPage {
  readonly #content: PageContent;
  readonly #etag: string;
  /** By what URLs begin with: those that come first, for a client can make up any number of hosts. */
  readonly #representations: Map<string, Representation> = new Map();

  constructor(content: PageContent) {
    this.#content = content;
    // A page that has gained a next one is another, though its animals are the same.
    this.#etag = etagOf([content.query, content.next, content.json].join("\n"));
  }

  /** The page, or 304 when the client has it already; a shared response. `base` is what its URLs begin with. */
  respondTo(request: Request, base: string): Response {
    return (this.#representations.get(base) ?? this.#represent(base)).respondTo(request);
  }

  #represent(base: string): Representation {
    const { json, next } = this.#content;
    const headers: Record<string, string> = next === ""
      ? {}
      : { link: `<${base}${PETS_PATH}${next}>; rel="next"` };
    const made = new Representation(json, { headers, etag: this.#etag });
    if (this.#representations.size < MAX_BASES) this.#representations.set(base, made);
    return made;
  }
}
