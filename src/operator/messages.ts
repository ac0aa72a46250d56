import { isJsonObject } from "../http/body.ts";
import { type CommandIo, parseCount, type Send, type Stores, type Task, UsageError } from "./command_line.ts";
import { printableJson } from "./table.ts";

/** Number of messages per removal. */
const REMOVED_AT_ONCE = 500;
/** Number of messages per request over HTTP. */
const TAKEN_AT_ONCE = 100;

/** Commands on messages. */
export const MESSAGES: Task = {
  name: "messages",
  loggable: /^\d{1,16}$/,
  commands: {
    take: {
      forms: {
        N: `print the N oldest messages, one JSON object per line, and remove each once it is printed; a
          message that was printed but not removed is printed again next time. If two commands run at the
          same time, they may print the same messages`,
      },
      prepare({ words }, io) {
        const count = parseCount("N", words[0]);
        return (stores) => take(stores, count, io);
      },
      remotely: ({ words }, send, io) => takeRemotely(parseCount("N", words[0]), send, io),
    },
    remove: {
      forms: { "-": "remove the messages whose ids are read from standard input" },
      input: idsIn,
      prepare({ words }, { input, err }) {
        if (words[0] !== "-") throw new UsageError("messages remove reads ids from standard input: write -");
        return async ({ messages, transact }) => {
          const ids = idsIn(await input());
          for (let done = 0; done < ids.length; done += REMOVED_AT_ONCE) {
            if (done > 0) err(`Processed ${done} of ${ids.length}.`);
            const some = await messages.find([...new Set(ids.slice(done, done + REMOVED_AT_ONCE))]);
            await Promise.all(some.map((message) => transact(messages.removing(message))));
          }
          err(`Of ${messagesIn(ids.length)}, removed those still waiting.`);
        };
      },
    },
  },
};

function idsIn(lines: readonly string[]): readonly string[] {
  return lines.filter((line) => line !== "");
}

function messagesIn(count: number): string {
  return `${count} ${count === 1 ? "message" : "messages"}`;
}

/** Prints messages, and removes each once it is printed. Removes none if the output may still be lost. */
async function take(
  { messages, transact }: Stores,
  count: number,
  { out, err, isRemote }: CommandIo,
): Promise<void> {
  let taken = 0;
  for await (const message of messages.list(count)) {
    await out(printableJson(JSON.stringify(message)));
    if (!isRemote) await transact(messages.removing(message));
    taken++;
  }
  if (!isRemote) err(`Took ${messagesIn(taken)}.`);
}

/** Takes messages from a service, and has them removed once they are printed here. */
async function takeRemotely(count: number, send: Send, io: CommandIo): Promise<number> {
  let taken = 0;
  for (let more = true; more && taken < count;) {
    const some = Math.min(count - taken, TAKEN_AT_ONCE);
    const ids: string[] = [];
    let removal = 0;
    const out = async (line: string) => {
      await io.out(line);
      const message: unknown = JSON.parse(line);
      if (isJsonObject(message)) ids.push(`${message.id}`);
    };
    try {
      const exit = await send(["messages", "take", `${some}`], "", { ...io, out });
      if (exit !== 0) return exit;
    } finally {
      if (ids.length > 0) {
        removal = await send(["messages", "remove", "-"], ids.join("\n"), { ...io, err: () => {} });
      }
    }
    if (removal !== 0) {
      io.err(
        "The last messages that were printed could not be removed, so they will be printed again next time.",
      );
      return removal;
    }
    taken += ids.length;
    more = ids.length === some;
  }
  io.err(`Took ${messagesIn(taken)}.`);
  return 0;
}
