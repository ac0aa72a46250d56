// The feed of changes, switched on and read.
import { assertEquals } from "@std/assert";
import { OPERATOR_TOKEN } from "./desk.ts";
import type { Harness } from "./harness.ts";

/** A page of the feed. */
export interface FeedPage {
  readonly changes: readonly {
    readonly collection: string;
    readonly id: number;
    readonly change: string;
    readonly at: string;
    readonly accountId?: string;
  }[];
  readonly cursor: string;
  readonly more: boolean;
}

/** Switches the feed on or, with 0 days, off. */
export async function switchFeed(service: Harness, days: number = 7): Promise<void> {
  const response = await service.fetch("PUT /operator/v1/changes", { key: OPERATOR_TOKEN, json: { days } });
  assertEquals((await response.json()).days, days);
}

/** Somebody who follows the feed: an account or, by default, the operator. */
export class Follower {
  cursor: string = "";
  /** Whether the last page said that there are more. */
  more: boolean = false;
  readonly #service: Harness;
  readonly #target: string;
  readonly #key: string;

  constructor(service: Harness, key: string = OPERATOR_TOKEN) {
    this.#service = service;
    this.#target = `GET ${key === OPERATOR_TOKEN ? "/operator" : ""}/v1/changes`;
    this.#key = key;
  }

  /** One that has the cursor of now. */
  static async start(service: Harness, key?: string): Promise<Follower> {
    const follower = new Follower(service, key);
    const { changes, cursor, more } = await (await follower.ask("")).json();
    assertEquals([changes, more], [[], false]);
    return Object.assign(follower, { cursor });
  }

  /** Sends a request with this query. */
  ask(query: string, service: Harness = this.#service): Promise<Response> {
    return service.fetch(this.#target + query, { key: this.#key });
  }

  /** Reads the next page. Resolves to its changes, such as `created things 1`. */
  async next(limit?: number, service?: Harness): Promise<string[]> {
    const response = await this.ask(`?after=${this.cursor}&limit=${limit ?? 100}`, service);
    assertEquals(response.status, 200, JSON.stringify(await response.clone().json()));
    const { changes, cursor, more }: FeedPage = await response.json();
    Object.assign(this, { cursor, more });
    return changes.map(({ change, collection, id }) => `${change} ${collection} ${id}`);
  }

  /** Reads pages until there are no more now. */
  async all(limit?: number, service?: Harness): Promise<string[]> {
    const changes: string[] = [];
    do changes.push(...await this.next(limit, service)); while (this.more);
    return changes;
  }
}
