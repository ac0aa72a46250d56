/** The catalogue with Fastify, its rate-limit plugin in memory, and SQLite with the durability of Deno KV. */

import rateLimit from "@fastify/rate-limit";
import Fastify from "fastify";
import { hash } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import { type Account, ACCOUNTS } from "../workloads.ts";

const NEW_PET = {
  type: "object",
  required: ["name", "categoryId"],
  properties: {
    name: { type: "string" },
    categoryId: { type: "integer" },
    status: { type: "string" },
  },
};
const PET = {
  ...NEW_PET,
  properties: { id: { type: "integer" }, ...NEW_PET.properties },
};

const database = new DatabaseSync(Deno.env.get("KV_PATH") ?? ":memory:");
database.exec(`
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  CREATE TABLE accounts (hash TEXT PRIMARY KEY, key TEXT, perMinute INTEGER) WITHOUT ROWID;
  CREATE TABLE pets (id INTEGER PRIMARY KEY, name TEXT, categoryId INTEGER, status TEXT);
  CREATE INDEX pets_by_status ON pets (status, id);
`);
const insertAccount = database.prepare("INSERT INTO accounts VALUES (?, ?, ?)");
const selectAccount = database.prepare("SELECT * FROM accounts WHERE hash = ?");
const selectPet = database.prepare("SELECT * FROM pets WHERE id = ?");
const selectPets = database.prepare("SELECT * FROM pets ORDER BY id LIMIT ?");
const insertPet = database.prepare(
  "INSERT INTO pets VALUES (NULL, ?, ?, ?) RETURNING *",
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

app.get<{ Querystring: { limit: string } }>("/v1/pets", {
  schema: { response: { 200: { type: "array", items: PET } } },
}, ({ query }, reply) => reply.send(selectPets.all(Number(query.limit))));

app.get<{ Params: { id: string } }>("/v1/pets/:id", {
  schema: { response: { 200: PET } },
}, ({ params }, reply) => {
  const pet = selectPet.get(Number(params.id));
  return pet === undefined ? reply.code(404).send(refusal(404, "not_found")) : reply.send(pet);
});

app.post<{ Body: { name: string; categoryId: number; status: string } }>(
  "/v1/pets",
  {
    schema: { body: NEW_PET, response: { 201: PET } },
  },
  ({ body }, reply) =>
    reply.code(201).send(
      insertPet.get(body.name, body.categoryId, body.status),
    ),
);

await app.listen({ port: Number(Deno.env.get("PORT")), host: "127.0.0.1" });

function refusal(status: number, code: string) {
  return { code, message: code.replaceAll("_", " "), status };
}
