// A harness with an account that adds animals.
import { type Pet, PETS } from "../../src/pets/pets.ts";
import type { Catalogue } from "../../src/resource/mod.ts";
import type { HarnessRequest } from "../support/client.ts";
import { Harness, type HarnessOptions } from "../support/harness.ts";

/** One of the availability statuses. */
export type PetStatus = Pet["status"];

/** An animal as JSON.parse reads it. */
export interface ListedPet {
  readonly id: number;
  readonly name: string;
  readonly categoryId: number;
  readonly status: PetStatus;
}

/** An animal to add. */
export const REX = { name: "Rex", categoryId: 7 } as const;

/** A catalogue of animals only. */
export const OF_PETS: Catalogue = { title: "Animal Store", resources: [PETS] };

/** The whole service with animals, and an account with very high limits. */
export class Shop extends Harness {
  key: string = "";

  /** Creates one on a new KV in memory. */
  static override async open(options?: HarnessOptions): Promise<Shop> {
    return await Shop.on(await Deno.openKv(":memory:"), options);
  }

  /** Creates one on this KV, which it closes. */
  static async on(kv: Deno.Kv, options?: HarnessOptions): Promise<Shop> {
    const shop = new Shop(kv, { catalogue: OF_PETS, ...options });
    const { apiKey } = await shop.createAccount({ minute: 1_000_000, day: 1_000_000 });
    return Object.assign(shop, { key: apiKey });
  }

  /** Another process on the same KV, with the same key. */
  override beside(options?: HarnessOptions): Shop {
    return Object.assign(new Shop(this.kv, { catalogue: OF_PETS, ...options }), {
      key: this.key,
      isFirst: false,
    });
  }

  /** Sends a request with the account's key, such as `call("GET /v1/pets")`. */
  call(target: string, request: HarnessRequest = {}): Promise<Response> {
    return this.fetch(target, { key: this.key, ...request });
  }

  /** Adds an animal of each status, one after the other. Resolves to their IDs. */
  async add(...statuses: PetStatus[]): Promise<number[]> {
    const ids: number[] = [];
    for (const status of statuses) {
      const [pet] = await petsIn(await this.call("POST /v1/pets", { json: { ...REX, status } }));
      ids.push(pet?.id ?? NaN);
    }
    return ids;
  }

  /** Changes an animal. */
  patch(id: number, json: object, headers: Record<string, string> = {}): Promise<Response> {
    return this.call(`PATCH /v1/pets/${id}`, { json, headers });
  }

  /** IDs of the animals that a query lists. */
  async ids(query = ""): Promise<number[]> {
    return (await petsIn(await this.call(`GET /v1/pets${query}`))).map(({ id }) => id);
  }
}

/** An array of `count` copies of a status. */
export function all(count: number, status: PetStatus): PetStatus[] {
  return new Array<PetStatus>(count).fill(status);
}

/** The animals in a response. */
export async function petsIn(response: Response): Promise<ListedPet[]> {
  return [await response.json()].flat();
}
