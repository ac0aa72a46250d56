import { createResponse, operation, valueResponse } from "../web/mod.ts";
import { integer, list, named, object, optional, output, type Parsed, text } from "../web/schema.ts";
import { ACCESS, type Call, type Operation } from "../service/mod.ts";
import { MESSAGE_FIELDS, MESSAGES_TAG } from "./message_operations.ts";
import type { MessageStore } from "./message_store.ts";

/** Path of the queue of messages. */
export const MESSAGES_PATH = "/operator/v1/messages";
/** Maximum number of messages in a response. */
export const MAX_MESSAGES = 100;
/** Maximum number of messages removed by one request. */
export const MAX_REMOVED = 500;

/** Queued messages. */
export const QUEUE = named(
  "Messages",
  list(
    output({ ...MESSAGE_FIELDS, accountId: text({ description: "The account that sent it" }) }),
    MAX_MESSAGES,
  ),
);

/** Operators' operations on queued messages. */
export function operatorMessageOperations(messages: MessageStore): Operation[] {
  const common = { access: ACCESS.operator, tag: MESSAGES_TAG, timeoutMs: 30_000 } as const;

  const listMessages = operation(
    {
      ...common,
      id: "listMessages",
      method: "GET",
      path: MESSAGES_PATH,
      summary: "List the oldest messages",
      description: "Returns the oldest queued messages. They stay queued until they are removed.",
      query: {
        limit: optional(
          integer(1, MAX_MESSAGES, { description: "Maximum number of messages returned" }),
          MAX_MESSAGES,
        ),
      },
      answers: {
        200: { description: "The oldest messages", body: QUEUE, headers: ["Cache-Control"] },
      },
    },
    async ({ query: { limit } }) =>
      valueResponse<Parsed<typeof QUEUE>>(await Array.fromAsync(messages.list(limit))),
  );

  const removeMessages = operation({
    ...common,
    id: "removeMessages",
    method: "POST",
    path: `${MESSAGES_PATH}/remove`,
    summary: "Remove messages",
    description:
      "Removes messages from the queue. Ids of messages that are not queued any more are ignored. An account can be " +
      "deleted when none of its messages is queued.",
    confirm: "This removes the messages permanently. Continue?",
    body: named(
      "MessageIds",
      object({ ids: list(text({ max: 100 }), MAX_REMOVED) }, {
        examples: [{ ids: ["msg_0hodmpe1xowtHEk3Vq9Zb"] }],
      }),
    ),
    answers: { 204: { description: "None of these messages is queued any more" } },
  }, async ({ body: { ids } }, { transact, note }: Call) => {
    const found = await messages.find([...new Set(ids)]);
    await Promise.all(found.map((message) => transact(messages.removing(message))));
    for (const { id } of found) note(id);
    return createResponse(null, { status: 204 });
  });

  return [listMessages, removeMessages];
}
