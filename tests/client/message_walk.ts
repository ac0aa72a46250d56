// Code as developers would write it, with types generated from both documents.
import { assertEquals } from "@std/assert";
import createClient from "openapi-fetch";
import type { paths as operatorPaths } from "./operator_schema.d.ts";
import { assertEmpty, bodyOf, noteReplies } from "./replies.ts";
import type { paths } from "./schema.d.ts";

/** Calls every operation on messages, as a client and as an operator. Resolves to a summary of each response. */
export async function walkMessages(
  origin: string,
  token: string,
): Promise<[client: string[], operator: string[]]> {
  const [replies, operatorReplies]: [string[], string[]] = [[], []];
  const baseUrl = `${origin}/v1`;
  const made = await createClient<paths>({ baseUrl }).POST("/accounts", { body: { name: "me" } });
  const { id, apiKey } = bodyOf(made, 201);
  const client = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${apiKey}` } });
  client.use(noteReplies(replies));
  const operator = createClient<operatorPaths>({
    baseUrl: `${origin}/operator/v1`,
    headers: { authorization: `Bearer ${token}` },
  });
  operator.use(noteReplies(operatorReplies));

  const header = { Prefer: "handling=strict" };
  const queued = await client.POST("/messages", { params: { header }, body: { message: "Hello" } });
  assertEquals(queued.response.headers.get("Preference-Applied"), header.Prefer);
  const message = bodyOf(queued, 202);
  assertEquals(message, { id: message.id, message: "Hello", status: "queued", createdAt: message.createdAt });

  const params = { path: { id } };
  bodyOf(await operator.POST("/accounts/{id}/close", { params }), 200);
  const { error } = await operator.DELETE("/accounts/{id}", { params });
  assertEquals([error?.code, error?.status], ["messages_waiting", 409]);
  const messages = bodyOf(await operator.GET("/messages", { params: { query: { limit: 9 } } }), 200);
  assertEquals(messages, [{ ...message, accountId: id }]);
  assertEmpty(await operator.POST("/messages/remove", { body: { ids: messages.map(({ id }) => id) } }));
  assertEmpty(await operator.DELETE("/accounts/{id}", { params }));
  return [replies, operatorReplies];
}
