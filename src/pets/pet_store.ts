import { batched, tell } from "../store/batch.ts";
import { type Along, both, NO_CHANGE, type Row } from "../batching/change.ts";
import { GroupCommit } from "../batching/group_commit.ts";
import { Sequence } from "../batching/sequence.ts";
import type { VersionRow } from "../store/versions.ts";
import { parseJson, stringifyJson } from "../http/json.ts";
import type { Checks } from "../kv/commit.ts";
import { AGAIN, retried } from "../kv/retried.ts";
import { CorruptRow, decodeText, encodeText, type Entry } from "../kv/row.ts";
import type { Store } from "../kv/store.ts";
import { type NewPet, PET, type Pet, type PetStatus } from "./pet.ts";

/** The row whose version changes whenever an animal does. */
export const CATALOGUE_VERSION: Deno.KvKey = ["catalogue"];

/** Which animals to list. */
export interface PetQuery {
  /** Most animals to return. */
  readonly limit: number;
  /** Left out for any status. */
  readonly status?: PetStatus;
  /** Only animals with a greater id; left out for all. */
  readonly cursor?: number;
}

/** Some of the animals, ascending by id, each as JSON. */
export interface PetPage {
  readonly pets: readonly string[];
  /** Id of the last one, if more animals follow. */
  readonly next: number | undefined;
}

/** An animal and the account that added it. */
export interface OwnedPet {
  readonly pet: Pet;
  readonly ownerId: string;
}

/** The catalogue. Every method throws StoreUnavailable when KV fails. */
export class PetStore {
  readonly #store: Store;
  readonly #ids: Sequence;
  readonly #group: GroupCommit;
  /** The animal with this id as JSON; null where there is none. Those who ask at the same time share a read. */
  readonly find: (id: number) => Promise<string | null>;

  /** What it does to the catalogue shows in the version that is watched. */
  constructor(store: Store, catalogue: VersionRow) {
    this.#store = store;
    this.#ids = new Sequence(store, ["ids"]);
    this.#group = new GroupCommit(store, catalogue);
    this.find = batched(async (round) => {
      const entries = await store.getMany(round.map(({ item }) => petKey(item)));
      round.forEach((call, index) => {
        const entry = entries[index];
        tell([call], () => entry ? jsonIn(entry) : null);
      });
    });
  }

  /** Adds an animal of an account, if another change can be made along with it; else null. */
  async create(newPet: NewPet, ownerId: string, along: Along<Pet> = () => NO_CHANGE): Promise<Pet | null> {
    const id = await this.#ids.draw((id, draw) => {
      const pet = { id, ...newPet };
      const added = { ...NO_CHANGE, sets: rowsOf({ pet, ownerId }) };
      return this.#group.commit(both(both(draw, added), along(pet)));
    });
    return id === null ? null : { id, ...newPet };
  }

  /**
   * Changes an animal to what `decide` makes of it, or removes it where that is null. Resolves to the animal
   * as it is then, or null; `decide` and `checks` are asked again when somebody else was faster. The commit makes
   * these checks, too.
   */
  change(
    id: number,
    decide: (owned: OwnedPet | null) => Pet | null,
    checks: Checks = () => [],
  ): Promise<Pet | null> {
    return retried(async () => {
      const entry = await this.#store.get(petKey(id));
      const owned = entry && ownedPetIn(entry);
      const after = decide(owned);
      if (entry === null || owned === null || after === owned.pet) return after;
      const isMoved = after?.status !== owned.pet.status;
      const { ok } = await this.#group.commit({
        checks: [...checks(), entry],
        sets: after ? rowsOf({ pet: after, ownerId: owned.ownerId }) : [],
        deletes: [...(after ? [] : [entry.key]), ...(isMoved ? [statusKey(owned.pet)] : [])],
      });
      return ok ? after : AGAIN;
    });
  }

  /** Every animal with its owner, ascending by id. */
  async *listOwned(): AsyncGenerator<OwnedPet> {
    for await (const page of this.#store.pages(petKey(0), petKey(Infinity))) yield* page.map(ownedPetIn);
  }

  /** A page of the catalogue. */
  async list({ limit, status, cursor = 0 }: PetQuery): Promise<PetPage> {
    const prefix = status === undefined ? ["pets"] : ["pets_by_status", status];
    const range = { start: [...prefix, cursor + 1], end: [...prefix, Infinity] };
    const entries = await this.#store.list(range, limit + 1);
    return {
      pets: entries.slice(0, limit).map(jsonIn),
      next: entries.length > limit ? Number(entries.at(-2)?.key.at(-1)) : undefined,
    };
  }
}

function petKey(id: number): Deno.KvKey {
  return ["pets", id];
}

function statusKey({ status, id }: Pet): Deno.KvKey {
  return ["pets_by_status", status, id];
}

/** Both rows of an animal, by id and by status, hold the JSON it is answered with, and on a second line its owner. */
function rowsOf({ pet, ownerId }: OwnedPet): Row[] {
  const value = encodeText(`${stringifyJson(pet)}\n${ownerId}`);
  return [[petKey(pet.id), value], [statusKey(pet), value]];
}

function jsonIn(entry: Entry): string {
  const text = decodeText(entry);
  return text.slice(0, text.indexOf("\n"));
}

function ownedPetIn(entry: Entry): OwnedPet {
  const [json = "", ownerId = ""] = decodeText(entry).split("\n");
  return { pet: petIn(json), ownerId };
}

/** The animal that was stored, with members that only a later version knows. Today's bounds do not matter. */
function petIn(json: string): Pet {
  try {
    const pet = parseJson(json);
    if (PET.accepts(pet)) return pet;
  } catch {
    // It is no JSON.
  }
  throw new CorruptRow("A row of pets holds no animal");
}
