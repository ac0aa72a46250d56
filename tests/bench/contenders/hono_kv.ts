/** The same catalogue with Hono and Deno KV, written as their manuals show. */

import { Hono } from "npm:hono@4.13.19";
import { FOLDER, PORT } from "./environment.ts";
import {
  ANIMALS,
  type ApiKey,
  apiKeyRecords,
  bearerKey,
  errorBody,
  hashKey,
  type NewPet,
  parseLimit,
  parseNewPet,
  parseStatus,
  type Pet,
} from "./fixture.ts";

interface Admission {
  admitted: boolean;
  limit: number;
  remaining: number;
  resetAt: number;
}

const MINUTE = 60_000;
const DAY = 86_400_000;

const kv = await Deno.openKv(`${FOLDER}/hono.db`);
for (const [hash, apiKey] of apiKeyRecords()) await kv.set(["keys", hash], apiKey);
for (const animal of ANIMALS) await addPet(animal);

const app = new Hono();

app.use("/v1/*", async (context, next) => {
  const key = bearerKey(context.req.header("Authorization"));
  const apiKey = key === undefined ? null : (await kv.get<ApiKey>(["keys", hashKey(key)])).value;
  if (apiKey === null) return context.json(errorBody(401, "invalid_api_key"), 401);

  const { admitted, limit, remaining, resetAt } = await admit(apiKey);
  context.header("X-RateLimit-Limit", String(limit));
  context.header("X-RateLimit-Remaining", String(remaining));
  context.header("X-RateLimit-Reset", String(resetAt / 1000));
  if (!admitted) {
    context.header("Retry-After", String(Math.ceil((resetAt - Date.now()) / 1000)));
    return context.json(errorBody(429, "rate_limit"), 429);
  }
  return await next();
});

app.get("/v1/pets", async (context) => {
  const limit = parseLimit(context.req.query("limit"));
  const wanted = context.req.query("status");
  const status = parseStatus(wanted);
  if (limit === undefined || (wanted !== undefined && status === undefined)) {
    return context.json(errorBody(400, "invalid_request"), 400);
  }
  const prefix = status === undefined ? ["pets"] : ["pets_by_status", status];
  const rows = await Array.fromAsync(kv.list<Pet>({ prefix }, { limit }));
  return context.json(rows.map((row) => row.value));
});

app.get("/v1/pets/:id", async (context) => {
  const { value } = await kv.get<Pet>(["pets", Number(context.req.param("id"))]);
  return value === null ? context.json(errorBody(404, "not_found"), 404) : context.json(value);
});

app.post("/v1/pets", async (context) => {
  const pet = parseNewPet(await context.req.json().catch(() => undefined));
  if (pet === undefined) return context.json(errorBody(400, "invalid_request"), 400);
  return context.json(await addPet(pet), 201);
});

Deno.serve({ port: PORT, hostname: "127.0.0.1", onListen() {} }, app.fetch);

async function admit({ id, perMinute, perDay }: ApiKey): Promise<Admission> {
  while (true) {
    const now = Date.now();
    const minuteEnd = now - now % MINUTE + MINUTE;
    const dayEnd = now - now % DAY + DAY;
    const [minute, day] = await kv.getMany<[number, number]>([
      ["usage", id, "minute", minuteEnd],
      ["usage", id, "day", dayEnd],
    ]);
    const minuteLeft = perMinute - (minute.value ?? 0);
    const dayLeft = perDay - (day.value ?? 0);
    if (dayLeft < 1) return { admitted: false, limit: perDay, remaining: 0, resetAt: dayEnd };
    if (minuteLeft < 1) return { admitted: false, limit: perMinute, remaining: 0, resetAt: minuteEnd };

    const { ok } = await kv.atomic()
      .check(minute, day)
      .set(minute.key, (minute.value ?? 0) + 1, { expireIn: minuteEnd - now })
      .set(day.key, (day.value ?? 0) + 1, { expireIn: dayEnd - now })
      .commit();
    if (!ok) continue;
    return minuteLeft <= dayLeft
      ? { admitted: true, limit: perMinute, remaining: minuteLeft - 1, resetAt: minuteEnd }
      : { admitted: true, limit: perDay, remaining: dayLeft - 1, resetAt: dayEnd };
  }
}

async function addPet(animal: NewPet): Promise<Pet> {
  while (true) {
    const last = await kv.get<number>(["last_id"]);
    const pet = { id: (last.value ?? 0) + 1, ...animal };
    const { ok } = await kv.atomic()
      .check(last)
      .set(last.key, pet.id)
      .set(["pets", pet.id], pet)
      .set(["pets_by_status", pet.status, pet.id], pet)
      .commit();
    if (ok) return pet;
  }
}
