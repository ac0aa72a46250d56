import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { NOON } from "../harness.ts";
import { call, callAtOnce } from "../access/replies.ts";
import { Operator } from "./operator.ts";

const HOUR = 3_600_000;

Deno.test("keys create prints the key alone on standard output, and what it is on standard error", async () => {
  await using operator = await Operator.start();

  const code = await operator.run("keys", "create", "--account", "Zoë & co", "--plan", "pro");

  assertEquals(code, 0);
  assertEquals(operator.out.length, 1);
  assertMatch(operator.out[0] ?? "", /^as_test_[0-9A-Za-z]{38}$/);
  assertMatch(
    operator.err.join("\n"),
    /^Made: key_[0-9A-Za-z]{16}, account Zoë & co, staging, plan pro, 300 requests a minute, 10000 a day\.$/m,
  );
  assertEquals(operator.err.join().includes(operator.out[0] ?? ""), false);
});

for (
  const [plan, options, minute, day] of [
    ["free", [], 60, 1_000],
    ["pro", [], 300, 10_000],
    ["business", [], 1_000, 100_000],
    ["enterprise", ["--per-minute", "7", "--per-day", "1000000000000"], 7, 1_000_000_000_000],
  ] as const
) {
  Deno.test(`keys create makes a key of ${plan} that a running service accepts at once`, async () => {
    await using operator = await Operator.start();
    using service = await operator.serve();

    const code = await operator.run("keys", "create", "--account", "a", "--plan", plan, ...options);

    assertEquals(code, 0);
    const { headers, status } = await service.fetch("GET /v1/nowhere", { key: operator.out[0] ?? "" });
    assertEquals(status, 404);
    assertEquals(headers.get("ratelimit-policy"), `"minute";q=${minute};w=60, "day";q=${day};w=86400`);
  });
}

Deno.test("keys create makes a key of the environment that ENVIRONMENT names", async () => {
  await using operator = await Operator.start();
  operator.environment.set("ENVIRONMENT", "production");

  await operator.run("keys", "create", "--account", "a", "--plan", "free");

  assertMatch(operator.out[0] ?? "", /^as_live_[0-9A-Za-z]{38}$/);
});

Deno.test("keys list prints nothing when there is no key", async () => {
  await using operator = await Operator.start();

  assertEquals(await operator.run("keys", "list"), 0);

  assertEquals([operator.out, operator.err], [[], []]);
});

Deno.test("keys list prints each key and its state, and no secret", async () => {
  await using operator = await Operator.start();
  const [active, banned, revoked] = [
    await operator.createKey("free"),
    await operator.createKey("free"),
    await operator.createKey("pro"),
  ];
  using service = await operator.serve();
  await callAtOnce(121, [service], banned.secret);
  await operator.run("keys", "revoke", revoked.id);

  const code = await operator.run("keys", "list");

  assertEquals(code, 0);
  assertEquals(
    operator.out,
    [
      `${active.id}\ttests\tstaging\tfree\t60\t1000\tactive`,
      `${banned.id}\ttests\tstaging\tfree\t60\t1000\tbanned`,
      `${revoked.id}\ttests\tstaging\tpro\t300\t10000\trevoked`,
    ].sort(),
  );
  assertEquals(operator.err, []);
});

Deno.test("keys show prints the key and its usage as JSON, and no secret", async () => {
  await using operator = await Operator.start();
  const { id, secret } = await operator.createKey("free");
  await operator.run("keys", "rotate", id, "--grace", "1h");
  using service = await operator.serve();
  await callAtOnce(70, [service], secret);

  const code = await operator.run("keys", "show", id);

  assertEquals(code, 0);
  const shown = {
    id,
    account: "tests",
    environment: "staging",
    plan: "free",
    state: "active",
    limits: { perMinute: 60, perDay: 1_000 },
    usage: { minute: 60, day: 60, refusedThisMinute: 10 },
    bannedUntil: null,
    bans: 0,
    createdAt: new Date(NOON).toISOString(),
    retiringSecrets: 1,
  };
  assertEquals(JSON.parse(operator.out.join("\n")), shown);

  operator.now = NOON + HOUR;
  await operator.run("keys", "show", id);
  assertEquals(JSON.parse(operator.out.join("\n")), {
    ...shown,
    usage: { minute: 0, day: 60, refusedThisMinute: 0 },
    retiringSecrets: 0,
  });
});

Deno.test("keys show says until when a key is banned, while it is", async () => {
  await using operator = await Operator.start();
  const { id, secret } = await operator.createKey("free");
  using service = await operator.serve();
  await callAtOnce(121, [service], secret);

  await operator.run("keys", "show", id);
  const { state, bannedUntil, bans } = JSON.parse(operator.out.join("\n"));
  assertEquals([state, bannedUntil, bans], ["banned", new Date(NOON + 300_000).toISOString(), 1]);

  operator.now = NOON + 300_000;
  await operator.run("keys", "show", id);
  const after = JSON.parse(operator.out.join("\n"));
  assertEquals([after.state, after.bannedUntil, after.bans], ["active", null, 1]);
});

Deno.test("keys rotate prints a new key, and ends the old one at once", async () => {
  await using operator = await Operator.start();
  const { id, secret } = await operator.createKey();
  using service = await operator.serve();

  const code = await operator.run("keys", "rotate", id);

  assertEquals(code, 0);
  const [renewed = "", ...more] = operator.out;
  assertEquals(more, []);
  assertStringIncludes(operator.err.join("\n"), id);
  assertEquals((await call(service, secret)).status, 401);
  assertEquals((await call(service, renewed)).status, 200);
});

for (
  const [grace, ms] of [["90s", 90_000], ["30m", 1_800_000], ["24h", 24 * HOUR], ["7d", 168 * HOUR]] as const
) {
  Deno.test(`keys rotate --grace ${grace} leaves the old key valid for as long`, async () => {
    await using operator = await Operator.start();
    const { id, secret } = await operator.createKey();
    using service = await operator.serve();

    assertEquals(await operator.run("keys", "rotate", id, "--grace", grace), 0);

    service.now = NOON + ms - 1;
    assertEquals((await call(service, secret)).status, 200);
    service.now = NOON + ms;
    assertEquals((await call(service, secret)).status, 401);
  });
}

Deno.test("keys revoke ends the key", async () => {
  await using operator = await Operator.start();
  const { id, secret } = await operator.createKey();
  using service = await operator.serve();
  assertEquals((await call(service, secret)).status, 200);

  const code = await operator.run("keys", "revoke", id);

  assertEquals(code, 0);
  assertEquals(operator.out, []);
  assertEquals(operator.err, [
    `Revoked: ${id}, account tests, staging, plan free, 60 requests a minute, 1000 a day.`,
  ]);
  assertEquals((await call(service, secret)).status, 401);
});

Deno.test("keys plan moves the key to another plan", async () => {
  await using operator = await Operator.start();
  const { id, secret } = await operator.createKey();
  using service = await operator.serve();

  assertEquals(await operator.run("keys", "plan", id, "pro"), 0);
  assertEquals(operator.err, [
    `Moved: ${id}, account tests, staging, plan pro, 300 requests a minute, 10000 a day.`,
  ]);
  assertEquals((await call(service, secret)).limit, 300);

  assertEquals(
    await operator.run("keys", "plan", id, "enterprise", "--per-minute", "9", "--per-day", "99"),
    0,
  );
  assertEquals(operator.err, [
    `Moved: ${id}, account tests, staging, plan enterprise, 9 requests a minute, 99 a day.`,
  ]);
  assertEquals((await call(service, secret)).limit, 9);
  assertEquals(operator.out, []);
});

Deno.test("keys unban ends the key's ban", async () => {
  await using operator = await Operator.start();
  const { id, secret } = await operator.createKey();
  using service = await operator.serve();
  await callAtOnce(121, [service], secret);

  const code = await operator.run("keys", "unban", id);

  assertEquals(code, 0);
  assertEquals(operator.err, [
    `Unbanned: ${id}, account tests, staging, plan free, 60 requests a minute, 1000 a day.`,
  ]);
  assertEquals((await call(service, secret)).code, "rate_limit_minute");
});

Deno.test("keys rotate stays in the key's own environment", async () => {
  await using operator = await Operator.start();
  operator.environment.set("ENVIRONMENT", "production");
  const { id } = await operator.createKey();
  operator.environment.delete("ENVIRONMENT");

  const code = await operator.run("keys", "rotate", id);

  assertEquals(code, 0);
  assertMatch(operator.out.join(), /^as_live_\w{38}$/);
});

Deno.test("keys rotate gives a revoked key no new secret", async () => {
  await using operator = await Operator.start();
  const { id } = await operator.createKey();
  await operator.run("keys", "revoke", id);

  const code = await operator.run("keys", "rotate", id);

  assertEquals(code, 1);
  assertEquals([operator.out, operator.err], [[], [`There is no valid key with the id ${id}.`]]);
});

for (const command of [["show"], ["rotate"], ["revoke"], ["plan", "pro"], ["unban"]]) {
  Deno.test(`keys ${command[0]} says so and exits with 1 when there is no such key`, async () => {
    await using operator = await Operator.start();
    const { secret } = await operator.createKey();
    const [name = "", ...more] = command;
    const kind = name === "show" ? "key" : "valid key";

    const code = await operator.run("keys", name, "key_0000", ...more);

    assertEquals(code, 1);
    assertEquals([operator.out, operator.err], [[], [`There is no ${kind} with the id key_0000.`]]);
    using service = await operator.serve();
    assertEquals((await call(service, secret)).limit, 60);
  });
}
