import { requireValid } from "./open.ts";
import type { RebuildOptions } from "./rebuild.ts";
import { type Resource, ResourceError } from "./resource.ts";
import { decodeItem, UnreadableItem } from "./stored_item.ts";

/** Options of {@linkcode check}. */
export interface CheckOptions extends Pick<RebuildOptions, "catalogue" | "store" | "notice"> {
  /** Called with a line for each item that the declaration cannot read. */
  readonly out: (line: string) => Promise<void>;
}

/**
 * Reads all items of a collection, and says which of them its declaration cannot read. The service may be running.
 *
 * @throws {ResourceError} if there are any, or if the declaration is invalid.
 * @throws {StoreUnavailable}
 */
export async function check(
  resource: Resource,
  { catalogue, store, notice, out }: CheckOptions,
): Promise<void> {
  requireValid(catalogue);
  const { items } = resource.rows;
  let [done, unreadable] = [0, 0];
  for await (const page of store.pages([...items, 0], [...items, Infinity])) {
    for (const entry of page) {
      try {
        decodeItem(resource, entry);
      } catch (error) {
        if (!(error instanceof UnreadableItem)) throw error;
        unreadable++;
        await out(error.advice);
      }
    }
    done += page.length;
  }
  const [all, name] = [`${done} items`, resource.name];
  if (unreadable > 0) throw new ResourceError(`This release cannot read ${unreadable} of ${all} of ${name}.`);
  notice(`This release can read all ${all} of ${name}.`);
}
