import { type Attachment, Collection } from "../kv/collection.ts";
import { decodeJson, encodeJson, type JsonValue } from "../kv/json_value.ts";
import type { Store } from "../kv/store.ts";
import { retried } from "../kv/retry.ts";
import type { Message, NewMessage } from "./message.ts";

/** A message with its place in the order of creation. */
interface NumberedMessage {
  readonly number: number;
  readonly message: Message;
}

const MESSAGES = "messages";
const TAKE_PAGE = 100;

/** Accepted messages, in the order of their creation. Every method throws StoreUnavailable when KV fails. */
export class MessageStore {
  readonly #store: Store;
  readonly #messages: Collection<NewMessage, NumberedMessage>;

  constructor(store: Store) {
    this.#store = store;
    this.#messages = new Collection(store, {
      head: ["message_log"],
      // A message and its stored reply take up to 121 kB; an atomic operation, 800 kB.
      appendsPerCommit: 6,
      item: ({ message, createdAt }, number) => ({
        number,
        message: { id: `msg_${number}`, message, status: "queued", createdAt },
      }),
      rows: ({ number, message }) => [[[MESSAGES, number], encodeJson(message)]],
    });
  }

  /** Accepts a message; undefined when the attachment's guard had changed. */
  async create(newMessage: NewMessage, attachment?: Attachment<Message>): Promise<Message | undefined> {
    const appended = await this.#messages.append(
      newMessage,
      attachment && { guard: attachment.guard, rows: ({ message }) => attachment.rows(message) },
    );
    return appended?.message;
  }

  /**
   * Hands the oldest messages, up to `count`, to `send`, and removes each once `send` has returned.
   * A message whose removal was cut short is handed out again.
   */
  async take(count: number, send: (message: Message) => Promise<void>): Promise<number> {
    let taken = 0;
    while (taken < count) {
      const entries = await this.#store.list<JsonValue<Message>>(
        { prefix: [MESSAGES] },
        Math.min(count - taken, TAKE_PAGE),
      );
      if (entries.length === 0) break;
      for (const { key, value } of entries) {
        await send(decodeJson(value));
        await retried(() => this.#store.commit("take", (operation) => operation.delete(key)));
      }
      taken += entries.length;
    }
    return taken;
  }
}
