// Code as a client developer would write it, with types generated from the OpenAPI document.
import { assertEquals } from "@std/assert";
import createClient from "openapi-fetch";
import { assertEmpty, bodyOf, noteReplies, type Reply } from "./replies.ts";
import type { paths } from "./schema.d.ts";

/** Calls every operation and checks the responses. Resolves to a summary of each, such as `GET /pets 200`. */
export async function walk(baseUrl: string): Promise<string[]> {
  const replies: string[] = [];
  const notes = noteReplies(replies);
  const anonymous = createClient<paths>({ baseUrl });
  anonymous.use(notes);

  const document = await anonymous.GET("/openapi.json");
  assertEquals(bodyOf(document, 200)["openapi"], "3.1.0");
  assertUnchanged(await anonymous.GET("/openapi.json", { params: { header: conditionOf(document) } }));

  const account = bodyOf(await anonymous.POST("/accounts", { body: { name: "me" } }), 201);
  assertEquals(account, { id: account.id, name: "me", plan: "free", apiKey: account.apiKey });

  const client = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${account.apiKey}` } });
  client.use(notes);

  const rex = bodyOf(await client.POST("/pets", { body: { name: "Rex", categoryId: 1 } }), 201);
  assertEquals(rex, { id: 1, name: "Rex", categoryId: 1, status: "available" });

  const params = { path: { petId: rex.id } };
  const sold = bodyOf(await client.PATCH("/pets/{petId}", { params, body: { ...rex, status: "sold" } }), 200);
  assertEquals(sold, { ...rex, status: "sold" });

  const query = { status: "sold", limit: 1 } as const;
  const list = await client.GET("/pets", { params: { query } });
  assertEquals(bodyOf(list, 200), [sold]);
  assertUnchanged(await client.GET("/pets", { params: { query, header: conditionOf(list) } }));

  const header = { Prefer: "handling=strict" };
  const { response } = await client.GET("/pets", { params: { query, header } });
  assertEquals(response.headers.get("Preference-Applied"), header.Prefer);

  const one = await client.GET("/pets/{petId}", { params });
  assertEquals(bodyOf(one, 200), sold);
  assertUnchanged(await client.GET("/pets/{petId}", { params: { ...params, header: conditionOf(one) } }));

  assertEmpty(await client.DELETE("/pets/{petId}", { params }));
  const { error } = await client.GET("/pets/{petId}", { params });
  assertEquals(error, { code: "pet_not_found", message: error?.message ?? "", status: 404 });

  const message = bodyOf(await client.POST("/messages", { body: { message: "Hello" } }), 202);
  assertEquals(message, { id: message.id, message: "Hello", status: "queued", createdAt: message.createdAt });

  const days = bodyOf(await client.GET("/account/usage", { params: { query: { days: 1 } } }), 200);
  assertEquals(days.map(({ refused }) => refused), [0]);

  const own = bodyOf(await client.GET("/account"), 200);
  assertEquals(own, {
    id: account.id,
    name: "me",
    plan: "free",
    limits: { minute: 60, day: 1_000 },
    usage: own.usage,
    bannedUntil: null,
    createdAt: own.createdAt,
    previousKeyExpiresAt: null,
  });

  for (const body of [undefined, {}, { graceSeconds: 3_600 }]) {
    const { previousKeyExpiresAt } = bodyOf(await client.POST("/account/key", { body }), 201);
    assertEquals(typeof previousKeyExpiresAt, "string");
  }

  assertEmpty(await client.DELETE("/account"));
  return replies;
}

function assertUnchanged(reply: Reply): void {
  assertEmpty(reply, 304);
}

function conditionOf({ response }: Reply): { "If-None-Match": string } {
  return { "If-None-Match": response.headers.get("etag") ?? "" };
}
