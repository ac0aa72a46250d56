import type { ApiKey } from "../access/api_key.ts";
import { type IssuedKey, KeyStore } from "../access/key_store.ts";
import type { Environment } from "../access/secret.ts";
import { roll } from "../access/usage.ts";
import type { Store } from "../kv/store.ts";
import {
  type Arguments,
  CommandError,
  parseDuration,
  parsePlan,
  type Terminal,
  UsageError,
} from "./arguments.ts";

/** What `keys --help` prints. */
export const KEYS_HELP = `Usage: deno task keys COMMAND

  create --account NAME --plan free|pro|business
  create --account NAME --plan enterprise --per-minute N --per-day N
                     make a key and print it on standard output, this once
  list               every key: id, account, plan, requests a minute and a day, state
  show ID            one key and its usage, as JSON
  rotate ID [--grace 24h]
                     give the key a new secret, printed like a new key; the old secret ends
                     at once, or after a grace period (s, m, h or d)
  revoke ID          end the key for good
  plan ID PLAN [--per-minute N --per-day N]
                     move the key to another plan
  unban ID           end the key's ban and forget its strikes

ID is the key_... that create and list print. The environment variables KV_PATH and ENVIRONMENT
must be those of the server; the commands work while it runs.`;

/** Carries out `keys COMMAND`. */
export async function runKeys(
  { words, options }: Arguments,
  store: Store,
  environment: Environment,
  { clock, out, err }: Terminal,
): Promise<void> {
  const keys = new KeyStore(store);
  const [command, id, argument] = words;
  switch (command) {
    case "create": {
      expectWords(words, 1);
      const issued = await keys.create(
        { account: parseAccount(options.account), ...parsePlan(options.plan, options), environment },
        clock(),
      );
      return await hand(issued, { out, err });
    }
    case "list":
      expectWords(words, 1);
      for await (const key of keys.list()) await out(tableRow(key, clock()));
      return;
    case "show":
      return await out(
        JSON.stringify(summary(existing(await keys.find(oneId(words)), id), clock()), null, 2),
      );
    case "rotate": {
      const grace = options.grace === undefined ? 0 : parseDuration("--grace", options.grace);
      return await hand(existing(await keys.rotate(oneId(words), environment, grace, clock()), id), {
        out,
        err,
      });
    }
    case "revoke":
      return report("Revoked", existing(await keys.revoke(oneId(words), clock()), id), err);
    case "plan": {
      expectWords(words, 3);
      const { plan, limits } = parsePlan(argument, options);
      return report("Moved", existing(await keys.setPlan(id ?? "", plan, limits), id), err);
    }
    case "unban":
      return report("Unbanned", existing(await keys.unban(oneId(words)), id), err);
    default:
      throw new UsageError(
        command === undefined ? "A command is missing" : `There is no command keys ${command}`,
      );
  }
}

function expectWords(words: readonly string[], count: number): void {
  if (words.length < count) {
    throw new UsageError(`keys ${words[0]} needs ${count === 3 ? "an ID and a PLAN" : "an ID"}`);
  }
  if (words.length > count) throw new UsageError(`keys ${words[0]} takes no argument '${words[count]}'`);
}

function oneId(words: readonly string[]): string {
  expectWords(words, 2);
  return words[1] ?? "";
}

function parseAccount(account: string | undefined): string {
  if (account === undefined || !/^[^\p{Cc}]{1,100}$/u.test(account)) {
    throw new UsageError("--account NAME is required: 1 to 100 printable characters");
  }
  return account;
}

function existing<Found>(found: Found | undefined, id: string | undefined): Found {
  if (found === undefined) throw new CommandError(`There is no key with the id ${id}`);
  return found;
}

async function hand({ key, secret }: IssuedKey, { out, err }: Pick<Terminal, "out" | "err">): Promise<void> {
  report("Made", key, err);
  err("This is the only time that the key is shown:");
  await out(secret);
}

function report(what: string, { id, account, plan, limits }: ApiKey, err: Terminal["err"]): void {
  err(
    `${what}: ${id}, account ${account}, plan ${plan}, ${limits.minute} requests a minute, ${limits.day} a day.`,
  );
}

function tableRow(key: ApiKey, now: number): string {
  const { id, account, plan, limits } = key;
  return [id, account, plan, limits.minute, limits.day, state(key, now)].join("\t");
}

function summary(key: ApiKey, now: number): object {
  const { id, account, plan, limits, createdAt, secrets, usage } = key;
  const { minuteUsed, dayUsed, refused, bannedUntil, bans } = roll(usage, now);
  return {
    id,
    account,
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

function state({ revokedAt, usage }: ApiKey, now: number): string {
  if (revokedAt !== undefined) return "revoked";
  return usage.bannedUntil > now ? "banned" : "active";
}
