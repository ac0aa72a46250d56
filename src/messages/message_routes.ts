import { readJsonObject } from "../http/body.ts";
import type { Route } from "../http/router.ts";
import { createOnce } from "../idempotency/create_once.ts";
import type { ReplyStore } from "../idempotency/reply_store.ts";
import { type Message, parseNewMessage } from "./message.ts";
import type { MessageStore } from "./message_store.ts";

/** The routes of interface section 4.4. */
export function messageRoutes(messages: MessageStore, replies: ReplyStore): Route[] {
  return [{
    method: "POST",
    path: "/v1/messages",
    access: "key",
    handler: async function createMessage(request, call) {
      const { bytes, object } = await readJsonObject(request);
      const newMessage = parseNewMessage(object, call.now);
      return await createOnce<Message>(request, call, replies, {
        operation: "createMessage",
        bytes,
        create: (attachment) => messages.create(newMessage, attachment),
        reply: (message) => ({ status: 202, headers: {}, body: JSON.stringify(message) }),
      });
    },
  }];
}
