import { type Pet, toJson } from "./pet.ts";

/**
 * Value of an animal's row: the JSON that it is answered with, in UTF-8. It never changes, so it is written
 * once and copied from then on; KV stores bytes as they are. Before, rows held objects.
 */
export type PetRow = Uint8Array<ArrayBuffer> | Pet;

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder();

/** The row of an animal. */
export function toRow(pet: Pet): PetRow {
  return ENCODER.encode(toJson(pet));
}

/** The animal of a row, as JSON text. */
export function jsonOf(row: PetRow): string {
  return row instanceof Uint8Array ? DECODER.decode(row) : toJson(row);
}
