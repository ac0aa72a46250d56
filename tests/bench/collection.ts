// The collection under load: the first of the shipped catalogue, whichever that is.
import { withDefaults } from "../../src/resource/resource.ts";
import { SHIPPED } from "../process/shipped.ts";

/** A collection as rivals serve it. */
export interface Collection {
  readonly path: string;
  /** An item to add, with every field that rivals store. */
  readonly item: Readonly<Record<string, unknown>>;
  /** The field that has an index. */
  readonly filter: string | undefined;
}

const { path, fields, filters, examples: { item, change } } = SHIPPED;
const [filter] = filters;

/** The collection. */
export const COLLECTION: Collection = { path, item: withDefaults(fields, item), filter };

/** An item that few have the like of: it has another value of a filter. Undefined if the example of a change has none. */
export const RARE: { readonly query: string; readonly item: Collection["item"] } | undefined = rare();

function rare(): typeof RARE {
  const [name, value] =
    Object.entries(change).find(([name, value]) =>
      filters.some((known) => known === name) && value !== COLLECTION.item[name]
    ) ?? [];
  if (name === undefined) return undefined;
  return { query: `${name}=${value}`, item: { ...COLLECTION.item, [name]: value } };
}
