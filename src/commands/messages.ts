import type { Store } from "../kv/store.ts";
import { MessageStore } from "../messages/message_store.ts";
import { type Arguments, parseCount, type Terminal, UsageError } from "./arguments.ts";

/** What `messages --help` prints. */
export const MESSAGES_HELP = `Usage: deno task messages take N

  take N             print the N oldest messages, a JSON object a line, and remove each once it
                     is printed; if that is cut short, it is printed again the next time

The environment variable KV_PATH must be that of the server; the command works while it runs.`;

/** Carries out `messages COMMAND`. */
export async function runMessages({ words }: Arguments, store: Store, { out, err }: Terminal): Promise<void> {
  const [command, count, ...more] = words;
  if (command !== "take" || more.length > 0) throw new UsageError("The command is messages take N");
  const taken = await new MessageStore(store).take(
    parseCount("N", count),
    (message) => out(JSON.stringify(message)),
  );
  err(`Took ${taken} ${taken === 1 ? "message" : "messages"}.`);
}
