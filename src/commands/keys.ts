import type { ApiKey, KeyState } from "../access/api_key.ts";
import { type IssuedKey, KeyStore } from "../access/key_store.ts";
import type { Environment } from "../access/secret.ts";
import { roll } from "../access/usage.ts";
import { type Arguments, expectOptions, parseDuration, parsePlan } from "./arguments.ts";
import { type Command, CommandError, type Terminal, UsageError } from "./command.ts";

const OPTIONS: ReadonlyMap<string, readonly string[]> = new Map([
  ["create", ["account", "plan", "per-minute", "per-day"]],
  ["rotate", ["grace"]],
  ["plan", ["per-minute", "per-day"]],
]);

/** What `keys --help` prints. */
export const KEYS_HELP = `Usage: deno task keys COMMAND

  create --account NAME --plan free|pro|business
  create --account NAME --plan enterprise --per-minute N --per-day N
                     make a key and print it on standard output, this once
  list               every key: id, account, environment, plan, requests a minute and a day, state
  show ID            one key and its usage, as JSON
  rotate ID [--grace 24h]
                     give the key a new secret, printed like a new key; the old secret ends
                     at once, or after a grace period (s, m, h or d); at most nine old ones
                     stay valid
  revoke ID          end the key for good
  plan ID PLAN [--per-minute N --per-day N]
                     move the key to another plan
  unban ID           end the key's ban and forget its strikes

ID is the key_... that create and list print, not the key itself. The environment variable KV_PATH
must be that of the server, and ENVIRONMENT when a key is made; the commands work while it runs.`;

/**
 * The work that `keys COMMAND` stands for.
 *
 * @throws {UsageError} when the command is not understood.
 */
export function keysCommand(
  { words, options }: Arguments,
  environment: Environment,
  { clock, out, err }: Terminal,
): Command {
  const [command = ""] = words;
  expectOptions(options, `keys ${command}`, OPTIONS.get(command) ?? []);
  switch (command) {
    case "create": {
      expectWords(words, 1);
      const newKey = {
        account: parseAccount(options.account),
        ...parsePlan(options.plan, options),
        environment,
      };
      return async (store) =>
        await hand("Made", await new KeyStore(store).create(newKey, clock()), { out, err });
    }
    case "list":
      expectWords(words, 1);
      return async (store) => {
        for await (const key of new KeyStore(store).list()) await out(tableRow(key, clock()));
      };
    case "show": {
      const id = parseId(words);
      return async (store) => {
        const key = await new KeyStore(store).find(id);
        if (key === undefined) throw new CommandError(`There is no key with the id ${id}`);
        await out(JSON.stringify(summary(key, clock()), null, 2));
      };
    }
    case "rotate": {
      const id = parseId(words);
      const grace = options.grace === undefined ? 0 : parseDuration("--grace", options.grace);
      return async (store) => {
        const issued = await new KeyStore(store).rotate(id, grace, clock());
        await hand("Rotated", valid(issued, id), { out, err });
      };
    }
    case "revoke": {
      const id = parseId(words);
      return async (store) =>
        report("Revoked", valid(await new KeyStore(store).revoke(id, clock()), id), err);
    }
    case "plan": {
      const id = parseId(words, "a PLAN");
      const { plan, limits } = parsePlan(words[2], options);
      return async (store) =>
        report("Moved", valid(await new KeyStore(store).setPlan(id, plan, limits), id), err);
    }
    case "unban": {
      const id = parseId(words);
      return async (store) => report("Unbanned", valid(await new KeyStore(store).unban(id), id), err);
    }
    default:
      throw new UsageError(
        command === "" ? "A command is missing" : `There is no command keys ${command}`,
      );
  }
}

function expectWords(words: readonly string[], count: number): void {
  if (words.length > count) throw new UsageError(`keys ${words[0]} takes no argument '${words[count]}'`);
}

/** The ID of a command that takes one, and then what `more` names. */
function parseId(words: readonly string[], ...more: readonly string[]): string {
  const [command, id] = words;
  const expected = ["an ID", ...more];
  if (id?.startsWith("as_")) {
    throw new UsageError(`keys ${command} needs the key's ID, key_..., not the key itself`);
  }
  if (id === undefined || words.length <= expected.length) {
    throw new UsageError(`keys ${command} needs ${expected.join(" and ")}`);
  }
  expectWords(words, expected.length + 1);
  return id;
}

function parseAccount(account: string | undefined): string {
  if (account === undefined || !/^[^\p{Cc}]{1,100}$/u.test(account)) {
    throw new UsageError("--account NAME is required: 1 to 100 printable characters");
  }
  return account;
}

function valid<Found>(found: Found | undefined, id: string): Found {
  if (found === undefined) throw new CommandError(`There is no valid key with the id ${id}`);
  return found;
}

async function hand(
  what: string,
  { key, secret }: IssuedKey,
  { out, err }: Pick<Terminal, "out" | "err">,
): Promise<void> {
  report(what, key, err);
  err("This is the only time that the key is shown:");
  await out(secret);
}

function report(
  what: string,
  { id, account, environment, plan, limits }: ApiKey,
  err: Terminal["err"],
): void {
  err(
    `${what}: ${id}, account ${account}, ${environment}, plan ${plan}, ${limits.minute} requests a minute, ${limits.day} a day.`,
  );
}

function tableRow(key: KeyState, now: number): string {
  const { id, account, environment, plan, limits } = key;
  return [id, account, environment, plan, limits.minute, limits.day, state(key, now)].join("\t");
}

function summary(key: KeyState, now: number): object {
  const { id, account, environment, plan, limits, createdAt, secrets, usage } = key;
  const { minuteUsed, dayUsed, refused, bannedUntil, bans } = roll(usage, now);
  return {
    id,
    account,
    environment,
    plan,
    state: state(key, now),
    limits: { perMinute: limits.minute, perDay: limits.day },
    usage: { minute: minuteUsed, day: dayUsed, refusedThisMinute: refused },
    bannedUntil: bannedUntil > now ? new Date(bannedUntil).toISOString() : null,
    bans,
    createdAt: new Date(createdAt).toISOString(),
    retiringSecrets: secrets.filter(({ expiresAt }) => expiresAt !== undefined && expiresAt > now).length,
  };
}

function state({ revokedAt, usage }: KeyState, now: number): string {
  if (revokedAt !== undefined) return "revoked";
  return usage.bannedUntil > now ? "banned" : "active";
}
