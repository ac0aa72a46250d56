import type { JsonValue } from "../kv/json_value.ts";
import { type Pet, toJson } from "./pet.ts";

/**
 * Value of an animal's row: the JSON that it is answered with, as it is. An animal never changes, so this is
 * written once and copied from then on.
 */
export type PetRow = JsonValue<Pet>;

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder();

/** The row of an animal. */
export function toRow(pet: Pet): Uint8Array<ArrayBuffer> {
  return ENCODER.encode(toJson(pet));
}

/** The animal of a row, as JSON text. */
export function jsonOf(row: PetRow): string {
  return row instanceof Uint8Array ? DECODER.decode(row) : toJson(row);
}
