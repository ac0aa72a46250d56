/** A naive catalogue on Deno KV: each request increments its count by check and set, and retries until that succeeds. */

import { hash } from "node:crypto";
import { type Account, ACCOUNTS } from "../workloads.ts";

const MINUTE = 60_000;

const kv = await Deno.openKv(Deno.env.get("KV_PATH"));
for (const account of [...ACCOUNTS.hundred, ...ACCOUNTS.limited]) {
  await kv.set(["accounts", hash("sha256", account.key)], account);
}

Deno.serve({
  port: Number(Deno.env.get("PORT")),
  hostname: "127.0.0.1",
  onListen() {},
}, async (request) => {
  const key = request.headers.get("authorization")?.replace("Bearer ", "") ??
    "";
  const { value: account } = await kv.get<Account>([
    "accounts",
    hash("sha256", key),
  ]);
  if (account === null) return refusal(401, "invalid_api_key");

  const left = await count(account);
  const headers = {
    "x-ratelimit-limit": `${account.perMinute}`,
    "x-ratelimit-remaining": `${Math.max(left, 0)}`,
    "x-ratelimit-reset": `${Math.ceil(Date.now() / MINUTE) * 60}`,
  };
  if (left < 0) {
    return refusal(429, "rate_limit", { ...headers, "retry-after": "60" });
  }
  const { pathname, searchParams } = new URL(request.url);
  if (request.method === "POST") {
    return Response.json(await add(await request.json()), {
      status: 201,
      headers,
    });
  }
  if (pathname === "/v1/pets") {
    const pets = kv.list({ prefix: ["pets"] }, {
      limit: Number(searchParams.get("limit")),
    });
    return Response.json(await Array.fromAsync(pets, ({ value }) => value), {
      headers,
    });
  }
  const { value: pet } = await kv.get([
    "pets",
    Number(pathname.split("/").at(-1)),
  ]);
  return pet === null ? refusal(404, "not_found", headers) : Response.json(pet, { headers });
});

function refusal(status: number, code: string, headers = {}): Response {
  return Response.json({ code, message: code.replaceAll("_", " "), status }, {
    status,
    headers,
  });
}

/** Counts a request. Resolves to the number of requests left in this minute; negative if the limit was reached. */
async function count({ key, perMinute }: Account): Promise<number> {
  while (true) {
    const row = await kv.get<number>([
      "usage",
      key,
      Math.floor(Date.now() / MINUTE),
    ]);
    const left = perMinute - (row.value ?? 0) - 1;
    if (left < 0) return left;
    const { ok } = await kv.atomic().check(row).set(row.key, perMinute - left, {
      expireIn: MINUTE,
    })
      .commit();
    if (ok) return left;
  }
}

async function add(
  newPet: { readonly status: string },
): Promise<{ readonly id: number }> {
  while (true) {
    const last = await kv.get<number>(["last_id"]);
    const pet = { id: (last.value ?? 0) + 1, ...newPet };
    const { ok } = await kv.atomic().check(last).set(last.key, pet.id)
      .set(["pets", pet.id], pet).set(
        ["pets_by_status", pet.status, pet.id],
        pet,
      ).commit();
    if (ok) return pet;
  }
}
