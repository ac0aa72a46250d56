import { expect, type Group, parseCount } from "./arguments.ts";
import { printableJson } from "./table.ts";
import { type Stores, type Terminal, UsageError } from "./terminal.ts";

const HELP = `Usage: deno task messages COMMAND

  take N             print the N oldest messages, a JSON object a line, and remove each once it
                     is printed; if that is cut short, it is printed again the next time.
                     Two at a time may print the same messages
  remove -           remove the messages whose ids are on standard input`;

const REMOVED_AT_ONCE = 500;

/** What operators do with messages. */
export const MESSAGES: Group = {
  help: HELP,
  loggable: /^\d{1,16}$/,
  commands: {
    take(args, terminal) {
      const [text = ""] = expect(args, ["a number N"]);
      const count = parseCount("N", text);
      return (stores) => take(stores, count, terminal);
    },
    remove(args, { input, err }) {
      const [text = ""] = expect(args, ["- and ids on standard input"]);
      if (text !== "-") throw new UsageError("messages remove takes ids on standard input only: -");
      return async ({ messages, transact }) => {
        const ids = (await input()).filter((id) => id !== "");
        for (let done = 0; done < ids.length; done += REMOVED_AT_ONCE) {
          if (done > 0) err(`Went through ${done} of ${ids.length}.`);
          const some = await messages.find([...new Set(ids.slice(done, done + REMOVED_AT_ONCE))]);
          await Promise.all(some.map((message) => transact(messages.removing(message))));
        }
        err(`Removed what waited of ${ids.length} ${ids.length === 1 ? "message" : "messages"}.`);
      };
    },
  },
};

/** Removes each message once it is printed; or not at all, where what is printed may still be lost. */
async function take({ messages, transact }: Stores, count: number, terminal: Terminal): Promise<void> {
  const { out, err, isRemote } = terminal;
  let taken = 0;
  for await (const message of messages.list(count)) {
    await out(printableJson(JSON.stringify(message)));
    if (!isRemote) await transact(messages.removing(message));
    taken++;
  }
  if (!isRemote) err(`Took ${taken} ${taken === 1 ? "message" : "messages"}.`);
}
