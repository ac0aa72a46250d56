// A harness with an account that adds things.
import type { HarnessRequest } from "./client.ts";
import { Harness, type HarnessOptions } from "./harness.ts";
import { HAMMER, type Thing } from "./things.ts";

/** The whole service and an account with very high limits. */
export class Workshop extends Harness {
  key: string = "";

  /** Creates one on a new KV in memory. */
  static override async open(options?: HarnessOptions): Promise<Workshop> {
    const workshop = new Workshop(await Deno.openKv(":memory:"), options);
    const { apiKey } = await workshop.createAccount({ minute: 1_000_000, day: 1_000_000 });
    return Object.assign(workshop, { key: apiKey });
  }

  /** Another process on the same KV, with the same key. */
  override beside(options?: HarnessOptions): Workshop {
    return Object.assign(new Workshop(this.kv, options), { key: this.key, isFirst: false });
  }

  /** Sends a request with the account's key, such as `call("GET /v1/things")`. */
  call(target: string, request: HarnessRequest = {}): Promise<Response> {
    return this.fetch(target, { key: this.key, ...request });
  }

  /** Adds things with these fields, one after the other. Resolves to their ids. */
  async add(...things: Partial<Thing>[]): Promise<number[]> {
    const ids: number[] = [];
    for (const thing of things) {
      const response = await this.call("POST /v1/things", { json: { ...HAMMER, ...thing } });
      ids.push((await response.json()).id);
    }
    return ids;
  }

  /** Changes a thing. */
  patch(id: number, json: object, headers: Record<string, string> = {}): Promise<Response> {
    return this.call(`PATCH /v1/things/${id}`, { json, headers });
  }

  /** Ids of the things that a query lists. */
  async ids(query = ""): Promise<number[]> {
    const things: readonly Thing[] = await (await this.call(`GET /v1/things${query}`)).json();
    return things.map(({ id }) => id);
  }
}

/** The things in a response. */
export async function thingsIn(response: Response): Promise<Thing[]> {
  return [await response.json()].flat();
}
