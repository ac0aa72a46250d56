import { IDEMPOTENCY_KEY } from "../web/headers.ts";
import { ERRORS, operation, type Tag } from "../web/mod.ts";
import { extensibleEnum, Invalid, named, object, output, text, timestamp } from "../web/schema.ts";
import { ACCESS, type Call, type Operation } from "../service/mod.ts";
import { createOnce } from "../resource/mod.ts";
import { type Message, type MessageStore, QUEUE_FULL } from "./message_store.ts";

/** Operations on messages. */
export const MESSAGES_TAG: Tag = { name: "Messages", description: "Messages to the operator" };

/** Maximum size of a message in UTF-8, in KiB. */
const MAX_KIB = 16;
const ENCODER = new TextEncoder();
const TEXT = text({
  max: 10_000,
  pattern: /\S/,
  rule: "have a character other than whitespace",
  description:
    "The text of the message. It must have a character other than whitespace, and no control characters other than tab " +
    "and line ends; the pattern shows what this means in ASCII. Its length is counted in Unicode code points. It can have " +
    `at most ${MAX_KIB} KiB in UTF-8.`,
});
/** What the rules for messages mean in ASCII. All languages can read this pattern, and it takes linear time. */
const ASCII_RULES = String.raw`^[\x09\x0a\x0d ]*[^\x00-\x20\x7f][^\x00-\x08\x0b\x0c\x0e-\x1f\x7f]*$`;
const FIELDS = {
  message: {
    ...TEXT,
    json: { ...TEXT.json, pattern: ASCII_RULES },
    parse(value: unknown, subject: string): string {
      const message = TEXT.parse(value, subject);
      if (ENCODER.encode(message).length <= MAX_KIB * 1024) return message;
      throw new Invalid(`${subject} must have at most ${MAX_KIB} KiB in UTF-8`);
    },
  },
};
const CREATION = named(
  "MessageCreation",
  object(FIELDS, { examples: [{ message: "Is it still available?" }] }),
);

const MESSAGE_STATUS = extensibleEnum(
  ["queued"],
  "`queued`: the message is stored, but not yet sent",
);
/** The fields of a queued message. */
export const MESSAGE_FIELDS = {
  id: text({ description: "The message's id" }),
  message: text({ description: "The text of the message" }),
  status: MESSAGE_STATUS,
  createdAt: timestamp({ description: "When it was queued" }),
};
const MESSAGE = named(
  "Message",
  output(MESSAGE_FIELDS, {
    examples: [{
      id: "msg_0hodmpe1xowtHEk3Vq9Zb",
      message: "Is it still available?",
      status: "queued",
      createdAt: "2026-11-21T20:47:39.746Z",
    }],
  }),
);

/** Operations on messages. */
export function messageOperations(messages: MessageStore): Operation[] {
  const createMessage = operation({
    id: "createMessage",
    method: "POST",
    path: "/v1/messages",
    access: ACCESS.key,
    tag: MESSAGES_TAG,
    isLenient: true,
    summary: "Queue a message",
    description: "Queues a message for the operator of the service.",
    headers: { "Idempotency-Key": IDEMPOTENCY_KEY },
    body: CREATION,
    answers: {
      202: { description: "The message was queued", body: MESSAGE, headers: ["Idempotency-Replayed"] },
    },
    errors: [ERRORS.idempotency_key_reused, QUEUE_FULL],
  }, ({ headers, body, bytes }, call: Call) =>
    createOnce<Message>(headers["Idempotency-Key"], call, {
      operation: "createMessage",
      ...{ bytes, body, fields: FIELDS },
      creation: messages.queuing({ ...body, accountId: call.accountId }, call.now),
      reply: ({ id, message, status, createdAt }) => ({
        status: 202,
        headers: {},
        body: JSON.stringify({ id, message, status, createdAt }),
      }),
    }));

  return [createMessage];
}
