import { Invalid, type Schema, text } from "../api/schema.ts";
import { VersionedCache } from "../store/cache.ts";
import type { VersionRow } from "../store/versions.ts";
import { etagOf } from "../http/etag.ts";
import { Representation } from "../http/representation.ts";
import { PET_STATUSES } from "./pet.ts";
import type { PetQuery, PetStore } from "./pet_store.ts";

/** Where the catalogue is. */
export const PETS_PATH = "/v1/pets";
/** Most animals of a page. */
export const MAX_LIMIT = 100;

/** How many queries there are without a cursor: of any status or of one, with each limit. */
const FIRST_PAGES = (1 + PET_STATUSES.length) * MAX_LIMIT;
const MAX_OTHER_PAGES = 100;
const MAX_BASES = 4;

/** Where a page begins: after the animal with this id. As text it is opaque, so that no client relies on what is in it. */
export const CURSOR: Schema<number> = {
  json: {
    type: "string",
    minLength: 1,
    description: "Where the page starts: the `cursor` in the `Link` header of the previous page",
  },
  definitions: {},
  fromTexts: text().fromTexts,
  accepts: (value): value is number => Number.isSafeInteger(value),
  parse(value, subject) {
    const id = typeof value === "string" ? decodeCursor(value) : NaN;
    if (Number.isSafeInteger(id) && id > 0 && encodeCursor(id) === value) return id;
    throw new Invalid(`${subject} must be one that a Link header of this service gave`);
  },
};

/** Pages of the catalogue, each kept for as long as no animal changes. */
export class PetPages {
  readonly #pets: PetStore;
  /** Those without a cursor: there is room for all, so no other page takes the place of one. */
  readonly #first: VersionedCache<string, RenderedPage>;
  readonly #others: VersionedCache<string, RenderedPage>;

  /** What `get` finds is as true as the version of the catalogue: it has to have been looked at. */
  constructor(pets: PetStore, catalogue: VersionRow) {
    this.#pets = pets;
    // A bounded map is sure to keep half of what it has room for.
    this.#first = new VersionedCache(catalogue, 2 * FIRST_PAGES);
    this.#others = new VersionedCache(catalogue, MAX_OTHER_PAGES);
  }

  /** The page that a query asks for. */
  get(query: PetQuery): RenderedPage | Promise<RenderedPage> {
    const cache = query.cursor === undefined ? this.#first : this.#others;
    return cache.get(queryString(query), () => this.#render(query));
  }

  async #render(query: PetQuery): Promise<RenderedPage> {
    const { pets, next } = await this.#pets.list(query);
    return new RenderedPage({
      query: queryString(query),
      json: `[${pets.join(",")}]`,
      next: next === undefined ? "" : queryString({ ...query, cursor: next }),
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

  /**
   * The page, or 304 when the client has it already, as its If-None-Match tells; a shared response. `base` is what its
   * URLs begin with.
   */
  respondTo(known: string | undefined, base: string): Response {
    return (this.#representations.get(base) ?? this.#represent(base)).respondTo(known);
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

/** The one query string that stands for all that ask for the same page. */
function queryString({ limit, status, cursor }: PetQuery): string {
  const filter = status === undefined ? "" : `&status=${status}`;
  const after = cursor === undefined ? "" : `&cursor=${encodeCursor(cursor)}`;
  return `?limit=${limit}${filter}${after}`;
}

function encodeCursor(id: number): string {
  return btoa(String(id)).replaceAll("=", "");
}

function decodeCursor(cursor: string): number {
  try {
    return Number(atob(cursor));
  } catch {
    return NaN;
  }
}
