import { getBanned } from "../support/client.ts";
import { assertEquals, assertMatch } from "@std/assert";
import { Operator } from "../support/operator.ts";
import { NOON } from "../support/time.ts";

/** Statuses of `count` simultaneous requests with a key. */
async function statusesOf(operator: Operator, key: string, count: number): Promise<number[]> {
  await using service = await operator.serve();
  service.now = operator.now;
  const responses = Array.from({ length: count }, () => service.fetch("GET /v1/things", { key }));
  return (await Promise.all(responses)).map(({ status }) => status);
}

/** Gets the account of a key with this limit per minute banned. */
async function ban(operator: Operator, key: string, limit: number): Promise<void> {
  await using service = await operator.serve();
  service.now = operator.now;
  await getBanned(service, key, limit);
}

Deno.test.each([
  ["", "free", 60, 1_000],
  ["--plan pro", "pro", 300, 10_000],
  ["--plan enterprise --per-minute 7 --per-day 1000000000000", "enterprise", 7, 1_000_000_000_000],
])(
  "accounts create %s prints a key that works at once: plan %s, %i a minute, %i a day",
  async (options, plan, minute, day) => {
    await using operator = await Operator.start();
    await using service = await operator.serve();

    const code = await operator.run(`accounts create ${options}`, "Zoë & co");
    const [key = "", ...more] = operator.out;
    const { headers, status } = await service.fetch("GET /v1/things", { key });

    assertEquals([code, more, status], [0, [], 200]);
    assertMatch(key, /^as_test_[0-9A-Za-z]{38}$/);
    const [made, ...rest] = operator.err;
    const message = `Zoë & co, staging, plan ${plan}, ${minute} requests a minute, ${day} a day.`;
    assertEquals(made?.replace(/acct_\w{16}/, "ID"), `Created: ID, ${message}`);
    assertEquals(rest, ["The key is shown only once, on standard output."]);
    assertEquals(headers.get("ratelimit-policy"), `"minute";q=${minute};w=60, "day";q=${day};w=86400`);
  },
);

Deno.test("accounts create warns if there are accounts, but none of its environment", async () => {
  await using operator = await Operator.start();
  const warnings = () =>
    operator.err.filter((line) => line.startsWith("Warning: none of the first 100 accounts"));

  operator.input = ["Zoë"];
  const found: number[] = [];
  for (const environment of ["staging", "production", "production", "staging"]) {
    operator.environment.set("ENVIRONMENT", environment);
    assertEquals(await operator.run(`accounts create ${found.length === 1 ? "-" : "me"}`), 0);
    found.push(warnings().length);
  }

  assertEquals(found, [0, 1, 0, 0]);
});

Deno.test("accounts create rotates no key if an account has the given reference", async () => {
  await using operator = await Operator.start();
  const { id, key } = await operator.createAccount("--reference customer-7");

  const code = await operator.run("accounts create again --reference customer-7");

  const advice = `To give it a new key: accounts rotate ${id}.`;
  assertEquals([code, operator.out, operator.err], [1, [], [`Account ${id} has this reference. ${advice}`]]);
  assertEquals(await statusesOf(operator, key, 1), [200]);
});

Deno.test("accounts create - creates an account for each name on standard input, in order", async () => {
  await using operator = await Operator.start();
  operator.input = Array.from({ length: 502 }, (_, number) => number === 7 ? "" : `Name ${number}`);

  const code = await operator.run("accounts create - --plan pro");

  assertEquals(code, 0);
  assertEquals(operator.err, ["Created 500 of 501 accounts.", "Created 501 of 501 accounts."]);
  const made = operator.out.map((line) => line.split("\t"));
  assertEquals(made.map(([name]) => name), operator.input.filter((name) => name !== ""));
  for (const [, key = ""] of made) assertMatch(key, /^as_test_[0-9A-Za-z]{38}$/);
  await operator.run("accounts list");
  assertEquals(operator.out.filter((line) => line.endsWith("\tpro\t300\t10000\tactive\t0\t-")).length, 501);
  assertEquals(await statusesOf(operator, made.at(-1)?.[1] ?? "", 1), [200]);
  operator.input = [""];
  const none = await operator.run("accounts create -");
  assertEquals([none, operator.out, operator.err], [0, [], ["Created 0 of 0 accounts."]]);
});

Deno.test.each(["Tab\there", "x".repeat(101), " "])(
  "accounts create - creates nothing if a name is %j",
  async (name) => {
    await using operator = await Operator.start();
    operator.input = ["Zoë", "x".repeat(100), name];

    const code = await operator.run("accounts create -");

    assertEquals(code, 1);
    assertEquals([operator.out, operator.err], [[], [
      "Name 3 must have 1 to 100 printable characters, not only whitespace.",
    ]]);
    await operator.run("accounts list");
    assertEquals(operator.out, []);
  },
);

Deno.test("accounts list and show print accounts and their usage, but no key", async () => {
  await using operator = await Operator.start();
  const [active, banned, closed] = [
    await operator.createAccount(),
    await operator.createAccount("--plan enterprise --per-minute 3 --per-day 9 --reference 7"),
    await operator.createAccount("--plan pro"),
  ];
  await ban(operator, banned.key, 3);
  await operator.run(`accounts close ${closed.id}`);
  const ids = [active.id, banned.id, closed.id].sort();
  const header = "id name environment plan perMinute perDay state usedToday lastUsed".split(" ");
  const rows = new Map([
    [active.id, ["tests", "staging", "free", 60, 1_000, "active", 0, null]],
    [banned.id, ["tests", "staging", "enterprise", 3, 9, "banned", 3, "2027-01-15"]],
    [closed.id, ["tests", "staging", "pro", 300, 10_000, "closed", 0, null]],
  ]);

  const codes = [await operator.run("accounts list")];
  const [list, heading] = [operator.out, operator.err];
  codes.push(await operator.run("accounts list --json"));
  const json = operator.out.map((line) => JSON.parse(line));
  codes.push(await operator.run(`accounts show ${banned.id}`));

  assertEquals(codes, [0, 0, 0]);
  assertEquals(heading, [header.join("\t")]);
  assertEquals(list, ids.map((id) => [id, ...rows.get(id) ?? []].map((cell) => cell ?? "-").join("\t")));
  assertEquals(
    json,
    ids.map((id) => Object.fromEntries([id, ...rows.get(id) ?? []].map((cell, n) => [header[n], cell]))),
  );
  const shown = {
    id: banned.id,
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
  assertEquals(JSON.parse(operator.out.join("\n")), shown);

  operator.now += 300_000;
  await operator.run(`accounts show ${banned.id}`);
  const later = JSON.parse(operator.out.join("\n"));
  assertEquals([later.state, later.bannedUntil, later.bans, later.usage.minute.used, later.usage.day.used], [
    "active",
    null,
    1,
    0,
    3,
  ]);
  await operator.run(`accounts show ${closed.id}`);
  assertEquals(JSON.parse(operator.out.join("\n")).closedAt, "2027-01-15T12:00:00.000Z");

  operator.now += 86_400_000;
  await operator.run("accounts list");
  const nextDay = operator.out.find((line) => line.startsWith(banned.id));
  assertEquals(nextDay, `${banned.id}\ttests\tstaging\tenterprise\t3\t9\tactive\t0\t2027-01-15`);
});

Deno.test("accounts COMMAND replaces control characters in names, or escapes them in JSON", async () => {
  await using operator = await Operator.start();
  await using service = await operator.serve();
  const name = "a\u001b[2J\nacct_forged\tboss\u007f\u009b2J\u202e\u061c";
  const { id } = await operator.createAccount();
  await service.accounts.change(id, { name });
  const shown = "a\ufffd[2J\ufffdacct_forged\ufffdboss\ufffd\ufffd2J\ufffd\ufffd";

  for (
    const [command, line] of [
      ["list", `${id}\t${shown}\tstaging\tfree\t60\t1000\tactive\t0\t-`],
      [`plan ${id} pro`, `Moved: ${id}, ${shown}, staging, plan pro, 300 requests a minute, 10000 a day.`],
    ] as const
  ) {
    assertEquals(await operator.run(`accounts ${command}`), 0);
    assertEquals(command === "list" ? operator.out : operator.err, [line]);
  }
  await operator.run(`accounts rotate ${id}`);
  assertEquals(operator.err[0]?.startsWith(`Rotated: ${id}, ${shown}, staging`), true);
  for (const command of ["list --json", `show ${id}`]) {
    assertEquals(await operator.run(`accounts ${command}`), 0);
    const text = operator.out.join("");
    assertEquals(/(?!\n)[\p{Cc}\p{Bidi_Control}]/u.test(text), false);
    assertEquals(JSON.parse(text).name, name);
  }
});

Deno.test("accounts create uses ENVIRONMENT for the key, and accounts rotate keeps the key's own", async () => {
  await using operator = await Operator.start();
  operator.environment.set("ENVIRONMENT", "production");
  const { id, key } = await operator.createAccount();
  operator.environment.delete("ENVIRONMENT");

  await operator.run(`accounts rotate ${id}`);

  for (const one of [key, operator.out.join("\n")]) assertMatch(one, /^as_live_\w{38}$/);
});

Deno.test("accounts rotate prints a new key, and the previous one ends after --grace", async () => {
  await using operator = await Operator.start();
  const { id, key } = await operator.createAccount();

  const code = await operator.run(`accounts rotate ${id} --grace 90s`);

  const [renewed = "", ...more] = operator.out;
  assertEquals([code, more], [0, []]);
  assertMatch(operator.err.join("\n"), new RegExp(`^Rotated: ${id}, tests, staging, plan free, `));
  for (const [ms, status] of [[89_999, 200], [90_000, 401]] as const) {
    operator.now = NOON + ms;
    assertEquals(await statusesOf(operator, key, 1), [status]);
  }
  assertEquals(await statusesOf(operator, renewed, 1), [200]);
});

Deno.test("accounts plan, suspend, resume, unban, reset and close print the account, and act at once", async () => {
  await using operator = await Operator.start();
  await using service = await operator.serve();
  const { id, key } = await operator.createAccount();
  const seen = async () => {
    const { status, headers } = await service.fetch("GET /v1/things", { key });
    return `${status} ${headers.get("ratelimit-policy")?.match(/q=\d+/g)?.join()}`;
  };
  const [pro, own] = [
    "plan pro, 300 requests a minute, 10000 a day.",
    "plan enterprise, 9 requests a minute, 99 a day.",
  ];

  for (
    const [command, done, account, expected] of [
      ["plan ID pro", "Moved", pro, "200 q=300,q=10000"],
      ["plan ID enterprise --per-minute 9 --per-day 99", "Moved", own, "200 q=9,q=99"],
      ["suspend ID", "Suspended", own, "403 q=60"],
      ["suspend ID", "Suspended", own, "403 q=60"],
      ["unban ID", "Unbanned", own, "403 q=60"],
      ["resume ID", "Resumed", own, "200 q=9,q=99"],
      ["resume ID", "Resumed", own, "200 q=9,q=99"],
      ["reset ID", "Reset", own, "200 q=9,q=99"],
      ["close ID", "Closed", own, "401 q=60"],
    ] as const
  ) {
    const code = await operator.run(`accounts ${command.replace("ID", id)}`);
    const printed = [`${done}: ${id}, tests, staging, ${account}`];
    assertEquals([command, code, operator.out, operator.err], [command, 0, [], printed]);
    assertEquals([command, await seen()], [command, expected]);
  }
});

Deno.test("accounts COMMAND exits with 1 if the account does not exist or is closed", async () => {
  await using operator = await Operator.start();
  const { id } = await operator.createAccount();
  await operator.run(`accounts close ${id}`);

  for (const command of ["rotate", "plan", "suspend", "resume", "unban", "reset", "close"]) {
    for (const other of ["acct_0000", id]) {
      const code = await operator.run(`accounts ${command} ${other} ${command === "plan" ? "pro" : ""}`);

      const message = `There is no open account with the id ${other}.`;
      assertEquals([code, operator.out, operator.err], [1, [], [message]], command);
    }
  }
  assertEquals(await operator.run("accounts show acct_0000"), 1);
  assertEquals(operator.err, ["There is no account with the id acct_0000."]);
});

Deno.test.each<[string, string | undefined, RegExp]>([
  ["accounts create", "Solo", /^The key could not be printed: replace it with accounts rotate ID\.$/],
  [
    "accounts create -",
    undefined,
    /^More accounts, up to Hammer, may exist without a printed key: see accounts list\.$/,
  ],
])(
  "%s reports keys that could not be printed",
  async (command, name, message) => {
    await using operator = await Operator.start();
    operator.input = ["Zoë", "Hammer"];
    operator.reader = () => Promise.reject(new Deno.errors.BrokenPipe("gone"));

    const code = await (name === undefined ? operator.run(command) : operator.run(command, name));

    assertEquals([code, operator.out], [141, []]);
    assertMatch(operator.err.at(-1) ?? "", message);
  },
);

Deno.test("accounts delete removes a closed account and all its rows, except its things", async () => {
  await using operator = await Operator.start();
  const { id, key } = await operator.createAccount();
  const json = { name: "Hammer", weight: 1 };
  const refusals: unknown[] = [];
  const refused = async (account: string) => {
    refusals.push([await operator.run(`accounts delete ${account}`), ...operator.err]);
  };
  {
    await using service = await operator.serve();
    await service.fetch("POST /v1/things", { key, json });
  }

  await refused("acct_0000");
  await refused(id);
  await operator.run(`accounts close ${id}`);
  const code = await operator.run(`accounts delete ${id}`);

  assertEquals(refusals, [
    [1, "There is no account with the id acct_0000."],
    [1, `Account ${id} is open; close it first.`],
  ]);
  assertEquals([code, operator.err], [0, [`Deleted: account ${id}.`]]);
  await using service = await operator.serve();
  const keys = (await Array.fromAsync(service.kv.list({ prefix: [] }))).map(({ key }) => key);
  const keysOf = (...tables: Deno.KvKey) => keys.filter(([table = ""]) => tables.includes(table));
  assertEquals(keys.filter((key) => key.join().includes(id)), []);
  assertEquals(keysOf("accounts", "api_keys", "usage"), []);
  assertEquals(keysOf("items"), [["items", "things", 1]]);
  assertEquals(keysOf("items_by").length, 3);
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
  const created = keys.map((key) =>
    service.fetch("POST /v1/things", {
      key,
      json: { name: "Hammer", weight: 7 },
      headers: { "idempotency-key": "a" },
    })
  );
  assertEquals((await Promise.all(created)).map(({ status }) => status).sort(), [201, 201, 401, 401]);
  await service.app.settle();

  const rows = await Array.fromAsync(service.kv.list({ prefix: [] }));

  const textOf = (value: unknown) =>
    value instanceof Uint8Array
      ? new TextDecoder().decode(value)
      : value instanceof Deno.KvU64
      ? `${value}`
      : "?";
  const text = rows.map(({ key, value }) => `${key.join("/")} ${textOf(value)}`);
  assertMatch(text.join("\n"), /^items\/things\/\d+ \{"id"/m);
  assertEquals(text.filter((row) => row.endsWith("?")), []);
  assertEquals(text.filter((row) => keys.some((key) => row.includes(key.slice(8, 40)))), []);
});
