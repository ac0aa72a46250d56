import { gauge } from "../base/mod.ts";
import { CorruptRow, type Store, withDeadline } from "../engine/mod.ts";
import type { Part } from "../operator/part.ts";
import { MESSAGE_COMMANDS } from "./message_commands.ts";
import { messageOperations } from "./message_operations.ts";
import { forgetting, MESSAGES_WAITING, MessageStore } from "./message_store.ts";
import { operatorMessageOperations } from "./operator_message_operations.ts";

/** The message queue. */
export const MESSAGES: Part = {
  operations: ({ store }) => messageOperations(new MessageStore(store)),
  operatorOperations: (store) => operatorMessageOperations(new MessageStore(store)),
  commands: MESSAGE_COMMANDS,
  gauges: queueGauges,
  removal: { errors: [MESSAGES_WAITING], extend: forgetting },
};

/** Maximum wait for the queue, in ms: shorter than a request's budget, so that other metrics are still sent. */
const QUEUE_DEADLINE = 2_000;

/** Metrics of the queue; none if KV fails, and no age if the oldest message cannot be read. */
async function queueGauges(store: Store, prefix: string, now: number): Promise<string[]> {
  const messages = new MessageStore(store);
  try {
    const reads = Promise.all([messages.countWaiting(), ageOfOldest(messages, now)]);
    const [waiting, age] = await withDeadline(reads, QUEUE_DEADLINE);
    return [
      gauge(`${prefix}messages_waiting`, "Messages waiting to be taken, across all processes.", waiting),
      ...(age === undefined
        ? []
        : [gauge(`${prefix}oldest_message_age_seconds`, "How long the oldest message has waited.", age)]),
    ];
  } catch {
    return [];
  }
}

/** How long the oldest message has waited, in s; undefined if it cannot be read. */
async function ageOfOldest(messages: MessageStore, now: number): Promise<number | undefined> {
  try {
    const { value: oldest } = await messages.list(1).next();
    return oldest ? Math.max(0, now - Date.parse(oldest.createdAt)) / 1_000 : 0;
  } catch (error) {
    if (error instanceof CorruptRow) return undefined;
    throw error;
  }
}
