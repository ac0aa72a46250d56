// Code as a client developer would write it, with types generated from the document of a service of toys.
import { assertEquals } from "@std/assert";
import createClient from "openapi-fetch";
import { assertEmpty, bodyOf, noteReplies } from "./replies.ts";
import type { paths } from "./toy_schema.d.ts";

/** Calls every operation on toys and checks the responses. Resolves to a summary of each, such as `GET /toys 200`. */
export async function walkToys(baseUrl: string): Promise<string[]> {
  const replies: string[] = [];
  const account = bodyOf(
    await createClient<paths>({ baseUrl }).POST("/accounts", { body: { name: "me" } }),
    201,
  );
  const client = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${account.apiKey}` } });
  client.use(noteReplies(replies));

  const robot = { name: "Robot", priceCents: 1_999, material: "metal", inStock: true } as const;
  const made = bodyOf(await client.POST("/toys", { body: robot }), 201);
  assertEquals(made, { id: 1, ...robot });
  const params = { path: { toyId: made.id } };
  const tagged = await client.PATCH("/toys/{toyId}", { params, body: { tags: ["loud"], inStock: false } });
  assertEquals(bodyOf(tagged, 200), { ...made, tags: ["loud"], inStock: false });
  const untagged = bodyOf(await client.PATCH("/toys/{toyId}", { params, body: { tags: null } }), 200);
  assertEquals(untagged, { ...made, inStock: false });

  const query = { material: "metal", inStock: false } as const;
  assertEquals(bodyOf(await client.GET("/toys", { params: { query } }), 200), [untagged]);
  assertEquals(bodyOf(await client.GET("/toys", { params: { query: { inStock: true } } }), 200), []);
  assertEquals(bodyOf(await client.GET("/toys/{toyId}", { params }), 200), untagged);
  assertEmpty(await client.DELETE("/toys/{toyId}", { params }));
  const { error } = await client.GET("/toys/{toyId}", { params });
  assertEquals(error?.code, "toy_not_found");
  return replies;
}
