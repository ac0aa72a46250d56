import type { Route } from "../http/router.ts";
import { createOnce } from "../idempotency/create_once.ts";
import type { ReplyStore } from "../idempotency/reply_store.ts";
import { type Message, parseMessage } from "./message.ts";
import type { MessageStore } from "./message_store.ts";

/** `createMessage`. */
export function messageRoutes(messages: MessageStore, replies: ReplyStore): Route[] {
  return [{
    method: "POST",
    path: "/v1/messages",
    access: "key",
    checksInCommit: true,
    handler: async function createMessage(request, call) {
      const { bytes, object } = await call.readBody();
      const newMessage = { message: parseMessage(object), accountId: call.accountId };
      return await createOnce<Message>(request, call, replies, {
        operation: "createMessage",
        bytes,
        create: (along) => messages.create(newMessage, call.now, along),
        reply: ({ id, message, status, createdAt }) => ({
          status: 202,
          headers: {},
          body: JSON.stringify({ id, message, status, createdAt }),
        }),
      });
    },
  }];
}
