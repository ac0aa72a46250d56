import { BoundedMap } from "../kv/bounded_map.ts";
import { type Attachment, Collection, type Head, headOf, type HeadRow } from "../kv/collection.ts";
import { ConfirmedRow } from "../kv/confirmed_row.ts";
import type { Entry, Store } from "../kv/store.ts";
import type { NewPet, Pet, PetStatus } from "./pet.ts";

/** Which animals to list. */
export interface PetQuery {
  /** Most animals to return. */
  readonly limit: number;
  /** Undefined for any status. */
  readonly status: PetStatus | undefined;
  /** Only animals with a greater id. */
  readonly after: number;
}

/** Some of the animals, ascending by id. */
export interface PetPage {
  readonly pets: readonly Pet[];
  /** Whether more animals follow. */
  readonly more: boolean;
}

const CATALOGUE = ["catalogue"];
const MAX_CACHED_PETS = 10_000;

/** The catalogue. Every method throws StoreUnavailable when KV fails. */
export class PetStore {
  /** The row that every change of the catalogue changes. */
  readonly catalogue: ConfirmedRow<HeadRow>;
  readonly #store: Store;
  readonly #pets: Collection<NewPet, Pet>;
  /** Animals never change, so what was found once stays true. */
  readonly #found: BoundedMap<number, Entry<Pet>> = new BoundedMap(MAX_CACHED_PETS);

  constructor(store: Store) {
    this.#store = store;
    this.catalogue = new ConfirmedRow(store, CATALOGUE);
    this.#pets = new Collection(store, {
      head: CATALOGUE,
      appendsPerCommit: 100,
      item: (newPet, id) => ({ id, ...newPet }),
      rows: (pet) => [
        [["pets", pet.id], pet],
        [["pets_by_status", pet.status, pet.id], pet],
      ],
    });
  }

  /** Adds an animal; undefined when the attachment's guard had changed. */
  create(newPet: NewPet, attachment?: Attachment<Pet>): Promise<Pet | undefined> {
    return this.#pets.append(newPet, attachment);
  }

  /** The animal's row, if there is an animal with this id. */
  async find(id: number): Promise<Entry<Pet> | null> {
    const cached = this.#found.get(id);
    if (cached) return cached;
    const entry = await this.#store.get<Pet>(["pets", id]);
    if (entry) this.#found.set(id, entry);
    return entry;
  }

  /** The state of the catalogue at some time after the moment (of its row). */
  async head(after: number): Promise<Head> {
    return headOf(await this.catalogue.get(after));
  }

  /** A page of the catalogue as it was at `head`: animals never change, so later ones are just left out. */
  async list({ limit, status, after }: PetQuery, head: Head): Promise<PetPage> {
    if (after >= head.lastId) return { pets: [], more: false };
    const prefix = status === undefined ? ["pets"] : ["pets_by_status", status];
    const selector = { start: [...prefix, after + 1], end: [...prefix, head.lastId + 1] };
    const entries = await this.#store.list<Pet>(selector, limit + 1);
    return { pets: entries.slice(0, limit).map(({ value }) => value), more: entries.length > limit };
  }
}
