// Code as developers would write it, with types generated from the documents of a service of toys.
import { assertEquals } from "@std/assert";
import createClient from "openapi-fetch";
import { assertEmpty, assertUnchanged, bodyOf, conditionOf, noteReplies } from "./replies.ts";
import type { paths as operatorPaths } from "./toy_operator_schema.d.ts";
import type { paths } from "./toy_schema.d.ts";

const ROBOT = { name: "Élan", priceCents: 1_999, material: "metal", inStock: true } as const;

/**
 * Calls every operation on toys, as a client and as an operator, and checks the responses. Resolves to a summary of
 * each, such as `GET /toys 200`.
 */
export async function walkToys(
  origin: string,
  token: string,
): Promise<[client: string[], operator: string[]]> {
  const [replies, operatorReplies]: [string[], string[]] = [[], []];
  const baseUrl = `${origin}/v1`;
  const made = await createClient<paths>({ baseUrl }).POST("/accounts", { body: { name: "me" } });
  const account = bodyOf(made, 201);
  const client = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${account.apiKey}` } });
  client.use(noteReplies(replies));

  const robot = bodyOf(await client.POST("/toys", { body: ROBOT }), 201);
  assertEquals(robot, { id: 1, ...ROBOT });
  const params = { path: { toyId: robot.id } };
  const tagged = await client.PATCH("/toys/{toyId}", {
    params,
    body: { ...robot, tags: ["loud"], inStock: false },
  });
  assertEquals(bodyOf(tagged, 200), { ...robot, tags: ["loud"], inStock: false });
  const untagged = bodyOf(await client.PATCH("/toys/{toyId}", { params, body: { tags: null } }), 200);
  assertEquals(untagged, { ...robot, inStock: false });

  const query = { material: "metal", inStock: false, limit: 1 } as const;
  const list = await client.GET("/toys", { params: { query } });
  assertEquals(bodyOf(list, 200), [untagged]);
  assertUnchanged(await client.GET("/toys", { params: { query, header: conditionOf(list) } }));
  assertEquals(bodyOf(await client.GET("/toys", { params: { query: { inStock: true } } }), 200), []);
  const one = await client.GET("/toys/{toyId}", { params });
  assertEquals(bodyOf(one, 200), untagged);
  assertUnchanged(await client.GET("/toys/{toyId}", { params: { ...params, header: conditionOf(one) } }));

  const operator = createClient<operatorPaths>({
    baseUrl: `${origin}/operator/v1`,
    headers: { authorization: `Bearer ${token}` },
  });
  operator.use(noteReplies(operatorReplies));
  const owned = bodyOf(await operator.GET("/toys", { params: { query: { limit: 500 } } }), 200);
  assertEquals(owned, [{ ...untagged, accountId: account.id }]);
  const dear = bodyOf(await operator.PATCH("/toys/{toyId}", { params, body: { priceCents: 9_999 } }), 200);
  assertEquals(dear.priceCents, 9_999);
  bodyOf(await client.POST("/toys", { body: ROBOT }), 201);
  assertEmpty(await operator.DELETE("/toys/{toyId}", { params: { path: { toyId: 2 } } }));

  assertEmpty(await client.DELETE("/toys/{toyId}", { params }));
  const { error } = await client.GET("/toys/{toyId}", { params });
  assertEquals(error, { code: "toy_not_found", message: error?.message ?? "", status: 404 });
  return [replies, operatorReplies];
}
