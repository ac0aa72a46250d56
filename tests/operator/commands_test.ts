// Commands on accounts and items, on a KV file.
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { addThing, call, getBanned, JSON_TYPE } from "../support/client.ts";
import { Operator } from "../support/operator.ts";
import { assertConsistent, storeName } from "../support/stored_rows.ts";
import { NOON } from "../support/time.ts";

const HOUR = 3_600_000;
/** A name that clients cannot send, and how it is printed. */
const WILD = "a\u001b[2J\nacct_forged\tb\u007f\u009b2J\u202e\u061c";
const TAME = "a\ufffd[2J\ufffdacct_forged\ufffdb\ufffd\ufffd2J\ufffd\ufffd";

/** The status of a request with a key, or the code of its error. */
async function answerTo(operator: Operator, key: string): Promise<number | string> {
  await using service = await operator.serve();
  service.now = operator.now;
  const { code, status } = await call(service, key);
  return code || status;
}

/** Runs a command that prints JSON. */
async function jsonOf(operator: Operator, command: string) {
  await operator.run(command);
  return JSON.parse(operator.out.join("\n") || "{}");
}

/** Asserts that a command succeeds and prints these lines. */
async function assertPrints(
  operator: Operator,
  command: string,
  out: string[],
  err: string[],
): Promise<void> {
  assertEquals([command, await operator.run(command), operator.out, operator.err], [command, 0, out, err]);
}

Deno.test.each([
  ["", "plan free, 60 requests a minute, 1000 a day"],
  [
    "--plan enterprise --per-minute 7 --per-day 1000000000000",
    "plan enterprise, 7 requests a minute, 1000000000000 a day",
  ],
])(
  "accounts create %s prints a key that works at once, with the limits of the plan: %s",
  async (options, plan) => {
    await using operator = await Operator.start();

    const code = await operator.run(`accounts create ${options}`, "Zoë & co");

    const [key = "", ...more] = operator.out;
    assertEquals([code, more], [0, []]);
    assertMatch(key, /^as_test_[0-9A-Za-z]{38}$/);
    assertEquals(operator.err.map((line) => line.replace(/acct_\w{16}/, "ID")), [
      `Created: ID, Zoë & co, staging, ${plan}.`,
      "The key is shown only once, on standard output.",
    ]);
    assertEquals(await answerTo(operator, key), 200);
  },
);

Deno.test("accounts create rotates no key if an account has the given reference", async () => {
  await using operator = await Operator.start();
  const { id, key } = await operator.createAccount("--reference customer-7");

  const code = await operator.run("accounts create again --reference customer-7");

  const advice = `To give it a new key: accounts rotate ${id}.`;
  assertEquals([code, operator.out, operator.err], [1, [], [`Account ${id} has this reference. ${advice}`]]);
  assertEquals(await answerTo(operator, key), 200);
});

Deno.test("accounts create warns if there are accounts, but none of its environment", async () => {
  await using operator = await Operator.start();
  operator.input = ["Zoë"];
  const warned: number[] = [];

  for (const environment of ["staging", "production", "production", "staging"]) {
    operator.environment.set("ENVIRONMENT", environment);
    assertEquals(await operator.run(`accounts create ${warned.length === 1 ? "-" : "me"}`), 0);
    const start = `Warning: none of the first 100 accounts belongs to the environment ${environment},`;
    warned.push(operator.err.filter((line) => line.startsWith(start)).length);
  }

  assertEquals(warned, [0, 1, 0, 0]);
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
  assertEquals(await answerTo(operator, made.at(-1)?.[1] ?? ""), 200);
  operator.input = [""];
  await assertPrints(operator, "accounts create -", [], ["Created 0 of 0 accounts."]);
});

Deno.test("accounts create - creates nothing if a name is invalid", async () => {
  await using operator = await Operator.start();
  operator.input = ["Zoë", "x".repeat(100), "x".repeat(101)];

  const code = await operator.run("accounts create -");

  const message = "Name 3 must have 1 to 100 printable characters, not only whitespace.";
  assertEquals([code, operator.out, operator.err], [1, [], [message]]);
  await operator.run("accounts list");
  assertEquals(operator.out, []);
});

Deno.test.each<[command: string, message: RegExp]>([
  ["accounts create Solo", /^The key could not be printed: replace it with accounts rotate ID\.$/],
  ["accounts create -", /^More accounts, up to Kim, may exist without a printed key: see accounts list\.$/],
])("%s reports keys that could not be printed", async (command, message) => {
  await using operator = await Operator.start();
  operator.input = ["Zoë", "Kim"];
  operator.reader = () => Promise.reject(new Deno.errors.BrokenPipe("gone"));

  const code = await operator.run(command);

  assertEquals([code, operator.out], [141, []]);
  assertMatch(operator.err.at(-1) ?? "", message);
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

  const table = rows.map((row) => row.map((cell) => cell ?? "-").join("\t"));
  await assertPrints(operator, "accounts list", table, [header.join("\t")]);
  await operator.run("accounts list --json");
  const listed = operator.out.map((line) => JSON.parse(line));
  for (const [index, row] of rows.entries()) {
    const shown = await jsonOf(operator, `accounts show ${row[0]}`);
    const cells = Object.fromEntries(row.map((cell, n) => [header[n], cell]));
    assertEquals(listed[index], { ...cells, ...shown });
  }
  assertEquals(await jsonOf(operator, `accounts show ${id}`), {
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
  });
  assertEquals((await jsonOf(operator, `accounts show ${closed}`)).closedAt, "2027-01-15T12:00:00.000Z");
  operator.now += 300_000;
  const { state, bannedUntil, bans, usage } = await jsonOf(operator, `accounts show ${id}`);
  assertEquals([state, bannedUntil, bans, usage.minute.used, usage.day.used], ["active", null, 1, 0, 3]);
  await operator.run("accounts list");
  assert(operator.out.includes(`${id}\ttests\tstaging\tenterprise\t3\t9\tactive\t3\t2027-01-15`));
  operator.now -= 300_000;
  for (const [command, after] of [["reset", "banned 1 0"], ["unban", "active 0 0"]] as const) {
    await operator.run(`accounts ${command} ${id}`);
    const { state, bans, usage } = await jsonOf(operator, `accounts show ${id}`);
    assertEquals([command, `${state} ${bans} ${usage.day.used}`], [command, after]);
  }
  operator.now += 24 * HOUR;
  await operator.run("accounts list");
  assert(operator.out.includes(`${id}\ttests\tstaging\tenterprise\t3\t9\tactive\t0\t2027-01-15`));
});

Deno.test("accounts list has only the accounts with a reference, in a state or on a plan, if options say so", async () => {
  await using operator = await Operator.start();
  const { id: one } = await operator.createAccount("--reference a&b");
  const { id: two } = await operator.createAccount("--plan pro");
  await operator.run(`accounts suspend ${two}`);

  for (
    const [options, ids] of [
      ["--reference a&b", [one]],
      ["--reference a", []],
      ["--state suspended", [two]],
      ["--state active --plan free", [one]],
      ["--plan pro --json", [two]],
      ["--plan pro --state closed", []],
    ] as const
  ) {
    assertEquals([options, await operator.run(`accounts list ${options}`)], [options, 0]);
    assertEquals([options, operator.out.map((line) => /acct_\w{16}/.exec(line)?.[0])], [options, ids]);
  }
});

Deno.test("accounts rename and reference change an account, and say why they do not", async () => {
  await using operator = await Operator.start();
  const { id } = await operator.createAccount();
  const { id: other } = await operator.createAccount("--reference 8");
  const ofPlan = "staging, plan free, 60 requests a minute, 1000 a day.";

  const named = [await operator.run(`accounts rename ${id}`, "Zoë & co"), ...operator.err];
  assertEquals(named, [0, `Renamed: ${id}, Zoë & co, ${ofPlan}`]);
  await assertPrints(operator, `accounts reference ${id} 7`, [], [
    `Reference set: ${id}, Zoë & co, ${ofPlan}`,
  ]);
  for (
    const [command, message] of [
      [`accounts reference ${id} 9`, `Account ${id} has another reference, which never changes.`],
      ["accounts rename acct_1 a", "There is no open account with the id acct_1."],
    ] as const
  ) {
    assertEquals([command, await operator.run(command), operator.err], [command, 1, [message]]);
  }
  const { id: last } = await operator.createAccount();
  assertEquals(await operator.run(`accounts reference ${last} 8`), 1);
  assertEquals(operator.err, [`Account ${other} has this reference.`]);

  const { name, reference } = await jsonOf(operator, `accounts show ${id}`);
  assertEquals([name, reference], ["Zoë & co", "7"]);
});

Deno.test("accounts rotate prints a new key, and the previous one ends at once or after --grace", async () => {
  await using operator = await Operator.start();
  const { id, key } = await operator.createAccount();
  let current = key;
  for (
    const [grace, ms] of [["90s", 90_000], ["30m", HOUR / 2], ["24h", 24 * HOUR], ["7d", 168 * HOUR]] as const
  ) {
    assertEquals(await operator.run(`accounts rotate ${id} --grace ${grace}`), 0);
    const [next = ""] = operator.out;
    const { previousKeyExpiresAt } = await jsonOf(operator, `accounts show ${id}`);
    assertEquals(previousKeyExpiresAt, new Date(NOON + ms).toISOString());
    assertEquals(await answerTo(operator, current), 200);
    current = next;
  }

  const code = await operator.run(`accounts rotate ${id}`);

  const [renewed = "", ...more] = operator.out;
  assertEquals([code, more], [0, []]);
  assertMatch(operator.err.join("\n"), new RegExp(`^Rotated: ${id}, tests, staging, plan free, `));
  for (const earlier of [key, current]) assertEquals(await answerTo(operator, earlier), "invalid_api_key");
  assertEquals(await answerTo(operator, renewed), 200);
});

Deno.test("accounts add-key prints a key alone on standard output, keys lists it, and revoke-key ends it", async () => {
  await using operator = await Operator.start();
  const { id, key: first } = await operator.createAccount();

  const code = await operator.run(
    `accounts add-key ${id} --scope read/write --collections things --expires 90d`,
    "Zoë's till",
  );

  const [key = "", ...more] = operator.out;
  const [keyId = ""] = /key_\w+/.exec(operator.err.join()) ?? [];
  assertEquals([code, more], [0, []]);
  assertMatch(key, /^as_test_\w{38}$/);
  assertEquals(operator.err, [
    `Added: ${keyId}, Zoë's till, read/write.`,
    "The key is shown only once, on standard output.",
  ]);
  const [created, expires] = [NOON, NOON + 90 * 24 * HOUR].map((time) => new Date(time).toISOString());
  await assertPrints(operator, `accounts keys ${id}`, [
    [keyId, "Zoë's till", "read/write", "things", created, expires].join("\t"),
  ], ["id\tlabel\tscope\tcollections\tcreated\texpires"]);
  assertEquals(await answerTo(operator, key), 200);
  await assertPrints(operator, `accounts revoke-key ${id} ${keyId}`, [], [
    `Revoked: ${keyId} of account ${id}.`,
  ]);
  assertEquals(await answerTo(operator, key), "invalid_api_key");
  assertEquals(await operator.run(`accounts revoke-key ${id} ${keyId}`), 1);
  assertEquals(operator.err, ["No added key of the account has this id."]);

  await operator.run(`accounts add-key ${id} till`);
  const [added = ""] = operator.out;
  assertEquals(await operator.run(`accounts add-key ${id} till`), 1);
  assertMatch(operator.err.join(), /^The key key_\w{16} has this label\.$/);
  await operator.run(`accounts rotate ${id} --grace 1h`);
  assertMatch(operator.err.at(-1) ?? "", /^Still valid: key_\w{16}, till\.$/);
  await operator.run(`accounts rotate ${id}`);
  assertEquals(operator.err.at(-1), "Added keys that stopped working: 1.");
  for (const ended of [first, added]) assertEquals(await answerTo(operator, ended), "invalid_api_key");
});

Deno.test("accounts add-key says how to revoke a key that could not be printed", async () => {
  await using operator = await Operator.start();
  const { id } = await operator.createAccount();
  operator.reader = () => Promise.reject(new Error("The pipe is closed"));

  await operator.run(`accounts add-key ${id} till`).catch(() => {});

  assertMatch(
    operator.err.at(-2) ?? "",
    new RegExp(`^The key could not be printed: revoke it with accounts revoke-key ${id} key_\\w{16}\\.$`),
  );
});

Deno.test.each<[options: string, label: string, message: string]>([
  ["--scope write", "till", "--scope must be one of read, read/write"],
  ["--collections things,pets", "till", "--collections must be some of things, separated by commas"],
  ["--collections ,", "till", "--collections must be some of things, separated by commas"],
  ["--expires soon", "till", "--expires must be a duration such as 30m, 24h or 7d"],
  ["", " ", "The LABEL must have 1 to 100 printable characters, not only whitespace"],
  ["", "a\u001b", "The LABEL must have 1 to 100 printable characters, not only whitespace"],
])("accounts add-key %s %j is refused: %s", async (options, label, message) => {
  await using operator = await Operator.start();

  const code = await operator.run(`accounts add-key acct_1 ${options}`, label);

  assertEquals([code, operator.err], [2, [`${message}. See: deno task accounts --help`]]);
});

Deno.test("accounts create uses ENVIRONMENT for the key, and accounts rotate keeps the key's own", async () => {
  await using operator = await Operator.start();
  operator.environment.set("ENVIRONMENT", "production");
  const { id, key } = await operator.createAccount();
  operator.environment.delete("ENVIRONMENT");

  await operator.run(`accounts rotate ${id}`);

  for (const one of [key, operator.out.join("\n")]) assertMatch(one, /^as_live_\w{38}$/);
});

Deno.test("COMMAND replaces control characters in names, or escapes them in JSON", async () => {
  await using operator = await Operator.start();
  await using service = await operator.serve();
  const { id, key } = await operator.createAccount();
  await addThing(service, key, "Hammer");
  await service.accounts.change(id, { name: WILD });
  await storeName(service.kv, 1, WILD);

  for (const command of ["accounts list", "items things list"]) {
    await operator.run(command);
    assertEquals([operator.out.length, operator.out[0]?.split("\t")[1]], [1, TAME]);
  }
  for (const command of [`plan ${id} pro`, `rotate ${id}`]) {
    await operator.run(`accounts ${command}`);
    assertStringIncludes(operator.err[0] ?? "", `: ${id}, ${TAME}, staging, plan pro`);
  }
  for (
    const command of [
      ...["accounts list --json", `accounts show ${id}`],
      ...["items things list --json", "items things set 1 --state lost"],
    ]
  ) {
    assertEquals((await jsonOf(operator, command)).name, WILD);
    assertEquals(/(?!\n)[\p{Cc}\p{Bidi_Control}]/u.test(operator.out.join("")), false);
  }
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
  const created = keys.map((key) => addThing(service, key, "Hammer", { "idempotency-key": "a" }));
  assertEquals((await Promise.all(created)).map(({ status }) => status).sort(), [201, 201, 401, 401]);
  await service.app.close();

  const rows = await Array.fromAsync(service.kv.list({ prefix: [] }));

  const text = rows.map(({ key, value }) =>
    `${key.join("/")} ${value instanceof Uint8Array ? new TextDecoder().decode(value) : value}`
  );
  assertMatch(text.join("\n"), /^items\/things\/\d+ \{"id"/m);
  assertEquals(text.filter((row) => keys.some((key) => row.includes(key.slice(8, 40)))), []);
});

Deno.test("items things list, set and delete work on things of any account", async () => {
  await using operator = await Operator.start();
  const { id, key } = await operator.createAccount();
  await using service = await operator.serve();
  for (const members of ['"name":"Hammer"', '"name":"Tom","isSpare":true,"labels":["a","b"]']) {
    const body = `{"weight":9007199254740993,${members}}`;
    await call(service, key, "POST /v1/things", { headers: JSON_TYPE, body });
  }
  const list = async (query: string) => await (await service.fetch(`GET /v1/things${query}`, { key })).text();
  const hammer = '{"id":1,"name":"Hammer","weight":9007199254740993,"state":"new","isSpare":false,';
  const changed =
    '{"id":2,"name":"Tom","weight":9223372036854775807,"state":"lost","isSpare":true,"labels":["a","b"]}';

  await assertPrints(
    operator,
    "items things list",
    [
      `1\tHammer\t9007199254740993\tnew\tno\t-\t${id}`,
      `2\tTom\t9007199254740993\tnew\tyes\t["a","b"]\t${id}`,
    ],
    ["id\tname\tweight\tstate\tisSpare\tlabels\taccountId"],
  );
  await operator.run("items things list --json");
  assertEquals([operator.out[0], operator.out.length], [`${hammer}"accountId":"${id}"}`, 2]);
  const set = "items things set 2 --state lost --weight 9223372036854775807";
  await assertPrints(operator, set, [changed], []);
  assertEquals(await list("?state=lost"), `[${changed}]`);
  await assertPrints(operator, "items things delete 1", [], ["Deleted: thing 1."]);
  assertEquals(await list("?state=new"), "[]");
  assertEquals((await service.fetch("DELETE /v1/things/2", { key })).status, 204); // It is still its account's.
  await assertConsistent(service.kv);
});

Deno.test("items things add adds a thing for an account or for none, and repeats nothing", async () => {
  await using operator = await Operator.start();
  const { id } = await operator.createAccount();
  const saw = (id: number, more = "") =>
    `{"id":${id},"name":"Saw","weight":-3,"state":"new","isSpare":false${more}}`;
  const once = `items things add --name Saw --weight=-3 --account-id ${id} --idempotency-key once`;

  await assertPrints(operator, "items things add --name Saw --weight=-3", [saw(1)], []);
  for (const _ of ["first", "again"]) {
    await assertPrints(operator, once, [saw(2, `,"accountId":"${id}"`)], []);
  }
  assertEquals(await operator.run("items things add --name Saw --weight 3 --account-id acct_9"), 1);
  assertEquals(operator.err, ["There is no open account with the id acct_9."]);
  assertEquals(await operator.run("items things add --name Saw"), 2);
  assertMatch(operator.err.join(), /^--weight is required/);
});
