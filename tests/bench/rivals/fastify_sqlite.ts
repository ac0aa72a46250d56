/** The collection with Fastify, its rate-limit plugin in memory, and SQLite with the durability of Deno KV. */

import rateLimit from "@fastify/rate-limit";
import Fastify from "fastify";
import { hash } from "node:crypto";
import { DatabaseSync, type SQLOutputValue } from "node:sqlite";
import type { Collection } from "../collection.ts";
import { type Account, ACCOUNTS } from "../accounts.ts";

type Item = Collection["item"];

const { path, item: example, filter }: Collection = JSON.parse(Deno.env.get("COLLECTION") ?? "");
const FIELDS = Object.keys(example);
/** Fields whose values SQLite cannot hold, and which it has as JSON. */
const ENCODED = FIELDS.filter((name) => !["string", "number"].includes(typeof example[name]));
const NEW_ITEM = {
  type: "object",
  required: FIELDS,
  properties: Object.fromEntries(Object.entries(example).map(([name, value]) => [name, schemaOf(value)])),
};
const ITEM = {
  ...NEW_ITEM,
  properties: { id: { type: "integer" }, ...NEW_ITEM.properties },
};

const database = new DatabaseSync(Deno.env.get("KV_PATH") ?? ":memory:");
database.exec(`
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  CREATE TABLE accounts (hash TEXT PRIMARY KEY, key TEXT, perMinute INTEGER) WITHOUT ROWID;
  CREATE TABLE items (id INTEGER PRIMARY KEY, ${FIELDS.map((name) => `"${name}"`).join(", ")});
`);
if (filter !== undefined) database.exec(`CREATE INDEX items_by ON items ("${filter}", id)`);
const insertAccount = database.prepare("INSERT INTO accounts VALUES (?, ?, ?)");
const selectAccount = database.prepare("SELECT * FROM accounts WHERE hash = ?");
const selectItem = database.prepare("SELECT * FROM items WHERE id = ?");
const selectItems = database.prepare("SELECT * FROM items ORDER BY id LIMIT ?");
const insertItem = database.prepare(
  `INSERT INTO items VALUES (NULL, ${FIELDS.map(() => "?").join(", ")}) RETURNING *`,
);
for (const { key, perMinute } of [...ACCOUNTS.hundred, ...ACCOUNTS.limited]) {
  insertAccount.run(hash("sha256", key), key, perMinute);
}

const app = Fastify();
app.decorateRequest("account", null);
app.addHook("onRequest", async (request, reply) => {
  const key = request.headers.authorization?.replace("Bearer ", "") ?? "";
  const account = selectAccount.get(hash("sha256", key));
  if (account === undefined) {
    return await reply.code(401).send(refusal(401, "invalid_api_key"));
  }
  request.setDecorator("account", account);
});
await app.register(rateLimit, {
  timeWindow: 60_000,
  keyGenerator: (request) => request.getDecorator<Account>("account").key,
  max: (request) => request.getDecorator<Account>("account").perMinute,
  errorResponseBuilder: () => ({
    statusCode: 429,
    ...refusal(429, "rate_limit"),
  }),
});

app.get<{ Querystring: { limit: string } }>(path, {
  schema: { response: { 200: { type: "array", items: ITEM } } },
}, ({ query }, reply) => reply.send(selectItems.all(Number(query.limit)).map(decoded)));

app.get<{ Params: { id: string } }>(`${path}/:id`, {
  schema: { response: { 200: ITEM } },
}, ({ params }, reply) => {
  const item = selectItem.get(Number(params.id));
  return item === undefined ? reply.code(404).send(refusal(404, "not_found")) : reply.send(decoded(item));
});

app.post<{ Body: Item }>(path, {
  schema: { body: NEW_ITEM, response: { 201: ITEM } },
}, ({ body }, reply) => {
  const item = insertItem.get(...FIELDS.map((name) => columnOf(body[name])));
  return reply.code(201).send(item && decoded(item));
});

await app.listen({ port: Number(Deno.env.get("PORT")), host: "127.0.0.1" });

function schemaOf(value: unknown): object {
  if (Array.isArray(value)) return { type: "array", items: {} };
  return { type: Number.isInteger(value) ? "integer" : typeof value };
}

function columnOf(value: unknown): string | number {
  return typeof value === "string" || typeof value === "number" ? value : JSON.stringify(value);
}

function decoded(row: Record<string, SQLOutputValue>): Item {
  const values = ENCODED.map((name) => [name, JSON.parse(`${row[name]}`)]);
  return values.length === 0 ? row : { ...row, ...Object.fromEntries(values) };
}

function refusal(status: number, code: string) {
  return { code, message: code.replaceAll("_", " "), status };
}
