// Code as developers would write it, with types generated from both documents.
import { assertEquals } from "@std/assert";
import createClient from "openapi-fetch";
import type { paths } from "./clients_schema.d.ts";
import type { paths as operatorPaths } from "./operators_schema.d.ts";

/** A reply of a generated client. */
interface Reply<Body = unknown> {
  readonly data?: Body;
  readonly response: Response;
}

/** Calls every operation on accounts, as a client and as an operator. */
export async function walk(origin: string, token: string): Promise<void> {
  const baseUrl = `${origin}/v1`;
  const anonymous = createClient<paths>({ baseUrl });
  const document = await anonymous.GET("/openapi.json");
  assertEquals(bodyOf(document, 200)["openapi"], "3.1.0");
  const header = { "If-None-Match": document.response.headers.get("etag") ?? "" };
  assertEmpty(await anonymous.GET("/openapi.json", { params: { header } }), 304);
  const { apiKey, ...made } = bodyOf(await anonymous.POST("/accounts", { body: { name: "Élan" } }), 201);
  assertEquals(made, { id: made.id, name: "Élan", plan: "free" });

  const client = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${apiKey}` } });
  const days = bodyOf(await client.GET("/account/usage", { params: { query: { days: 1 } } }), 200);
  assertEquals(days.map(({ refused }) => refused), [0]);
  const { usage, createdAt, ...own } = bodyOf(await client.GET("/account"), 200);
  assertEquals([usage.minute.used, typeof createdAt], [2, "string"]);
  const limits = { minute: 60, day: 1_000 };
  assertEquals(own, { ...made, limits, bannedUntil: null, previousKeyExpiresAt: null, key: null });
  const body = { label: "Dashboard", expiresAt: "2099-12-31T00:00:00Z" };
  const { apiKey: added, ...key } = bodyOf(await client.POST("/account/keys", { body }), 201);
  assertEquals([key.scope, key.collections], ["read", null]);
  assertEquals(bodyOf(await client.GET("/account/keys"), 200), [key]);
  const byAdded = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${added}` } });
  assertEquals(bodyOf(await byAdded.GET("/account"), 200).key?.id, key.id);
  assertEquals((await byAdded.GET("/account/keys")).error?.code, "key_scope");
  assertEmpty(await client.DELETE("/account/keys/{keyId}", { params: { path: { keyId: key.id } } }));
  for (const body of [undefined, {}, { graceSeconds: 3_600 }]) {
    const { previousKeyExpiresAt } = bodyOf(await client.POST("/account/key", { body }), 201);
    assertEquals(typeof previousKeyExpiresAt, "string");
  }
  assertEmpty(await client.DELETE("/account"));
  await walkAsOperator(`${origin}/operator/v1`, token);
}

/** Reads what a later release may send: a plan, and a field in every object, that the documents do not have. */
export async function walkLaterRelease(origin: string, plan: string): Promise<void> {
  const baseUrl = `${origin}/v1`;
  const anonymous = createClient<paths>({ baseUrl });
  const account = bodyOf(await anonymous.POST("/accounts", { body: { name: "Élan" } }), 201);
  assertEquals(account.plan, plan);
  const { error } = await anonymous.POST("/accounts", { body: { name: "" } });
  assertEquals([error?.code, error?.field], ["invalid_request", "name"]);

  const client = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${account.apiKey}` } });
  const specimens = bodyOf(await client.GET("/specimens"), 200);
  const seen = specimens.map((
    { textPlain, dayNullable, choiceOptional },
  ) => [textPlain, dayNullable, choiceOptional]);
  assertEquals(seen, [["Élan", "2027-01-15", "two"], ["Élan", null, undefined]]);
}

async function walkAsOperator(baseUrl: string, token: string): Promise<void> {
  const operator = createClient<operatorPaths>({ baseUrl, headers: { authorization: `Bearer ${token}` } });
  const creation = { name: "Élan", reference: "me", plan: "pro" } as const;
  const { account } = bodyOf(await operator.POST("/accounts", { body: creation }), 201);
  const params = { path: { id: account.id } };
  assertEquals(bodyOf(await operator.GET("/accounts/{id}", { params }), 200), account);
  const usage = await operator.GET("/accounts/{id}/usage", { params: { ...params, query: { days: 2 } } });
  assertEquals(bodyOf(usage, 200).map(({ admitted }) => admitted), [0, 0]);

  const accounts = [{ name: "you", reference: "me" }, { name: "them" }];
  const batch = bodyOf(await operator.POST("/accounts/batch", { body: { accounts } }), 200);
  assertEquals(batch.map(({ outcome, accountId }) => [outcome, accountId]), [
    ["exists", account.id],
    ["created", undefined],
  ]);
  const query = { limit: 1, reference: "me", state: "active" } as const;
  const found = bodyOf(await operator.GET("/accounts", { params: { query } }), 200);
  assertEquals(found.map(({ id }) => id), [account.id]);

  const limits = { minute: 5_000, day: 1_000_000 };
  const body = { plan: "enterprise", limits, suspended: true } as const;
  const changed = bodyOf(await operator.PATCH("/accounts/{id}", { params, body }), 200);
  assertEquals([changed.state, changed.limits], ["suspended", limits]);
  const grace = { params, body: { graceSeconds: 60 } };
  const rotated = bodyOf(await operator.POST("/accounts/{id}/rotate", grace), 201);
  assertEquals(typeof rotated.account.previousKeyExpiresAt, "string");
  assertEquals([rotated.addedKeys, rotated.endedKeys], [[], 0]);
  const added = { params, body: { label: "Till", scope: "read/write", collections: null } } as const;
  const { apiKey: _, ...key } = bodyOf(await operator.POST("/accounts/{id}/keys", added), 201);
  assertEquals(bodyOf(await operator.GET("/accounts/{id}/keys", { params }), 200), [key]);
  const path = { id: account.id, keyId: key.id };
  assertEmpty(await operator.DELETE("/accounts/{id}/keys/{keyId}", { params: { path } }));
  bodyOf(await operator.POST("/accounts/{id}/unban", { params }), 200);
  assertEquals(bodyOf(await operator.POST("/accounts/{id}/reset", { params }), 200).usage.day.used, 0);
  const { error } = await operator.DELETE("/accounts/{id}", { params });
  assertEquals([error?.code, error?.status], ["account_open", 409]);
  // It can be deleted a minute later.
  bodyOf(await operator.POST("/accounts/{id}/close", { params }), 200);
}

/** The body of a reply. Throws if it has another status. */
function bodyOf<Body>({ data, response }: Reply<Body>, status: number): Body {
  assertEquals(response.status, status);
  if (data === undefined) throw new Error("The reply has no body");
  return data;
}

/** Asserts that a reply has this status, and no body. */
function assertEmpty({ data, response }: Reply, status: number = 204): void {
  assertEquals([response.status, data], [status, undefined]);
}
