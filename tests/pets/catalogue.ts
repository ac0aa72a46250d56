import type { PetStatus } from "../../src/pets/pet.ts";
import type { Harness } from "../harness.ts";

/** An animal as JSON.parse reads it. */
export interface ListedPet {
  readonly id: number;
  readonly name: string;
  readonly categoryId: number;
  readonly status: PetStatus;
}

/** Headers that announce a JSON body. */
export const JSON_TYPE: Readonly<Record<string, string>> = { "content-type": "application/json" };

/** Adds animals, one after the other. */
export async function addPets(service: Harness, key: string, statuses: readonly PetStatus[]): Promise<void> {
  for (const status of statuses) {
    await service.fetch("POST /v1/pets", { key, json: { name: "Rex", categoryId: 7, status } });
  }
}

/** As many animals that are available. */
export function available(count: number): PetStatus[] {
  return new Array<PetStatus>(count).fill("available");
}

/** The animals in a response. */
export async function petsOf(response: Response): Promise<ListedPet[]> {
  return await response.json();
}

/** Ids of the animals that a request lists. */
export async function listIds(service: Harness, key: string, query = ""): Promise<number[]> {
  const pets = await petsOf(await service.fetch(`GET /v1/pets${query}`, { key }));
  return pets.map(({ id }) => id);
}
