// The feed of changes, switched on and read.
import { assertEquals } from "@std/assert";
import { Transactions } from "../../src/engine/mod.ts";
import { appendGap, FEED, newTag } from "../../src/resource/mod.ts";
import type { HarnessRequest } from "./client.ts";
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

/** Switches the feed on, or with 0 days, off. */
export async function switchFeed({ store, app: _, ...service }: Harness, days = 7): Promise<void> {
  const transactions = new Transactions(store, () => service.now);
  const tag = newTag();
  await transactions.run({
    decide(rows, write) {
      store.schema.switch(FEED, days, write);
      if (days > 0 && !rows.features[FEED]) appendGap(rows, write, tag);
      return null;
    },
  });
}
