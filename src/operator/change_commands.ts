import { CHANGE_SETTING, MAX_DAYS, OPERATORS_FEED_PATH } from "../changes/change_operations.ts";
import { CHANGES_OFF } from "../changes/change_store.ts";
import type { Client } from "./client.ts";
import { CommandError, type CommandGroup, UsageError } from "./command_line.ts";

const DEFAULT_DAYS = "7";

/** Commands on the feed of changes. */
export const CHANGE_COMMANDS: CommandGroup<Client> = {
  name: "changes",
  commands: {
    on: {
      options: { days: { value: "N" } },
      help: `keep changes of items for N days, by default ${DEFAULT_DAYS}, at most ${MAX_DAYS}, in the feed at
        ${OPERATORS_FEED_PATH}; while this is on, earlier releases that have no feed refuse to run on the store`,
      prepare({ options }, { err }) {
        const days = daysIn(options.get("days")?.at(-1) ?? DEFAULT_DAYS);
        return async (client) => {
          const setting = await client.call("PUT", OPERATORS_FEED_PATH, CHANGE_SETTING, { days });
          err(`Changes are kept for ${setting.days} ${setting.days === 1 ? "day" : "days"}.`);
        };
      },
    },
    off: {
      help: "stop keeping changes; do this before you go back to a release that has no feed",
      prepare: (_, { err }) => async (client) => {
        await client.call("PUT", OPERATORS_FEED_PATH, CHANGE_SETTING, { days: 0 });
        err("Changes are not kept any more.");
      },
    },
    show: {
      help: "print for how many days changes are kept: 0 if the feed is off, or was switched on just now",
      prepare: (_, { out }) => async (client) => {
        const setting = await client.call("GET", OPERATORS_FEED_PATH, CHANGE_SETTING).catch(settingIfOff);
        await out(`${setting.days}`);
      },
    },
  },
};

/** The setting if an error says that the feed is off. Throws other errors. */
function settingIfOff(error: unknown): { readonly days: number } {
  if (error instanceof CommandError && error.code === CHANGES_OFF.code) return { days: 0 };
  throw error;
}

/** Parses the value of `--days`. @throws {UsageError} */
function daysIn(value: string): number {
  const days = Number(value);
  if (/^\d+$/.test(value) && days >= 1 && days <= MAX_DAYS) return days;
  throw new UsageError(`--days must be an integer from 1 to ${MAX_DAYS}`);
}
