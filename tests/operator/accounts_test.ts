import { getBanned } from "../support/client.ts";
import { assertEquals, assertMatch } from "@std/assert";
import { Operator } from "../support/operator.ts";
import { NOON } from "../support/time.ts";

const HOUR = 3_600_000;

/** Statuses or error codes of `count` simultaneous requests with a key. */
async function answersTo(operator: Operator, key: string, count = 1): Promise<(number | string)[]> {
  await using service = await operator.serve();
  service.now = operator.now;
  const responses = Array.from({ length: count }, () => service.fetch("GET /v1/things", { key }));
  const codeOf = async (response: Response) => response.ok ? response.status : (await response.json()).code;
  return await Promise.all((await Promise.all(responses)).map(codeOf));
}

/** Runs a command that prints JSON. */
async function jsonOf(operator: Operator, command: string) {
  await operator.run(command);
  return JSON.parse(operator.out.join("\n") || "{}");
}

Deno.test("accounts create prints a key that works at once, with the limits of the plan", async () => {
  await using operator = await Operator.start();
  for (
    const [options, plan, minute, day] of [
      ["", "free", 60, 1_000],
      ["--plan pro", "pro", 300, 10_000],
      ["--plan business", "business", 1_000, 100_000],
      ["--plan enterprise --per-minute 7 --per-day 1000000000000", "enterprise", 7, 1_000_000_000_000],
    ]
  ) {
    const code = await operator.run(`accounts create ${options}`, "Zoë & co");

    const [key = "", ...more] = operator.out;
    assertEquals([code, more], [0, []]);
    assertMatch(key, /^as_test_[0-9A-Za-z]{38}$/);
    assertEquals(operator.err.map((line) => line.replace(/acct_\w{16}/, "ID")), [
      `Created: ID, Zoë & co, staging, plan ${plan}, ${minute} requests a minute, ${day} a day.`,
      "The key is shown only once, on standard output.",
    ]);
    assertEquals(await answersTo(operator, key), [200]);
  }
});

Deno.test("accounts create rotates no key if an account has the given reference", async () => {
  await using operator = await Operator.start();
  const { id, key } = await operator.createAccount("--reference customer-7");

  const code = await operator.run("accounts create again --reference customer-7");

  const advice = `To give it a new key: accounts rotate ${id}.`;
  assertEquals([code, operator.out, operator.err], [1, [], [`Account ${id} has this reference. ${advice}`]]);
  assertEquals(await answersTo(operator, key), [200]);
});

Deno.test("accounts create - creates an account for each name on standard input, in order", async () => {
  await using operator = await Operator.start();
  operator.input = Array.from({ length: 502 }, (_, number) => number === 7 ? "" : `Name ${number}`);

  const code = await operator.run("accounts create - --plan pro");

  assertEquals([code, operator.err], [0, ["Created 500 of 501 accounts.", "Created 501 of 501 accounts."]]);
  const made = operator.out.map((line) => line.split("\t"));
  assertEquals(made.map(([name]) => name), operator.input.filter((name) => name !== ""));
  await operator.run("accounts list");
  assertEquals(operator.out.filter((line) => line.endsWith("\tpro\t300\t10000\tactive\t0\t-")).length, 501);
  assertEquals(await answersTo(operator, made.at(-1)?.[1] ?? ""), [200]);
  operator.input = [""];
  const none = await operator.run("accounts create -");
  assertEquals([none, operator.out, operator.err], [0, [], ["Created 0 of 0 accounts."]]);
});

Deno.test("accounts create - creates nothing if a name is invalid", async () => {
  await using operator = await Operator.start();
  for (const name of ["Tab\there", "x".repeat(101), "half \ud83d", " ", "a\u200f"]) {
    operator.input = ["Zoë", "x".repeat(100), name];

    const code = await operator.run("accounts create -");

    const message = "Name 3 must have 1 to 100 printable characters, not only whitespace.";
    assertEquals([name, code, operator.out, operator.err], [name, 1, [], [message]]);
  }
  await operator.run("accounts list");
  assertEquals(operator.out, []);
});

Deno.test("accounts list and show print accounts and their usage, but no key", async () => {
  await using operator = await Operator.start();
  const { id, key } = await operator.createAccount(
    "--plan enterprise --per-minute 3 --per-day 9 --reference 7",
  );
  const { id: closed } = await operator.createAccount("--plan pro");
  {
    await using service = await operator.serve();
    await getBanned(service, key, 3);
  }
  await operator.run(`accounts close ${closed}`);
  const header = "id name environment plan perMinute perDay state usedToday lastUsed".split(" ");
  const rows = [
    [id, "tests", "staging", "enterprise", 3, 9, "banned", 3, "2027-01-15"],
    [closed, "tests", "staging", "pro", 300, 10_000, "closed", 0, null],
  ].sort();

  const codes = [await operator.run("accounts list")];
  const [list, heading] = [operator.out, operator.err];
  codes.push(await operator.run("accounts list --json"));

  assertEquals([codes, heading], [[0, 0], [header.join("\t")]]);
  assertEquals(list, rows.map((row) => row.map((cell) => cell ?? "-").join("\t")));
  assertEquals(
    operator.out.map((line) => JSON.parse(line)),
    rows.map((row) => Object.fromEntries(row.map((cell, n) => [header[n], cell]))),
  );
  const shown = {
    id,
    name: "tests",
    reference: "7",
    environment: "staging",
    plan: "enterprise",
    state: "banned",
    limits: { minute: 3, day: 9 },
    usage: {
      minute: { used: 3, start: "2027-01-15T12:00:00.000Z", reset: "2027-01-15T12:01:00.000Z" },
      day: { used: 3, reset: "2027-01-16T00:00:00.000Z" },
      refusedThisMinute: 16,
    },
    bannedUntil: "2027-01-15T12:05:00.000Z",
    bans: 1,
    signedUp: false,
    createdAt: "2027-01-15T12:00:00.000Z",
    suspendedAt: null,
    closedAt: null,
    lastUsed: "2027-01-15",
    previousKeyExpiresAt: null,
  };
  assertEquals(await jsonOf(operator, `accounts show ${id}`), shown);
  assertEquals((await jsonOf(operator, `accounts show ${closed}`)).closedAt, "2027-01-15T12:00:00.000Z");
  operator.now += 300_000;
  const later = await jsonOf(operator, `accounts show ${id}`);
  assertEquals([later.state, later.bannedUntil, later.bans], ["active", null, 1]);
  assertEquals([later.usage.minute.used, later.usage.day.used], [0, 3]);
  operator.now += 24 * HOUR;
  await operator.run("accounts list");
  const nextDay = `${id}\ttests\tstaging\tenterprise\t3\t9\tactive\t0\t2027-01-15`;
  assertEquals(operator.out.includes(nextDay), true);
});

Deno.test("accounts COMMAND replaces control characters in names, or escapes them in JSON", async () => {
  await using operator = await Operator.start();
  await using service = await operator.serve();
  const name = "a\u001b[2J\nacct_forged\tboss\u007f\u009b2J\u202e\u061c";
  const { id } = await operator.createAccount();
  await service.accounts.change(id, { name });
  const shown = "a\ufffd[2J\ufffdacct_forged\ufffdboss\ufffd\ufffd2J\ufffd\ufffd";

  await operator.run("accounts list");
  assertEquals(operator.out, [`${id}\t${shown}\tstaging\tfree\t60\t1000\tactive\t0\t-`]);
  for (const command of [`plan ${id} pro`, `rotate ${id}`]) {
    await operator.run(`accounts ${command}`);
    assertEquals(
      operator.err[0]?.replace(/^\w+: /, "").startsWith(`${id}, ${shown}, staging, plan pro`),
      true,
    );
  }
  for (const command of ["list --json", `show ${id}`]) {
    assertEquals((await jsonOf(operator, `accounts ${command}`)).name, name);
    assertEquals(/(?!\n)[\p{Cc}\p{Bidi_Control}]/u.test(operator.out.join("")), false);
  }
});

Deno.test("accounts rotate prints a new key, and the previous one ends at once or after --grace", async () => {
  await using operator = await Operator.start();
  const { id, key } = await operator.createAccount();
  for (
    const [grace, ms] of [["90s", 90_000], ["30m", HOUR / 2], ["24h", 24 * HOUR], ["7d", 168 * HOUR]] as const
  ) {
    assertEquals(await operator.run(`accounts rotate ${id} --grace ${grace}`), 0);
    const { previousKeyExpiresAt } = await jsonOf(operator, `accounts show ${id}`);
    assertEquals(previousKeyExpiresAt, new Date(NOON + ms).toISOString());
  }

  const code = await operator.run(`accounts rotate ${id}`);

  const [renewed = "", ...more] = operator.out;
  assertEquals([code, more], [0, []]);
  assertMatch(operator.err.join("\n"), new RegExp(`^Rotated: ${id}, tests, staging, plan free, `));
  assertEquals([await answersTo(operator, key), await answersTo(operator, renewed)], [["invalid_api_key"], [
    200,
  ]]);
});

Deno.test("accounts create uses ENVIRONMENT for the key, and accounts rotate keeps the key's own", async () => {
  await using operator = await Operator.start();
  operator.environment.set("ENVIRONMENT", "production");
  const { id, key } = await operator.createAccount();
  operator.environment.delete("ENVIRONMENT");

  await operator.run(`accounts rotate ${id}`);

  for (const one of [key, operator.out.join("\n")]) assertMatch(one, /^as_live_\w{38}$/);
});

Deno.test("accounts COMMAND changes an account at once, and explains why it does not", async () => {
  await using operator = await Operator.start();
  const { id, key } = await operator.createAccount();
  const seen: unknown[] = [];
  const limits = (minute: number, day: number) => `${minute} requests a minute, ${day} a day.`;
  const [free, own] = [`free, ${limits(60, 1_000)}`, `enterprise, ${limits(9, 99)}`];
  const none = `There is no open account with the id ${id}.`;

  for (
    const command of [
      ...["resume ID", "suspend ID", "plan ID enterprise --per-minute 9 --per-day 99", "unban ID"],
      ...["reset ID", "delete ID", "resume ID", "suspend ID", "close ID", "resume ID", "show acct_0000"],
    ]
  ) {
    const exit = await operator.run(`accounts ${command.replace("ID", id)}`);
    assertEquals(operator.out, []);
    const said = operator.err.join().replace(`: ${id}, tests, staging, plan `, " ");
    const { state } = await jsonOf(operator, `accounts show ${id}`);
    seen.push([exit, said, state, ...await answersTo(operator, key)]);
  }

  assertEquals(seen, [
    [0, `Resumed ${free}`, "active", 200],
    [0, `Suspended ${free}`, "suspended", "account_suspended"],
    [0, `Moved ${own}`, "suspended", "account_suspended"],
    [0, `Unbanned ${own}`, "suspended", "account_suspended"],
    [0, `Reset ${own}`, "suspended", "account_suspended"],
    [1, `Account ${id} is open; close it first.`, "suspended", "account_suspended"],
    [0, `Resumed ${own}`, "active", 200],
    [0, `Suspended ${own}`, "suspended", "account_suspended"],
    [0, `Closed ${own}`, "closed", "invalid_api_key"],
    [1, none, "closed", "invalid_api_key"],
    [1, "There is no account with the id acct_0000.", "closed", "invalid_api_key"],
  ]);
});

Deno.test.each<[command: string, names: string[], message: RegExp]>([
  ["accounts create", ["Solo"], /^The key could not be printed: replace it with accounts rotate ID\.$/],
  [
    "accounts create -",
    [],
    /^More accounts, up to Kim, may exist without a printed key: see accounts list\.$/,
  ],
])("%s reports keys that could not be printed", async (command, names, message) => {
  await using operator = await Operator.start();
  operator.input = ["Zoë", "Kim"];
  operator.reader = () => Promise.reject(new Deno.errors.BrokenPipe("gone"));

  const code = await operator.run(command, ...names);

  assertEquals([code, operator.out], [141, []]);
  assertMatch(operator.err.at(-1) ?? "", message);
});

Deno.test("accounts delete removes a closed account and all its rows, except its things", async () => {
  await using operator = await Operator.start();
  const { id, key } = await operator.createAccount();
  await using service = await operator.serve();
  await service.fetch("POST /v1/things", { key, json: { name: "Hammer", weight: 1 } });
  await service.app.settle();
  await operator.run(`accounts close ${id}`);
  operator.now += 60_000;

  const code = await operator.run(`accounts delete ${id}`);

  assertEquals([code, operator.err], [0, [`Deleted: account ${id}.`]]);
  const keys = (await Array.fromAsync(service.kv.list({ prefix: [] }))).map(({ key }) => key);
  const keysOf = (...tables: Deno.KvKey) => keys.filter(([table = ""]) => tables.includes(table));
  assertEquals(keys.filter((key) => key.join().includes(id)), []);
  assertEquals(keysOf("accounts", "api_keys", "usage"), []);
  assertEquals([keysOf("items"), keysOf("items_by").length], [[["items", "things", 1]], 3]);
});

Deno.test("service stores no API key in any row", async () => {
  await using operator = await Operator.start();
  const { id, key } = await operator.createAccount();
  const keys = [key];
  for (const command of [`rotate ${id} --grace 1h`, `rotate ${id}`, `create -`]) {
    operator.input = ["Zoë"];
    await operator.run(`accounts ${command}`);
    keys.push(operator.out.join().replace(/^.*\t/, ""));
  }
  await using service = await operator.serve();
  const json = { name: "Hammer", weight: 7 };
  const created = keys.map((key) =>
    service.fetch("POST /v1/things", { key, json, headers: { "idempotency-key": "a" } })
  );
  assertEquals((await Promise.all(created)).map(({ status }) => status).sort(), [201, 201, 401, 401]);
  await service.app.settle();

  const rows = await Array.fromAsync(service.kv.list({ prefix: [] }));

  const text = rows.map(({ key, value }) =>
    `${key.join("/")} ${value instanceof Uint8Array ? new TextDecoder().decode(value) : value}`
  );
  assertMatch(text.join("\n"), /^items\/things\/\d+ \{"id"/m);
  assertEquals(text.filter((row) => keys.some((key) => row.includes(key.slice(8, 40)))), []);
});
