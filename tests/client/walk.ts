// Code as a client developer would write it, with types generated from the OpenAPI document.
import { assertEquals } from "@std/assert";
import createClient from "openapi-fetch";
import { assertEmpty, assertUnchanged, bodyOf, conditionOf, noteReplies } from "./replies.ts";
import type { paths } from "./schema.d.ts";

/** Calls every operation that is not on items or messages. Resolves to a summary of each response, such as `GET /account 200`. */
export async function walk(baseUrl: string): Promise<string[]> {
  const replies: string[] = [];
  const notes = noteReplies(replies);
  const anonymous = createClient<paths>({ baseUrl });
  anonymous.use(notes);

  const document = await anonymous.GET("/openapi.json");
  assertEquals(bodyOf(document, 200)["openapi"], "3.1.0");
  assertUnchanged(await anonymous.GET("/openapi.json", { params: { header: conditionOf(document) } }));

  const account = bodyOf(await anonymous.POST("/accounts", { body: { name: "Élan" } }), 201);
  assertEquals(account, { id: account.id, name: "Élan", plan: "free", apiKey: account.apiKey });

  const client = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${account.apiKey}` } });
  client.use(notes);

  const days = bodyOf(await client.GET("/account/usage", { params: { query: { days: 1 } } }), 200);
  assertEquals(days.map(({ refused }) => refused), [0]);

  const own = bodyOf(await client.GET("/account"), 200);
  assertEquals(own, {
    id: account.id,
    name: "Élan",
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
