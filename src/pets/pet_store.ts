import { BoundedMap } from "../kv/bounded_map.ts";
import { type Attachment, Collection, type Head, headOf, type HeadRow } from "../kv/collection.ts";
import { ConfirmedRow } from "../kv/confirmed_row.ts";
import type { Store } from "../kv/store.ts";
import type { NewPet, Pet, PetStatus } from "./pet.ts";
import { jsonOf, type PetRow, toRow } from "./pet_row.ts";

/** Which animals to list. */
export interface PetQuery {
  /** Most animals to return. */
  readonly limit: number;
  /** Undefined for any status. */
  readonly status: PetStatus | undefined;
  /** Only animals with a greater id. */
  readonly after: number;
}

/** An animal as it is stored. */
export interface StoredPet {
  readonly json: string;
  /** Of its row, which never changes. */
  readonly versionstamp: string;
}

/** Some of the animals, ascending by id. */
export interface PetPage {
  /** Each as JSON. */
  readonly pets: readonly string[];
  /** Id of the last one, if more animals follow. */
  readonly next: number | undefined;
}

const CATALOGUE = ["catalogue"];
const MAX_CACHED_PETS = 10_000;

/** The catalogue. Every method throws StoreUnavailable when KV fails. */
export class PetStore {
  /** The row that every change of the catalogue changes. */
  readonly catalogue: ConfirmedRow<HeadRow>;
  readonly #store: Store;
  readonly #pets: Collection<NewPet, Pet>;
  /** The head that was asked for last. */
  #head: Head = headOf(null);
  /** Animals never change, so what was found once stays true. */
  readonly #found: BoundedMap<number, StoredPet> = new BoundedMap(MAX_CACHED_PETS);

  constructor(store: Store) {
    this.#store = store;
    this.catalogue = new ConfirmedRow(store, CATALOGUE);
    this.#pets = new Collection(store, {
      head: CATALOGUE,
      appendsPerCommit: 100,
      item: (newPet, id) => ({ id, ...newPet }),
      rows: (pet) => {
        const row = toRow(pet);
        return [[["pets", pet.id], row], [["pets_by_status", pet.status, pet.id], row]];
      },
    });
  }

  /** Adds an animal; undefined when the attachment's guard had changed. */
  create(newPet: NewPet, attachment?: Attachment<Pet>): Promise<Pet | undefined> {
    return this.#pets.append(newPet, attachment);
  }

  /** The animal, if there is one with this id. */
  async find(id: number): Promise<StoredPet | undefined> {
    const cached = this.#found.get(id);
    if (cached) return cached;
    const entry = await this.#store.get<PetRow>(["pets", id]);
    if (entry === null) return undefined;
    const pet = { json: jsonOf(entry.value), versionstamp: entry.versionstamp };
    this.#found.set(id, pet);
    return pet;
  }

  /** The state of the catalogue at some time after the moment (of its row). */
  async head(after: number): Promise<Head> {
    const entry = await this.catalogue.get(after);
    if ((entry?.versionstamp ?? null) !== this.#head.versionstamp) this.#head = headOf(entry);
    return this.#head;
  }

  /** A page of the catalogue as it was at `head`: animals never change, so later ones are just left out. */
  async list({ limit, status, after }: PetQuery, head: Head): Promise<PetPage> {
    if (after >= head.lastId) return { pets: [], next: undefined };
    const prefix = status === undefined ? ["pets"] : ["pets_by_status", status];
    const selector = { start: [...prefix, after + 1], end: [...prefix, head.lastId + 1] };
    const entries = await this.#store.list<PetRow>(selector, limit + 1);
    return {
      pets: entries.slice(0, limit).map(({ value }) => jsonOf(value)),
      next: entries.length > limit ? Number(entries.at(-2)?.key.at(-1)) : undefined,
    };
  }
}
