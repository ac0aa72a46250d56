import { assertEquals, assertMatch } from "@std/assert";
import type { Issued } from "../../src/accounts/account.ts";
import { hashApiKey } from "../../src/accounts/api_key.ts";
import { main } from "../../src/process/cli.ts";
import { encodeJson } from "../../src/engine/row.ts";
import { Store } from "../../src/engine/store.ts";
import { RemoteAccounts } from "../support/accounts.ts";
import { FakeKv, type Network, onFile } from "../support/fake_kv.ts";
import { NOON, VirtualTime } from "../support/time.ts";
import { OF_THINGS, PLANS } from "../support/things.ts";

/** Number of commits at the start of every command, which check that it can write. */
const TRIALS = 2;

/** What goes wrong with the first commit of a command. */
interface Fault {
  /** Whether the commit applies. Its reply is always lost. */
  readonly applies: boolean;
  /** For how long the KV does not respond afterwards, in ms. */
  readonly downFor: number;
}

/** Opens a KV with one account. */
async function openRemote(): Promise<{ kv: FakeKv; existing: Issued }> {
  const kv = new FakeKv();
  const handle = kv.connect({ read: () => Promise.resolve(), commit: (apply) => Promise.resolve(apply()) });
  await handle.atomic().set(["schema"], encodeJson({ version: 1 })).commit();
  const store = new Store(onFile(handle, { clock: () => NOON }));
  const accounts = new RemoteAccounts(store);
  const account = {
    name: "a",
    plan: "free",
    limits: PLANS.limits.free,
    signedUp: false,
  } as const;
  const existing = await accounts.create(account, NOON);
  return { kv, existing };
}

/** Runs a command on the KV over a network with a fault. */
async function run(kv: FakeKv, { applies, downFor }: Fault, command: string, names: readonly string[] = []) {
  using time = new VirtualTime();
  let [commits, downUntil] = [0, 0];
  const isDown = () => performance.now() < downUntil;
  const fail = () => Promise.reject(new TypeError("connection reset"));
  const network: Network = {
    read: () => isDown() ? fail() : Promise.resolve(),
    commit: (apply) => {
      if (isDown()) return fail();
      if (++commits !== TRIALS + 1) return Promise.resolve(apply());
      if (applies) apply();
      downUntil = performance.now() + downFor;
      return fail();
    },
  };
  // Opening a KV checks that it has no foreign rows.
  const handle = Object.assign(kv.connect(network), { async *list() {} });
  const [out, err]: string[][] = [[], []];
  const { openKv } = Deno;
  Object.defineProperty(Deno, "openKv", { configurable: true, value: () => Promise.resolve(handle) });
  try {
    // Deno Deploy's own KV needs no file.
    const done = main(command.split(" "), (name) => name === "DENO_DEPLOYMENT_ID" ? "7f3k" : undefined, {
      clock: () => NOON,
      input: () => Promise.resolve(names),
      out: (line) => Promise.resolve(void out?.push(line)),
      err: (line) => err?.push(line),
    }, OF_THINGS);
    return { code: await time.until(done, 600_000), out: out ?? [], err: err?.join("\n") ?? "" };
  } finally {
    Object.defineProperty(Deno, "openKv", { configurable: true, value: openKv });
  }
}

function isValid(kv: FakeKv, apiKey: string): boolean {
  return kv.value("api_keys", hashApiKey(apiKey)) !== undefined;
}

function accountsIn(kv: FakeKv): number {
  return [...kv.rows.keys()].filter((key) => key.startsWith('["accounts"')).length;
}

/** Less than a command waits in all, in ms. */
const AWHILE = 20_000;

Deno.test.each<[command: string, fault: Fault, exit: number]>([
  ["create", { applies: true, downFor: 0 }, 0],
  ["create", { applies: false, downFor: 0 }, 0],
  ["create", { applies: true, downFor: AWHILE }, 0],
  ["create", { applies: false, downFor: AWHILE }, 0],
  ["create", { applies: true, downFor: Infinity }, 1],
  ["rotate", { applies: true, downFor: 0 }, 0],
  ["rotate", { applies: false, downFor: 0 }, 0],
  ["rotate", { applies: true, downFor: AWHILE }, 1],
])("accounts %s when a commit's reply is lost: %j, exits with %i", async (command, fault, exit) => {
  const { kv, existing: { account } } = await openRemote();

  const { code, out, err } = await run(
    kv,
    fault,
    `accounts ${command} ${command === "create" ? "a" : account.id}`,
  );

  const done = /^(?:Created|Rotated): acct_.*\nThe key is shown only once, on standard output\.$/m;
  assertEquals(code, exit);
  assertMatch(err, exit === 0 ? done : /^The KV does not respond: [^.]+\.$/m);
  assertEquals(out.map((key) => isValid(kv, key)), exit === 0 ? [true] : []);
  assertEquals(accountsIn(kv), command === "create" ? 2 : 1);
});

Deno.test.each<[Fault, exit: number]>([
  [{ applies: true, downFor: 0 }, 0],
  [{ applies: false, downFor: 0 }, 0],
  [{ applies: true, downFor: AWHILE }, 0],
  [{ applies: false, downFor: AWHILE }, 0],
  [{ applies: true, downFor: Infinity }, 1],
])("accounts create - prints a valid key of each account when a reply is lost: %j", async (fault, exit) => {
  const { kv } = await openRemote();
  const names = Array.from({ length: 60 }, (_, number) => `Name ${number}`);

  const { code, out, err } = await run(kv, fault, "accounts create -", names);

  const printed = out.map((line) => line.split("\t"));
  assertEquals(code, exit);
  assertEquals(printed.map(([name]) => name).sort(), exit === 0 ? names.sort() : []);
  assertEquals(printed.filter(([, key = ""]) => !isValid(kv, key)), []);
  if (exit === 0) return assertEquals(accountsIn(kv), 61);
  assertEquals(err.split("\n").slice(-3, -1), [
    "Created 0 of 60 accounts.",
    "More accounts, up to Name 49, may exist without a printed key: see accounts list.",
  ]);
});
