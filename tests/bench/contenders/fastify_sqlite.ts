/** The same catalogue with Fastify, its rate-limit plugin in memory, and SQLite. */

import rateLimit from "npm:@fastify/rate-limit@11.2.0";
import Fastify from "npm:fastify@5.12.8";
import { PORT } from "./environment.ts";
import { type ApiKey, bearerKey, errorBody, type NewPet } from "./fixture.ts";
import { openSqliteCatalogue } from "./sqlite_catalogue.ts";

const STATUS = { type: "string", enum: ["available", "pending", "sold"] };
const NEW_PET = {
  type: "object",
  required: ["name", "categoryId"],
  properties: {
    name: { type: "string", minLength: 1, maxLength: 255 },
    categoryId: { type: "integer" },
    status: { ...STATUS, default: "available" },
  },
};
const PET = { ...NEW_PET, properties: { id: { type: "integer" }, ...NEW_PET.properties } };
const PAGE = {
  type: "object",
  properties: { limit: { type: "integer", minimum: 1, maximum: 100, default: 20 }, status: STATUS },
};

const catalogue = openSqliteCatalogue();
const app = Fastify();
app.decorateRequest("apiKey", null);

app.addHook("onRequest", async (request, reply) => {
  const key = bearerKey(request.headers.authorization);
  const apiKey = key === undefined ? undefined : catalogue.findKey(key);
  if (apiKey === undefined) return await reply.code(401).send(errorBody(401, "invalid_api_key"));
  request.setDecorator("apiKey", apiKey);
});

await app.register(rateLimit, {
  timeWindow: 60_000,
  keyGenerator: (request) => request.getDecorator<ApiKey>("apiKey").id,
  max: (request) => request.getDecorator<ApiKey>("apiKey").perMinute,
  errorResponseBuilder: () => ({ statusCode: 429, ...errorBody(429, "rate_limit_minute") }),
});

app.get<{ Querystring: { limit: number; status?: string } }>(
  "/v1/pets",
  { schema: { querystring: PAGE, response: { 200: { type: "array", items: PET } } } },
  ({ query }) => Promise.resolve(catalogue.list(query.limit, query.status)),
);

app.get<{ Params: { id: number } }>(
  "/v1/pets/:id",
  {
    schema: {
      params: { type: "object", properties: { id: { type: "integer" } } },
      response: { 200: PET },
    },
  },
  ({ params }, reply) => {
    const pet = catalogue.get(params.id);
    return pet === undefined ? reply.code(404).send(errorBody(404, "not_found")) : reply.send(pet);
  },
);

app.post<{ Body: NewPet }>(
  "/v1/pets",
  { schema: { body: NEW_PET, response: { 201: PET } } },
  ({ body }, reply) => reply.code(201).send(catalogue.add(body)),
);

await app.listen({ port: PORT, host: "127.0.0.1" });
