/** A naive collection on Deno KV: each request increments its count by check and set, and retries until that succeeds. */

import { hash } from "node:crypto";
import type { Collection } from "../collection.ts";
import { type Account, ACCOUNTS } from "../accounts.ts";

type Item = Collection["item"];

const MINUTE = 60_000;
const { path, filter }: Collection = JSON.parse(Deno.env.get("COLLECTION") ?? "");

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
  if (pathname === path) {
    const items = kv.list({ prefix: ["items"] }, {
      limit: Number(searchParams.get("limit")),
    });
    return Response.json(await Array.fromAsync(items, ({ value }) => value), {
      headers,
    });
  }
  const { value: item } = await kv.get([
    "items",
    Number(pathname.split("/").at(-1)),
  ]);
  return item === null ? refusal(404, "not_found", headers) : Response.json(item, { headers });
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

async function add(newItem: Item): Promise<Item> {
  while (true) {
    const last = await kv.get<number>(["last_id"]);
    const id = (last.value ?? 0) + 1;
    const item: Item = { id, ...newItem };
    const adding = kv.atomic().check(last).set(last.key, id).set(["items", id], item);
    if (filter !== undefined) adding.set(["items_by", `${item[filter]}`, id], item);
    if ((await adding.commit()).ok) return item;
  }
}
