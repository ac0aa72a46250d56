import { MessageStore } from "../messages/message_store.ts";
import { type Arguments, expectOptions, parseCount } from "./arguments.ts";
import { type Command, type Terminal, UsageError } from "./command.ts";

/** What `messages --help` prints. */
export const MESSAGES_HELP = `Usage: deno task messages take N

  take N             print the N oldest messages, a JSON object a line, and remove each once it
                     is printed; if that is cut short, it is printed again the next time.
                     Two at a time may print the same messages

The environment variable KV_PATH must be that of the server; the command works while it runs.`;

/**
 * The work that `messages COMMAND` stands for.
 *
 * @throws {UsageError} when the command is not understood.
 */
export function messagesCommand({ words, options }: Arguments, { out, err }: Terminal): Command {
  const [command, text, ...more] = words;
  expectOptions(options, "messages take", []);
  if (command !== "take" || more.length > 0) throw new UsageError("The command is messages take N");
  const count = parseCount("N", text);
  return async (store) => {
    const taken = await new MessageStore(store).take(count, (message) => out(JSON.stringify(message)));
    err(`Took ${taken} ${taken === 1 ? "message" : "messages"}.`);
  };
}
