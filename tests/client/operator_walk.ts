// Code as the developer of an operator's backend would write it, with types generated from the OpenAPI document.
import { assertEquals } from "@std/assert";
import createClient from "openapi-fetch";
import type { paths } from "./operator_schema.d.ts";
import { assertEmpty, bodyOf, noteReplies } from "./replies.ts";

/** Calls every operation of operators that is not on items or messages. Resolves to a summary of each response. */
export async function walkAsOperator(baseUrl: string, token: string): Promise<string[]> {
  const replies: string[] = [];
  const client = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${token}` } });
  client.use(noteReplies(replies));

  const made = bodyOf(
    await client.POST("/accounts", { body: { name: "Élan", reference: "me", plan: "pro" } }),
    201,
  );
  const { account } = made;
  const params = { path: { id: account.id } };
  assertEquals(bodyOf(await client.GET("/accounts/{id}", { params }), 200), account);

  const usage = await client.GET("/accounts/{id}/usage", { params: { ...params, query: { days: 2 } } });
  assertEquals(bodyOf(usage, 200).map(({ admitted }) => admitted), [0, 0]);

  const batch = await client.POST("/accounts/batch", {
    body: { accounts: [{ name: "you", reference: "me" }, { name: "them" }] },
  });
  assertEquals(bodyOf(batch, 200).map(({ outcome, accountId }) => [outcome, accountId]), [
    ["exists", account.id],
    ["created", undefined],
  ]);
  const query = { limit: 1, reference: "me", state: "active" } as const;
  assertEquals(bodyOf(await client.GET("/accounts", { params: { query } }), 200).map(({ id }) => id), [
    account.id,
  ]);

  const limits = { minute: 5_000, day: 1_000_000 };
  const patch = { plan: "enterprise", limits, suspended: true } as const;
  const changed = bodyOf(await client.PATCH("/accounts/{id}", { params, body: patch }), 200);
  assertEquals([changed.state, changed.limits], ["suspended", limits]);
  const rotated = bodyOf(
    await client.POST("/accounts/{id}/rotate", { params, body: { graceSeconds: 60 } }),
    201,
  );
  assertEquals(typeof rotated.account.previousKeyExpiresAt, "string");
  bodyOf(await client.POST("/accounts/{id}/unban", { params }), 200);
  assertEquals(bodyOf(await client.POST("/accounts/{id}/reset", { params }), 200).usage.day.used, 0);

  bodyOf(await client.POST("/accounts/{id}/close", { params }), 200);
  assertEmpty(await client.DELETE("/accounts/{id}", { params }));
  return replies;
}
