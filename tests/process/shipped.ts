// The shipped catalogue, whichever that is, for tests of the service as a process.
import { KeyForm } from "../../src/accounts/api_key.ts";
import { slugOf } from "../../src/app/service.ts";
import { CATALOGUE } from "../../src/catalogue/catalogue.ts";
import type { Resource } from "../../src/resource/mod.ts";
import { withDefaults } from "../../src/resource/resource.ts";
import { stringifyJson } from "../../src/web/json.ts";
import { isValid } from "../../src/web/schema.ts";
import { call, type Callable, nextTarget, outcome, type Reply } from "../support/client.ts";
import { THINGS } from "../support/things.ts";

const ADDABLE = CATALOGUE.resources.find(({ writableBy, extend }) =>
  writableBy === "owner" && extend.length === 0
);
/** The first collection to which an account can add an item that needs no other; things if there is none. */
export const SHIPPED: Resource = ADDABLE ?? THINGS;
/** Arguments of `deno run` with which a process serves that collection. */
export const SERVING: readonly string[] = ADDABLE ? [] : ["--import-map", "tests/process/import_map.json"];
/** What the service is called. */
export const TITLE: string = CATALOGUE.title;
/** How the names of its metrics begin. */
export const METRIC: string = slugOf(TITLE, "_");
/** Whether these are animals, which some tests are about. */
export const HAS_ANIMALS: boolean = CATALOGUE.resources.some(({ name }) => name === "pets");
/** The form of its keys. */
export const KEYS: KeyForm = new KeyForm(CATALOGUE);
/** The path of the collection. */
export const PATH: string = SHIPPED.path;
/** A request that lists its items, and counts toward the limits. */
export const LIST: string = `GET ${PATH}`;
/** The ids of its operations. */
export const IDS = {
  list: `list${SHIPPED.items}`,
  create: `create${SHIPPED.item}`,
  get: `get${SHIPPED.item}`,
  update: `update${SHIPPED.item}`,
  delete: `delete${SHIPPED.item}`,
} as const;
/** The JSON of an item to add, in ASCII. */
export const ITEM: string = ascii(stringifyJson(SHIPPED.examples.item));

/** The JSON of the item that was added with this id. */
export function itemWith(id: number): string {
  return stringifyJson({ id, ...withDefaults(SHIPPED.fields, SHIPPED.examples.item) });
}

/** Adds an item. */
export function addItem(
  service: Callable,
  key: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Reply> {
  const init = { headers: { "content-type": "application/json", ...headers }, body: ITEM };
  return call(service, key, `POST ${PATH}`, init);
}

/** The ids of all items, from every page. */
export async function listIds(service: Callable, key: string): Promise<number[]> {
  const ids: number[] = [];
  for (let target: string | undefined = `${LIST}?limit=100`; target !== undefined;) {
    const reply: Reply = await call(service, key, target);
    if (!Array.isArray(reply.json)) throw new TypeError(`Not a list: ${outcome(reply)}`);
    ids.push(...reply.json.map(idIn));
    target = nextTarget(reply);
  }
  return ids;
}

/** The id of the item in a body. */
export function idIn(json: unknown): number {
  if (typeof json === "object" && json !== null && "id" in json && typeof json.id === "number") {
    return json.id;
  }
  throw new TypeError("Not an item");
}

/**
 * A field that can have this text, by which a test can tell items apart.
 *
 * @throws {TypeError} if items have none.
 */
export function textField(text: string): string {
  const [found] = Object.entries(SHIPPED.fields).find(([, schema]) => isValid(schema, text)) ?? [];
  if (found === undefined) throw new TypeError(`No field of ${SHIPPED.nouns.many} can have the text ${text}`);
  return found;
}

function ascii(json: string): string {
  return json.replaceAll(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
