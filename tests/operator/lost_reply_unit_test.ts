import { assertEquals, assertMatch } from "@std/assert";
import { type Issued, PLAN_LIMITS } from "../../src/accounts/account.ts";
import { hashApiKey } from "../../src/accounts/api_key.ts";
import { main } from "../../src/process/cli.ts";
import { Connection } from "../../src/engine/connection.ts";
import { encodeJson } from "../../src/engine/row.ts";
import { Store } from "../../src/engine/store.ts";
import { RemoteAccounts } from "../support/accounts.ts";
import { FakeKv, type Network } from "../support/fake_kv.ts";
import { NOON, VirtualTime } from "../support/time.ts";

/** Number of commits at the start of every command, which check that it can write. */
const TRIALS = 2;

/** What goes wrong with the first commit of a command. */
interface Fault {
  /** Whether the commit applies. Its reply is always lost. */
  readonly applies: boolean;
  /** Whether the KV responds again afterwards. */
  readonly recovers: boolean;
}

/** Opens a KV with one account. */
async function openRemote(): Promise<{ kv: FakeKv; existing: Issued }> {
  const kv = new FakeKv();
  const handle = kv.connect({ read: () => Promise.resolve(), commit: (apply) => Promise.resolve(apply()) });
  await handle.atomic().set(["schema"], encodeJson({ version: 1 })).commit();
  const store = new Store(new Connection([handle]), { maxChecks: 10, clock: () => NOON });
  const accounts = new RemoteAccounts(store);
  const account = {
    name: "a",
    plan: "free",
    limits: PLAN_LIMITS.free,
    signedUp: false,
  } as const;
  const existing = await accounts.create(account, NOON);
  return { kv, existing };
}

/** Runs a command on the KV over a network with a fault. */
async function run(kv: FakeKv, { applies, recovers }: Fault, command: string, names: readonly string[] = []) {
  using time = new VirtualTime();
  let [commits, isDown] = [0, false];
  const fail = () => Promise.reject(new TypeError("connection reset"));
  const network: Network = {
    read: () => isDown ? fail() : Promise.resolve(),
    commit: (apply) => {
      if (isDown) return fail();
      if (++commits !== TRIALS + 1) return Promise.resolve(apply());
      if (applies) apply();
      isDown = !recovers;
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
    });
    return { code: await time.until(done, 60_000), out: out ?? [], err: err?.join("\n") ?? "" };
  } finally {
    Object.defineProperty(Deno, "openKv", { configurable: true, value: openKv });
  }
}

function isValid(kv: FakeKv, apiKey: string): boolean {
  return kv.value("api_keys", hashApiKey(apiKey)) !== undefined;
}

const DONE = /^(?:Created|Rotated): acct_/;
const IN_DOUBT = /^The KV did not respond, so this key of acct_\w+ may not be valid/;

Deno.test.each<[string, string, Fault, number, RegExp]>([
  ["create", "prints the new key", { applies: true, recovers: true }, 0, DONE],
  ["rotate", "prints the new key", { applies: true, recovers: true }, 0, DONE],
  ["create", "repeats the commit", { applies: false, recovers: true }, 0, DONE],
  ["rotate", "repeats the commit", { applies: false, recovers: true }, 0, DONE],
  ["create", "shows a possibly valid key", { applies: true, recovers: false }, 1, IN_DOUBT],
  ["rotate", "shows a possibly valid key", { applies: true, recovers: false }, 1, IN_DOUBT],
  ["create", "shows a possibly valid key", { applies: false, recovers: false }, 1, IN_DOUBT],
  ["rotate", "shows a possibly valid key", { applies: false, recovers: false }, 1, IN_DOUBT],
])("accounts %s %s when a commit's reply is lost: %j", async (command, _, fault, exit, message) => {
  const { kv, existing: { account } } = await openRemote();

  const { code, out, err } = await run(
    kv,
    fault,
    `accounts ${command} ${command === "create" ? "a" : account.id}`,
  );

  assertEquals(code, exit);
  assertMatch(err, message);
  assertEquals(out.length, 1);
  for (const key of out) {
    assertMatch(key, /^as_test_[0-9A-Za-z]{38}$/);
    assertEquals(isValid(kv, key), fault.applies || message === DONE);
  }
  const accounts = [...kv.rows.keys()].filter((key) => key.startsWith('["accounts"')).length;
  assertEquals(accounts, command === "create" && (fault.applies || message === DONE) ? 2 : 1);
});

Deno.test.each<[string, Fault]>([
  ["a commit is lost", { applies: false, recovers: true }],
  ["a reply is lost", { applies: true, recovers: true }],
  ["a reply is lost and KV stays down", { applies: true, recovers: false }],
])(
  "accounts create - prints every valid key, and only those if KV recovers, when %s",
  async (_, fault) => {
    const { kv, existing } = await openRemote();
    const names = Array.from({ length: 20 }, (_, number) => `Name ${number}`);

    const { code, out } = await run(kv, fault, "accounts create -", names);

    const valid = [...kv.rows.keys()].filter((key) =>
      key.startsWith('["api_keys"') && !key.includes(existing.account.keyHash)
    );
    const printed = out.map((line) => line.replace(/^.*\t/, ""));
    const shown = new Set(printed.map((key) => JSON.stringify(["api_keys", hashApiKey(key)])));
    assertEquals(valid.filter((key) => !shown.has(key)), []);
    if (fault.recovers) assertEquals(printed.filter((key) => !isValid(kv, key)), []);
    assertEquals(code, valid.length === names.length && fault.recovers ? 0 : 1);
  },
);
