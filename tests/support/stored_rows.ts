// Checks that stored rows are consistent, and forges rows.
import { assertEquals } from "@std/assert";
import type { OwnKeys } from "../../src/accounts/added_keys.ts";
import { nameOf } from "../../src/engine/versions.ts";
import { type LoggedChange, OPERATORS_LOG, otherLogOf, type Resource } from "../../src/resource/mod.ts";
import { parseStoredJson, resolved, text } from "../../src/web/schema.ts";
import { THINGS } from "./things.ts";

const DECODER = new TextDecoder("utf-8", { fatal: true });

/** The text of each row by its key, in JSON. */
type Rows = ReadonlyMap<string, string>;

/** Asserts that related rows of a KV exist together and agree. */
export async function assertConsistent(
  kv: Deno.Kv,
  resources: readonly Resource[] = [THINGS],
): Promise<void> {
  assertEquals(await findFaults(kv, resources), []);
}

/** Describes the inconsistent rows of a KV. */
export async function findFaults(kv: Deno.Kv, resources: readonly Resource[] = [THINGS]): Promise<string[]> {
  const keys: Deno.KvKey[] = [];
  const rows = new Map<string, string>();
  for await (const { key, value } of kv.list({ prefix: [] })) {
    const count = value instanceof Deno.KvU64 ? `${value.value}` : "not bytes";
    keys.push(key);
    rows.set(nameOf(key), value instanceof Uint8Array ? DECODER.decode(value) : count);
  }
  return keys.flatMap((key) => [
    ...faultsOf(key, rows),
    ...resources.flatMap((resource) => faultsOfItem(key, rows, resource)),
  ]);
}

/** What is wrong with a row of an item or of its index, if it is one. */
function faultsOfItem(key: Deno.KvKey, rows: Rows, resource: Resource): string[] {
  const { name, rows: { items, ids } } = resource;
  const { generation } = JSON.parse(rows.get(nameOf(["resources", name])) ?? "{}");
  const text = rows.get(nameOf(key)) ?? "";
  const [json = "", ownerId = ""] = text.split("\n");
  const indexes = indexesOf(resource, generation);
  const indexKeys = () => keysIn(indexes, resource, parseStoredJson(json), ownerId);
  if (startsWith(key, items)) {
    const next = Number(JSON.parse(rows.get(nameOf(ids)) ?? '{"next":0}').next);
    return [
      ...indexKeys().flatMap((other) => needs(key, other, rows, text)),
      ...(ownerId.startsWith("acct_") ? needs(key, ["accounts", ownerId], rows) : []),
      ...(Number(key.at(-1)) === JSON.parse(json).id ? [] : [`${nameOf(key)} has another id`]),
      ...(Number(key.at(-1)) < next ? [] : [`${nameOf(key)} has an id from ${next} on`]),
    ];
  }
  if (!indexes.some(({ start }) => startsWith(key, start))) return [];
  return [
    ...needs(key, [...items, key.at(-1) ?? 0], rows, text),
    ...(indexKeys().some((own) => nameOf(own) === nameOf(key)) ? [] : [`${nameOf(key)} lists other values`]),
  ];
}

/** An index: whether its keys begin with the owner, its filters, and its sort. */
interface Index {
  readonly start: Deno.KvKey;
  readonly isByOwner: boolean;
  readonly filters: readonly string[];
  readonly sort: string | undefined;
}

/** The indexes of a collection. */
function indexesOf(
  { name, rows: { index: first }, filters, sorts, readableBy, fields }: Resource,
  generation: string | undefined,
): Index[] {
  const isOwners = readableBy === "owner";
  const isReference = filters.some((filter) =>
    [resolved(fields[filter] ?? text()).type].flat().includes("integer")
  );
  const kinds = isOwners ? [true, ...sorts.length > 0 || isReference ? [false] : []] : [false];
  return kinds.flatMap((isByOwner) =>
    [undefined, ...sorts].flatMap((sort) =>
      [...isByOwner || sort ? [[]] : [], ...combinationsOf(filters.toSorted())].map((some) => {
        const labels = [
          ...some,
          ...sort ? [`sort ${sort}`] : [],
          ...isOwners && !isByOwner ? ["all accounts"] : [],
        ];
        const start = generation === undefined
          ? first(labels)
          : ["generations", name, generation, labels.join()];
        return { start, isByOwner, filters: some, sort };
      })
    )
  );
}

/** The keys of an item in these indexes. */
function keysIn(
  indexes: readonly Index[],
  { fields }: Resource,
  item: unknown,
  ownerId: string,
): Deno.KvKey[] {
  const values: Record<string, unknown> = Object(item);
  const partOf = (name: string) => {
    const { [name]: value } = values;
    return typeof value === "number" ? BigInt(value) : value;
  };
  return indexes.filter(({ filters }) => filters.every((name) => (values[name] ?? null) !== null)).flatMap(
    ({ start, isByOwner, filters, sort }) => {
      const prefix = [...start, ...isByOwner ? [ownerId] : [], ...filters.map(partOf)];
      const id = values["id"];
      if (sort === undefined) return [[...prefix, id]];
      const value = partOf(sort) ?? undefined;
      const isTime = resolved(fields[sort] ?? text()).format === "date-time";
      if (value === undefined) return [[...prefix, 0, id], [...prefix, 2, id]];
      const sorted = isTime
        ? Temporal.Instant.from(String(value)).epochNanoseconds
        : typeof value === "string"
        ? [...value].slice(0, 100).join("")
        : value;
      return [[...prefix, 1, sorted, id]];
    },
  ).map((key) => key.map((part) => isPart(part) ? part : String(part)));
}

function isPart(part: unknown): part is Deno.KvKeyPart {
  return ["string", "number", "bigint", "boolean"].includes(typeof part);
}

/** Every non-empty combination of these names. */
function combinationsOf(names: readonly string[]): string[][] {
  return names.reduce<string[][]>(
    (some, name) => [...some, [name], ...some.map((other) => [...other, name])],
    [],
  );
}

function startsWith(key: Deno.KvKey, prefix: Deno.KvKey): boolean {
  return key.length > prefix.length && prefix.every((part, index) => key[index] === part);
}

/** A fault unless another row exists and, if `text` is given, has it. */
function needs(key: Deno.KvKey, other: Deno.KvKey, rows: Rows, text?: string): string[] {
  const found = rows.get(nameOf(other));
  const holds = text === undefined ? found !== undefined : found === text;
  return holds ? [] : [`${nameOf(key)} has no matching ${nameOf(other)}`];
}

/** What is wrong with a row that is not of an item. */
function faultsOf(key: Deno.KvKey, rows: Rows): string[] {
  const text = rows.get(nameOf(key)) ?? "";
  const [kind, ...rest] = key;
  switch (kind) {
    case "accounts":
      return [
        ...[JSON.parse(text).reference ?? []].flat().flatMap((reference) =>
          needs(key, ["account_references", reference], rows, JSON.stringify(rest[0]))
        ),
        ...[JSON.parse(text).keyHash, ...hashesOfAdded(JSON.parse(text))].flatMap((hash) =>
          needs(key, ["api_keys", hash], rows, JSON.stringify(rest[0]))
        ),
        ...needs(key, ["usage", String(rest[0])], rows),
      ];
    case "account_references": {
      const { reference = "" } = JSON.parse(rows.get(nameOf(["accounts", JSON.parse(text)])) ?? "{}");
      return reference === rest[0] ? [] : [`${nameOf(key)} is of an account with the reference ${reference}`];
    }
    case "api_keys": {
      const account = ["accounts", JSON.parse(text)];
      const { keyHash, previousKey, addedKeys } = JSON.parse(rows.get(nameOf(account)) ?? "{}");
      const isKnown = [keyHash, previousKey?.hash, ...hashesOfAdded({ addedKeys })].includes(rest[0]);
      return isKnown ? [] : [`${nameOf(key)} is unknown to ${nameOf(account)}`];
    }
    case "idempotency": {
      const { expiresAt } = JSON.parse(text.split("\n")[0] ?? "");
      return needs(key, ["idempotency_by_expiry", expiresAt, ...rest], rows);
    }
    case "idempotency_by_expiry":
      return needs(key, ["idempotency", ...rest.slice(1)], rows);
    case "messages_waiting": {
      if (rest.length === 0) return []; // The count of all messages, which only 1.0.0 keeps.
      const messages = [...rows].filter(([name, text]) =>
        name.startsWith('["messages",') && JSON.parse(text).accountId === rest[0]
      );
      return messages.length === Number(text) ? [] : [`${nameOf(key)} is ${text}, not ${messages.length}`];
    }
    case "changes": {
      const stamp = String(rest.at(-1));
      if (rest[0] !== "operators") return needs(key, [...OPERATORS_LOG, stamp], rows);
      const entries: LoggedChange[] = JSON.parse(text);
      return entries.flatMap((entry) => {
        const log = otherLogOf(entry);
        return log ? needs(key, [...log, stamp], rows) : [];
      });
    }
    default:
      return text === "not bytes" ? [`${nameOf(key)} does not hold bytes`] : [];
  }
}

/** The hashes of an account's added keys. */
function hashesOfAdded({ addedKeys }: Pick<OwnKeys, "addedKeys">): readonly string[] {
  return addedKeys?.keys.map(({ hash }) => hash) ?? [];
}

/** The size of all rows of a KV, in bytes: of their values, and of their keys as JSON. */
export async function bytesOf(kv: Deno.Kv): Promise<number> {
  const rows = await Array.fromAsync(kv.list({ prefix: [] }));
  return rows.reduce((sum, { key, value }) => sum + nameOf(key).length + sizeOf(value), 0);
}

function sizeOf(value: unknown): number {
  return value instanceof Uint8Array ? value.length : BigUint64Array.BYTES_PER_ELEMENT;
}

/** Gives an item a name that only an earlier release accepted, in all of its rows. */
export async function storeName(
  kv: Deno.Kv,
  id: number,
  name: string,
  { rows: { items, index, version }, filters }: Resource = THINGS,
): Promise<void> {
  const prefixes = [items, ...combinationsOf(filters.toSorted()).map(index)];
  for (const { key, value } of await Array.fromAsync(kv.list<Uint8Array>({ prefix: [] }))) {
    if (key.at(-1) !== id || !prefixes.some((prefix) => startsWith(key, prefix))) continue;
    const [json = "", ownerId] = new TextDecoder().decode(value).split("\n");
    const renamed = json.replace(/"name":"(?:[^"\\]|\\.)*"/, () => `"name":${JSON.stringify(name)}`);
    await kv.set(key, new TextEncoder().encode(`${renamed}\n${ownerId}`));
  }
  await kv.set(version, crypto.randomUUID());
}
