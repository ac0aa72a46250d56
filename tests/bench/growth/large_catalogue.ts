import { encodeJson } from "../../../src/kv/json_value.ts";
import type { Pet } from "../../../src/pets/pet.ts";
import { toRow } from "../../../src/pets/pet_row.ts";
import { note } from "../terminal.ts";

// Whatever the size, so that the page of those that are sold is the same work.
const SOLD_COUNT = 20;

const ANIMALS_PER_COMMIT = 250;
const COMMITS_AT_ONCE = 4;
const ANIMALS_PER_NOTE = 100_000;

/** Writes a catalogue into a KV file, in the service's own layout but past the service. */
export async function seedCatalogue(path: string, size: number, signal: AbortSignal): Promise<void> {
  using kv = await Deno.openKv(path);
  const stride = ANIMALS_PER_COMMIT * COMMITS_AT_ONCE;
  for (let first = 1; first <= size; first += stride) {
    signal.throwIfAborted();
    const starts = Array.from({ length: COMMITS_AT_ONCE }, (_, turn) => first + turn * ANIMALS_PER_COMMIT);
    await Promise.all(starts.map((start) => seedSome(kv, start, size)));
    const seeded = Math.min(first + stride - 1, size);
    if (seeded % ANIMALS_PER_NOTE === 0) note(`seeded ${seeded} of ${size} animals`);
  }
  await kv.set(["catalogue"], encodeJson({ lastId: size }));
}

async function seedSome(kv: Deno.Kv, start: number, size: number): Promise<void> {
  const end = Math.min(start + ANIMALS_PER_COMMIT, size + 1);
  const operation = kv.atomic();
  for (let id = start; id < end; id++) {
    const pet = animal(id, size);
    const row = toRow(pet);
    operation.set(["pets", id], row).set(["pets_by_status", pet.status, id], row);
  }
  await operation.commit();
}

function animal(id: number, size: number): Pet {
  const sold = id % Math.floor(size / SOLD_COUNT) === 0;
  const status = sold ? "sold" : id % 4 === 0 ? "pending" : "available";
  return { id, name: `Animal ${id}`, categoryId: BigInt(id % 10 + 1), status };
}
