import { EXTENSION } from "../web/headers.ts";
import { Invalid, type Schema, text } from "../web/schema.ts";
import { VersionedCache } from "../engine/cache.ts";
import type { VersionRow } from "../engine/versions.ts";
import { etagOf } from "../web/etag.ts";
import { Representation } from "../web/representation.ts";
import { PET_STATUSES } from "./pet.ts";
import type { PetPage, PetQuery, PetStore } from "./pet_store.ts";

/** Path of the catalogue. */
export const PETS_PATH = "/v1/pets";
/** Maximum number of animals in a page. */
export const MAX_LIMIT = 100;

/** Number of different queries without a cursor: with each status or none, and with each limit. */
const FIRST_PAGES = (1 + PET_STATUSES.length) * MAX_LIMIT;
const MAX_OTHER_PAGES = 100;
const MAX_BASES = 4;

/** The ID of the last animal before the page. Its text is opaque, so that clients do not rely on its content. */
export const CURSOR: Schema<number> = {
  json: {
    type: "string",
    minLength: 1,
    description:
      `Where the page starts: the \`cursor\` in the \`Link\` header of the previous page. ${EXTENSION}`,
  },
  definitions: {},
  fromStrings: text().fromStrings,
  accepts: (value): value is number => Number.isSafeInteger(value),
  parse(value, subject) {
    const id = typeof value === "string" ? decodeCursor(value) : NaN;
    if (Number.isSafeInteger(id) && id > 0 && encodeCursor(id) === value) return id;
    throw new Invalid(`${subject} must be a cursor from a Link header of this service`);
  },
};

/** Pages of the catalogue, each cached until an animal changes. */
export class PetPages {
  readonly #pets: PetStore;
  /** Pages without a cursor. There is room for all of them. */
  readonly #first: VersionedCache<string, RenderedPage>;
  readonly #others: VersionedCache<string, RenderedPage>;

  /** `get` relies on the last known version of the catalogue, so call it after a check of the versions. */
  constructor(pets: PetStore, catalogue: VersionRow) {
    this.#pets = pets;
    // A bounded map may evict entries once it is half full.
    this.#first = new VersionedCache(catalogue, 2 * FIRST_PAGES);
    this.#others = new VersionedCache(catalogue, MAX_OTHER_PAGES);
  }

  /** The page for a query. */
  get(query: PetQuery): RenderedPage | Promise<RenderedPage> {
    const cache = query.cursor === undefined ? this.#first : this.#others;
    return cache.get(queryString(query), (earlier) => this.#render(query, earlier));
  }

  /** Most changes leave most pages as they were, so `earlier`, with its representations, is returned if it is current. */
  async #render(query: PetQuery, earlier: RenderedPage | undefined): Promise<RenderedPage> {
    const page = await this.#pets.list(query, earlier?.page);
    return page === earlier?.page ? earlier : new RenderedPage(query, page);
  }
}

/** A page of the catalogue as responses. */
export class RenderedPage {
  readonly page: PetPage;
  readonly #json: string;
  /** The query string of the next page; empty if this is the last one. */
  readonly #next: string;
  readonly #etag: string;
  /** By base URL. Only the first few are kept, because clients can make up any number of hosts. */
  readonly #representations: Map<string, Representation> = new Map();

  constructor(query: PetQuery, page: PetPage) {
    const { pets, next } = page;
    this.page = page;
    this.#json = `[${pets.join(",")}]`;
    this.#next = next === undefined ? "" : queryString({ ...query, cursor: next });
    // Includes the link to the next page, which can change although the animals are the same.
    this.#etag = etagOf([queryString(query), this.#next, this.#json].join("\n"));
  }

  /**
   * A shared response: the page with URLs that begin with `base`, or 304 if `known`, the value of If-None-Match, has
   * the current entity tag.
   */
  respondTo(known: string | undefined, base: string): Response {
    return (this.#representations.get(base) ?? this.#represent(base)).respondTo(known);
  }

  #represent(base: string): Representation {
    const headers: Record<string, string> = this.#next === ""
      ? {}
      : { link: `<${base}${PETS_PATH}${this.#next}>; rel="next"` };
    const made = new Representation(this.#json, { headers, etag: this.#etag });
    if (this.#representations.size < MAX_BASES) this.#representations.set(base, made);
    return made;
  }
}

/** The canonical query string of a page. */
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
