import type { Client } from "../operator/client.ts";
import { type CommandGroup, type CommandIo, parseCount, UsageError } from "../operator/command_line.ts";
import { printableJson } from "../operator/table.ts";
import { MAX_MESSAGES, MAX_REMOVED, MESSAGES_PATH, QUEUE } from "./operator_message_operations.ts";

/** Commands on messages. */
export const MESSAGE_COMMANDS: CommandGroup<Client> = {
  name: "messages",
  commands: {
    take: {
      words: ["N"],
      help:
        `print the N oldest messages, one JSON object per line, and remove them once they are printed; a message
        that was printed but not removed is printed again next time. If two commands run at the same time, they may
        print the same messages`,
      prepare({ words }, io) {
        const count = parseCount("N", words[0]);
        return (client) => take(count, client, io);
      },
    },
    remove: {
      words: ["-"],
      help: "remove the messages whose ids are read from standard input",
      prepare({ words }, { input, err }) {
        if (words[0] !== "-") throw new UsageError("messages remove reads ids from standard input: write -");
        return async (client) => {
          const ids = (await input()).filter((line) => line !== "");
          for (let done = 0; done < ids.length; done += MAX_REMOVED) {
            if (done > 0) err(`Processed ${done} of ${ids.length}.`);
            await remove(ids.slice(done, done + MAX_REMOVED), client);
          }
          err(`Of ${messagesIn(ids.length)}, removed those still waiting.`);
        };
      },
    },
  },
};

/** Prints messages, some at a time, and removes them once they are printed. */
async function take(count: number, client: Client, { out, err }: CommandIo): Promise<void> {
  let taken = 0;
  for (let more = true; more && taken < count;) {
    const limit = Math.min(count - taken, MAX_MESSAGES);
    const messages = await client.call("GET", `${MESSAGES_PATH}?limit=${limit}`, QUEUE);
    const printed: string[] = [];
    try {
      for (const message of messages) {
        await out(printableJson(JSON.stringify(message)));
        printed.push(message.id);
      }
    } finally {
      if (printed.length > 0) await removePrinted(printed, client, err);
    }
    taken += printed.length;
    more = messages.length === limit;
  }
  err(`Took ${messagesIn(taken)}.`);
}

/** Removes messages that were printed. If that fails, says that they will be printed again. */
async function removePrinted(ids: readonly string[], client: Client, err: CommandIo["err"]): Promise<void> {
  try {
    await remove(ids, client);
  } catch (error) {
    err("The last messages that were printed could not be removed, so they will be printed again next time.");
    throw error;
  }
}

async function remove(ids: readonly string[], client: Client): Promise<void> {
  await client.send("POST", `${MESSAGES_PATH}/remove`, { ids });
}

function messagesIn(count: number): string {
  return `${count} ${count === 1 ? "message" : "messages"}`;
}
