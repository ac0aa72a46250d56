import type { MessageStore } from "../messages/message_store.ts";
import { type Arguments, expect, parseCount } from "./arguments.ts";
import { printableJson } from "./table.ts";
import { type Command, type Terminal, UsageError } from "./terminal.ts";

/** What `messages --help` prints. */
export const MESSAGES_HELP = `Usage: deno task messages COMMAND

  take N             print the N oldest messages, a JSON object a line, and remove each once it
                     is printed; if that is cut short, it is printed again the next time.
                     Two at a time may print the same messages
  remove -           remove the messages whose ids are on standard input`;

/**
 * The work that `messages COMMAND` stands for.
 *
 * @throws {UsageError} when the command is not understood.
 */
export function messagesCommand(args: Arguments, terminal: Terminal): Command {
  const command = `messages ${args.words[1] ?? ""}`;
  switch (command) {
    case "messages take": {
      const [text = ""] = expect(args, command, ["a number N"]);
      const count = parseCount("N", text);
      return ({ messages }) => take(messages, count, terminal);
    }
    case "messages remove": {
      const [text = ""] = expect(args, command, ["- and ids on standard input"]);
      if (text !== "-") throw new UsageError("messages remove takes ids on standard input only: -");
      return async ({ messages }) => {
        const ids = (await Array.fromAsync(terminal.input())).filter((id) => id !== "");
        await messages.remove(ids);
        terminal.err(`Removed what waited of ${ids.length} ${ids.length === 1 ? "message" : "messages"}.`);
      };
    }
    default:
      throw new UsageError(args.words.length < 2 ? "A command is missing" : `There is no command ${command}`);
  }
}

/** Removes each message once it is printed; or not at all, where what is printed may still be lost. */
async function take(messages: MessageStore, count: number, terminal: Terminal): Promise<void> {
  const { out, err, isRemote } = terminal;
  let taken = 0;
  for await (const message of messages.list(count)) {
    await out(printableJson(JSON.stringify(message)));
    if (!isRemote) await messages.remove([message.id]);
    taken++;
  }
  if (!isRemote) err(`Took ${taken} ${taken === 1 ? "message" : "messages"}.`);
}
