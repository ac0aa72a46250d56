/** The same catalogue with Express, express-rate-limit in memory, and SQLite. */

import { rateLimit } from "npm:express-rate-limit@8.7.4";
// @ts-types="npm:@types/express@5.0.6"
import express, { type Response } from "npm:express@5.3.0";
import { PORT } from "./environment.ts";
import { type ApiKey, bearerKey, errorBody, parseLimit, parseNewPet, parseStatus } from "./fixture.ts";
import { openSqliteCatalogue } from "./sqlite_catalogue.ts";

const catalogue = openSqliteCatalogue();
const app = express();

app.use((request, response, next) => {
  const key = bearerKey(request.headers.authorization);
  const apiKey = key === undefined ? undefined : catalogue.findKey(key);
  if (apiKey === undefined) return void response.status(401).json(errorBody(401, "invalid_api_key"));
  response.locals.apiKey = apiKey;
  next();
});

app.use(rateLimit({
  windowMs: 60_000,
  legacyHeaders: true,
  standardHeaders: false,
  keyGenerator: (_request, response) => callerOf(response).id,
  limit: (_request, response) => callerOf(response).perMinute,
  message: errorBody(429, "rate_limit_minute"),
}));

app.get("/v1/pets", (request, response) => {
  const limit = parseLimit(request.query.limit);
  const status = parseStatus(request.query.status);
  if (limit === undefined || (request.query.status !== undefined && status === undefined)) {
    return void response.status(400).json(errorBody(400, "invalid_request"));
  }
  response.json(catalogue.list(limit, status));
});

app.get("/v1/pets/:id", (request, response) => {
  const pet = catalogue.get(Number(request.params.id));
  if (pet === undefined) return void response.status(404).json(errorBody(404, "not_found"));
  response.json(pet);
});

app.post("/v1/pets", express.json(), (request, response) => {
  const pet = parseNewPet(request.body);
  if (pet === undefined) return void response.status(400).json(errorBody(400, "invalid_request"));
  response.status(201).json(catalogue.add(pet));
});

app.listen(PORT, "127.0.0.1");

function callerOf(response: Response): ApiKey {
  return response.locals.apiKey as ApiKey;
}
