import { assert, assertEquals, assertGreater } from "@std/assert";
import { type Account, ACCOUNT_ROWS, accountKey } from "../../src/accounts/account.ts";
import type { HolderState } from "../../src/limits/holder.ts";
import {
  type Decision,
  decodeUsage,
  encodeUsage,
  UNUSED,
  type Usage,
  usageKey,
} from "../../src/limits/usage.ts";
import { Allowance, type LeaseTimes, PATIENCE, type Run } from "../../src/limits/allowance.ts";
import { AGAIN } from "../../src/engine/deadline.ts";
import { encodeJson, type Entry } from "../../src/engine/row.ts";
import type { Rows, Write } from "../../src/engine/transaction.ts";
import { NOON, VirtualTime } from "../support/time.ts";

const TIMES: LeaseTimes = { span: 200, renewal: 0, unchanged: 0, life: 250 };
const ACCOUNT: Account = {
  id: "acct_1",
  name: "Ann",
  environment: "staging",
  plan: "enterprise",
  limits: { minute: 1_000, day: 9_000 },
  signedUp: false,
  createdAt: 0,
  suspendedAt: null,
  closedAt: null,
  keyHash: "key",
  previousKey: null,
};
/** Arrival of requests that could know of every refusal, on the `performance.now()` clock. */
const LATE = Infinity;
const NOW: Usage = { ...UNUSED, minute: NOON };

/** Both rows of an account in a KV. Each change sets the next version. */
class AccountRows implements Rows {
  #version = 1;
  #account: Entry;
  #usage: Entry;

  constructor(account: Account, usage: Usage) {
    this.#account = { key: accountKey(account.id), value: encodeJson(account), versionstamp: "1" };
    this.#usage = { key: usageKey(account.id), value: encodeUsage(usage), versionstamp: "1" };
  }

  get usage(): Usage {
    return decodeUsage(this.#usage);
  }

  get state(): HolderState<Account> {
    const { value } = this.#account;
    assert(value instanceof Uint8Array);
    const account = JSON.parse(new TextDecoder().decode(value));
    return { holder: account, holderRow: this.#account, usage: this.usage, usageRow: this.#usage };
  }

  get(key: Deno.KvKey): Entry {
    return key[0] === "usage" ? this.#usage : this.#account;
  }

  changeAccount(change: Partial<Account>): void {
    const { holder: account } = this.state;
    this.#account = { ...this.#account, ...this.#next(encodeJson({ ...account, ...change })) };
  }

  changeUsage(change: Partial<Usage>): void {
    this.#usage = { ...this.#usage, ...this.#next(encodeUsage({ ...this.usage, ...change })) };
  }

  #next(value: Uint8Array<ArrayBuffer>): Pick<Entry, "value" | "versionstamp"> {
    return { value, versionstamp: `${++this.#version}` };
  }
}

function allowanceOf(account: Partial<Account>, usage: Partial<Usage>) {
  const rows = new AccountRows({ ...ACCOUNT, ...account }, { ...NOW, ...usage });
  return { rows, allowance: new Allowance(ACCOUNT_ROWS, rows.state) };
}

/** The decisions of a transaction, and the usage row that it writes, if any. */
function decide(
  allowance: Allowance<Account>,
  rows: Rows,
  times: LeaseTimes = TIMES,
  now: number = NOON,
): { run: Run<Account>; written?: Usage } {
  let written: Usage | undefined;
  const write: Write = {
    set(key, value) {
      if (key[0] === "usage") written = decodeUsage({ key, value, versionstamp: "" });
    },
    delete() {},
    bump() {},
  };
  allowance.begin(now, times);
  const run = allowance.decide(rows, write, now, times);
  assert(run);
  return written ? { run, written } : { run };
}

/** Runs a transaction, and returns the usage afterwards. */
function transact(
  allowance: Allowance<Account>,
  rows: AccountRows,
  times: LeaseTimes = TIMES,
  now: number = NOON,
): Usage {
  const { run, written } = decide(allowance, rows, times, now);
  if (written) rows.changeUsage(written);
  apply(allowance, rows, run);
  return rows.usage;
}

function apply(allowance: Allowance<Account>, rows: AccountRows, run: Run<Account>): void {
  const { holderRow, usageRow } = rows.state;
  allowance.apply(run, [holderRow, usageRow].map((entry) => ({ key: entry.key, entry })), TIMES);
}

/** An allowance with a lease of `left` permits. */
function leased(left: number, account: Partial<Account> = {}) {
  const { rows, allowance } = allowanceOf(account, {});
  const { run } = decide(allowance, rows);
  rows.changeUsage({ used: left, usedToday: left, leased: left, leasedToday: left });
  apply(allowance, rows, { ...run, ahead: left, usage: rows.usage });
  return { rows, allowance };
}

async function outcomes(requests: readonly Promise<Decision | typeof AGAIN>[]): Promise<unknown[]> {
  return (await Promise.all(requests)).map((decided) => decided === AGAIN ? AGAIN : decided.refusal);
}

function requests(allowance: Allowance<Account>, count: number, hash: string = "key") {
  return Array.from({ length: count }, () => allowance.request({ hash, now: NOON, arrived: LATE }));
}

function take(allowance: Allowance<Account>) {
  const lease = allowance.leaseAt(NOON);
  assert(lease);
  allowance.take(lease, NOON, false);
  return lease;
}

Deno.test.each([
  ["its own window", NOON, {}, { used: 4, usedToday: 4 }],
  ["a later minute", NOON + 60_000, {}, { used: 0, usedToday: 4 }],
  ["a window after a reset", NOON, { epoch: 1 }, { used: 5, usedToday: 5 }],
])("Allowance.giveBack() gives a used permit back once, in %s", async (_, now, change, expected) => {
  const { rows, allowance } = allowanceOf({}, { used: 4, usedToday: 4 });
  const [granted] = requests(allowance, 1);
  const withoutLease = { ...TIMES, span: 0 };
  transact(allowance, rows, withoutLease);
  const decision = await granted;
  assert(decision && decision !== AGAIN);
  rows.changeUsage(change);
  allowance.noteRows(rows.state);

  allowance.giveBack(decision);

  for (let times = 0; times < 2; times++) {
    const { used, usedToday, leased } = transact(allowance, rows, withoutLease, now);
    assertEquals({ used, usedToday, leased }, { ...expected, leased: 0 });
  }
  assertEquals(allowance.isActive, false);
});

Deno.test("Allowance.apply() reports the limits under which a request was charged", async () => {
  const { rows, allowance } = allowanceOf({ limits: { minute: 2, day: 99 } }, {});
  const reply = allowance.request({ hash: "key", now: NOON, arrived: LATE });
  const { run } = decide(allowance, rows);

  rows.changeAccount({ limits: { minute: 60, day: 1_000 } });
  rows.changeUsage({ used: 2 });
  apply(allowance, rows, run);

  const decision = await reply;
  assert(decision !== AGAIN);
  assertEquals([decision.minute.limit, decision.minute.remaining, decision.day?.limit], [2, 1, 99]);
});

Deno.test("Allowance.decide() may run again, and only the last run has an effect", async () => {
  const { rows, allowance } = leased(9);
  take(allowance);
  const replies = requests(allowance, 3);
  decide(allowance, rows);
  decide(allowance, rows);

  const { used, leased: stillLeased } = transact(allowance, rows, { ...TIMES, span: 0 });

  assertEquals([used, stillLeased], [1 + 3, 1]);
  assertEquals(await outcomes(replies), [undefined, undefined, undefined]);
});

Deno.test("Allowance.decide() counts permits as leased until no request can give them back", () => {
  const { rows, allowance } = leased(2);
  const [first, second] = [take(allowance), take(allowance)];
  rows.changeAccount({ limits: { minute: 2, day: 2 } });
  const counts = () => {
    const { used, usedToday, leased, leasedToday } = transact(allowance, rows);
    return [used, usedToday, leased, leasedToday];
  };

  assertEquals(counts(), [2, 2, 2, 2]);
  allowance.withdraw(first);
  assertEquals(counts(), [1, 1, 1, 1]);
  allowance.confirm(second);
  assertEquals(counts(), [1, 1, 0, 0]);
  assertEquals(allowance.isActive, false);
});

Deno.test("Allowance.refuse() enforces the daily limit from memory unless a permit may be withdrawn", () => {
  const { rows, allowance } = leased(2, { limits: { minute: 2, day: 2 } });
  const [first, second] = [take(allowance), take(allowance)];
  allowance.confirm(first);
  transact(allowance, rows);
  assertEquals(allowance.refuse(NOON, LATE), undefined);

  allowance.confirm(second);
  transact(allowance, rows);

  assertEquals(allowance.refuse(NOON, LATE)?.refusal, "day");
});

Deno.test("Allowance.apply() adds a renewal to the lease and settles its used permits", () => {
  const { rows, allowance } = leased(10);
  for (let count = 0; count < 4; count++) allowance.confirm(take(allowance));
  const { run, written } = decide(allowance, rows);
  assert(written);
  assertEquals([written.used, written.leased], [10 + run.ahead, 6 + run.ahead]);

  rows.changeUsage(written);
  apply(allowance, rows, run);

  assertEquals(allowance.left, 6 + run.ahead);
});

Deno.test("Allowance.lose() gives no permit back twice and hands out none that may have been taken", async () => {
  const { rows, allowance } = leased(9);
  take(allowance);
  const replies = Promise.allSettled(requests(allowance, 2));
  const { run } = decide(allowance, rows);

  allowance.lose(run, new Error());

  assertEquals((await replies).map(({ status }) => status), ["rejected", "rejected"]);
  assertEquals([allowance.left, allowance.isLeased], [0, false]);
});

Deno.test("Allowance.fail() keeps permits so that a later transaction can give them back", async () => {
  const { rows, allowance } = leased(9);
  const replies = Promise.allSettled(requests(allowance, 2));
  decide(allowance, rows);

  allowance.fail(new Error());

  assertEquals((await replies).map(({ status }) => status), ["rejected", "rejected"]);
  const { used, leased: stillLeased } = transact(allowance, rows);
  assertEquals([used, stillLeased], [0, 0]);
});

Deno.test("Allowance.apply() keeps strikes that were counted after the account had changed", () => {
  const { rows, allowance } = allowanceOf({ limits: { minute: 9, day: 99 } }, { used: 9, usedToday: 9 });
  const refuse = (count: number) => Array.from({ length: count }, () => allowance.refuse(NOON, LATE));
  refuse(3);
  const { run, written } = decide(allowance, rows);
  assert(written);
  rows.changeUsage(written);
  rows.changeAccount({ name: "Ben" });

  allowance.noteRows(rows.state);
  refuse(2);
  apply(allowance, rows, run);

  assertEquals(transact(allowance, rows).refused, 3 + 2);
});

for (
  const [what, usage, account, strikes] of [
    ["keeps", { used: 10 }, {}, 3],
    ["drops", { minute: NOON + 60_000 }, {}, 0],
    ["drops", { epoch: 1 }, {}, 0],
    ["drops", {}, { name: "Ben" }, 0],
  ] as const
) {
  Deno.test(`Allowance.decide() ${what} unwritten strikes after a change to ${JSON.stringify({ ...usage, ...account })}`, () => {
    const { rows, allowance } = allowanceOf({ limits: { minute: 9, day: 99 } }, { used: 9, usedToday: 9 });
    for (let count = 0; count < 3; count++) allowance.refuse(NOON, LATE);

    if ("name" in account) rows.changeAccount(account);
    else rows.changeUsage(usage);

    assertEquals(transact(allowance, rows).refused, strikes);
  });
}

Deno.test("Allowance.decide() leases as many permits as the recent rate needs", () => {
  const { rows, allowance } = leased(500);
  for (let count = 0; count < 100; count++) allowance.confirm(take(allowance));
  for (let count = 0; count < 400; count++) take(allowance);

  assertGreater(decide(allowance, rows).run.ahead, 0);
});

Deno.test("Allowance.noteRows() ignores older rows so that a closed account stays closed", () => {
  const { rows, allowance } = allowanceOf({}, {});
  const before = rows.state;
  rows.changeAccount({ closedAt: NOON });
  allowance.noteRows(rows.state);
  rows.changeUsage({ used: 5 });

  allowance.noteRows({ ...before, usage: rows.usage, usageRow: rows.state.usageRow });
  allowance.noteRows(before);

  assertEquals([
    allowance.holder.closedAt,
    allowance.usageWithoutLease(before.usage, before.usageRow, false).used,
  ], [NOON, 5]);
});

Deno.test("Allowance.drop() discards the lease and resolves waiting requests to AGAIN", async () => {
  const { allowance } = leased(3);
  const waiting = allowance.request({ hash: "key", now: NOON, arrived: LATE });
  assertEquals([allowance.left, allowance.isActive], [3, true]);

  allowance.drop();

  assertEquals(await waiting, AGAIN);
  assertEquals([allowance.left, allowance.isActive], [0, false]);
});

Deno.test("Allowance.apply() keeps permits that were withdrawn during its transaction", () => {
  const { rows, allowance } = leased(10);
  const permits = [take(allowance), take(allowance)];
  const [first, second] = permits;
  assert(first && second);
  rows.changeAccount({ limits: { minute: 900, day: 9_000 } });
  allowance.noteRows(rows.state);
  allowance.begin(NOON, TIMES);
  allowance.withdraw(first);
  const { run, written } = decide(allowance, rows, { ...TIMES, span: 0 });
  assert(written);
  rows.changeUsage(written);

  allowance.withdraw(second);
  apply(allowance, rows, run);

  const { used, leased: stillLeased } = transact(allowance, rows, { ...TIMES, span: 0 });
  assertEquals([used, stillLeased, allowance.isActive], [0, 0, false]);
});

Deno.test("Allowance.apply() settles permits used during its transaction in the next one", () => {
  const { rows, allowance } = leased(10);
  for (let count = 0; count < 4; count++) allowance.confirm(take(allowance));
  const { run, written } = decide(allowance, rows, { ...TIMES, span: 0 });
  assert(written);
  rows.changeUsage(written);

  for (let count = 0; count < 2; count++) allowance.confirm(take(allowance));
  apply(allowance, rows, run);

  const { used, leased: stillLeased } = transact(allowance, rows, { ...TIMES, span: 0 });
  assertEquals([used, stillLeased, allowance.left], [10, 4, 4]);
});

Deno.test("Allowance.apply() counts each strike once, including those during its transaction", () => {
  const { rows, allowance } = allowanceOf({ limits: { minute: 9, day: 99 } }, { used: 9, usedToday: 9 });
  const refuse = (count: number) => Array.from({ length: count }, () => allowance.refuse(NOON, LATE));
  refuse(3);
  const { run, written } = decide(allowance, rows);
  assert(written);
  rows.changeUsage(written);

  refuse(2);
  apply(allowance, rows, run);

  assertEquals([transact(allowance, rows).refused, transact(allowance, rows).refused], [5, 5]);
});

Deno.test("Allowance.apply() uses the row after its commit, with the changes of other transactions", () => {
  const { rows, allowance } = allowanceOf({}, {});
  requests(allowance, 2);
  const { run, written } = decide(allowance, rows);
  assert(written);

  rows.changeUsage({ ...written, used: written.used + 5 });
  apply(allowance, rows, run);

  assertEquals(allowance.usageWithoutLease(rows.usage, rows.state.usageRow, false).used, 2 + 5);
});

Deno.test("Allowance.apply() leases the additional permits, but none that were granted to requests", () => {
  using _time = new VirtualTime();
  const { rows, allowance } = allowanceOf({}, {});
  requests(allowance, 1);
  transact(allowance, rows);
  requests(allowance, 3);

  const { leased: inRow } = transact(allowance, rows, { ...TIMES, span: 2_000 });

  assertGreater(inRow, 0);
  assertEquals(allowance.left, inRow);
});

Deno.test("Allowance.apply() ends a lease taken under other limits instead of adding to it", () => {
  const { rows, allowance } = leased(3);
  const limits = { minute: 900, day: 9_000 };
  rows.changeAccount({ limits });
  const { run } = decide(allowance, rows);
  rows.changeUsage({ used: 3 + 5, usedToday: 3 + 5, leased: 3 + 5, leasedToday: 3 + 5 });

  apply(allowance, rows, { ...run, ahead: 5, usage: rows.usage });

  assertEquals([allowance.left, allowance.leaseAt(NOON)?.limits], [5, limits]);
  const { used, leased: stillLeased } = transact(allowance, rows, { ...TIMES, span: 0 });
  assertEquals([used, stillLeased], [5, 5]);
});

const LATER = NOON + 60_000;

for (
  const [what, change, now] of [
    ["has other limits", { limits: { minute: 900, day: 9_000 } }, NOON],
    ["was reset", { epoch: 1 }, NOON],
    ["is in another minute", { minute: LATER }, LATER],
    ["was last seen in an earlier minute", {}, LATER],
  ] as const
) {
  Deno.test(`Allowance.leaseAt() returns no lease when the account ${what}`, () => {
    const { rows, allowance } = leased(3);
    assert(allowance.leaseAt(NOON));

    if ("limits" in change) rows.changeAccount(change);
    else rows.changeUsage(change);
    allowance.noteRows(rows.state);

    assertEquals(allowance.leaseAt(now), undefined);
  });
}

Deno.test("Allowance.isActive is true while there is something to write or to wait for", () => {
  const calm = { ...TIMES, span: 0 };
  const { rows, allowance } = leased(2);
  const permit = take(allowance);
  rows.changeAccount({ limits: { minute: 2, day: 99 } });
  allowance.noteRows(rows.state);
  transact(allowance, rows, calm);
  assertEquals([allowance.isLeased, allowance.isActive], [false, true]);

  allowance.confirm(permit);
  assertEquals([allowance.isLeased, allowance.isActive], [true, true]);
  transact(allowance, rows, calm);
  assertEquals(allowance.isActive, false);

  rows.changeUsage({ used: 2 });
  allowance.noteRows(rows.state);
  allowance.refuse(NOON, LATE);
  assertEquals([allowance.isLeased, allowance.isActive], [false, true]);
  transact(allowance, rows, calm);
  assertEquals(allowance.isActive, false);

  requests(allowance, 1);
  assertEquals([allowance.isLeased, allowance.isActive], [false, true]);
});

Deno.test("Allowance.reads() returns the known rows unless they are shared or a transaction failed", async () => {
  using time = new VirtualTime();
  const times = { ...TIMES, unchanged: 5 };
  const { rows, allowance } = allowanceOf({}, {});
  const areKnown = () => allowance.reads(times).every((read) => "entry" in read);
  await time.advance(10);
  assertEquals(areKnown(), true);

  rows.changeUsage({ used: 1 });
  allowance.noteRows(rows.state);
  assertEquals(areKnown(), true);
  await time.advance(10);
  assertEquals(areKnown(), false);
  await time.advance(10_000);
  assertEquals(areKnown(), true);

  allowance.fail(new Error());
  assertEquals(areKnown(), false);
});

Deno.test("Allowance.decide() writes nothing if a row of the account is missing", () => {
  for (const missing of ["usage", "accounts"]) {
    const { rows, allowance } = leased(3);
    requests(allowance, 1);
    const rest: Rows = { get: (key) => key[0] === missing ? null : rows.get(key) };
    const never = () => {
      throw new Error("Nothing must be written");
    };
    const write: Write = { set: never, delete: never, bump: never };

    assertEquals(allowance.decide(rest, write, NOON, TIMES), undefined, missing);
  }
});

Deno.test("Allowance.decide() counts no more strikes than are needed for a ban", () => {
  const full = { used: 2, usedToday: 2 };
  const { rows, allowance } = allowanceOf({ limits: { minute: 2, day: 99 } }, full);
  allowance.refuse(NOON, LATE);
  requests(allowance, 10);

  const { strikes, refusedToday } = transact(allowance, rows);

  assertEquals([strikes, refusedToday], [3, 4]);
});

Deno.test("Allowance.refuse() returns undefined if a request may be granted, or would start a ban", async () => {
  using time = new VirtualTime();
  const limits = { minute: 2, day: 99 };
  const full = allowanceOf({ limits }, { used: 2, usedToday: 2 }).allowance;
  const refusals = [1, 2, 3, 4].map(() => full.refuse(NOON, LATE)?.refusal);
  assertEquals(refusals, ["minute", "minute", "minute", undefined]);
  const leasedByOthers = { used: 2, usedToday: 2, leased: 1, leasedToday: 1 };
  assertEquals(allowanceOf({ limits }, leasedByOthers).allowance.refuse(NOON, LATE), undefined);

  const { rows, allowance } = leased(2, { limits });
  const permits = [take(allowance), take(allowance)];
  const replies = requests(allowance, 1);
  transact(allowance, rows);
  await time.advance(PATIENCE);
  transact(allowance, rows);
  assertEquals(await outcomes(replies), ["minute"]);

  // Other processes hold no permits any more, but this process may withdraw its own, and then does.
  assertEquals(allowance.refuse(NOON, LATE), undefined);
  for (const permit of permits) allowance.withdraw(permit);
  assertEquals(allowance.refuse(NOON, LATE), undefined);
});

Deno.test("Allowance.usageWithoutLease() counts a used permit", () => {
  const { rows, allowance } = leased(3);
  allowance.confirm(take(allowance));

  const { used, leased: stillLeased } = allowance.usageWithoutLease(rows.usage, rows.state.usageRow, false);

  assertEquals([used, stillLeased], [1, 1]);
});

Deno.test("Allowance.decide() gives permits back to the minute in which they were taken", () => {
  const { rows, allowance } = leased(1);
  const permit = take(allowance);
  rows.changeUsage({ minute: LATER, used: 3, usedToday: 4, leased: 3, leasedToday: 4 });
  const { run } = decide(allowance, rows, { ...TIMES, span: 0 });
  apply(allowance, rows, { ...run, ahead: 3, usage: rows.usage });
  allowance.withdraw(permit);
  rows.changeAccount({ limits: { minute: 900, day: 9_000 } });
  allowance.noteRows(rows.state);

  const { used, usedToday, leased: ofMinute, leasedToday } = transact(allowance, rows, { ...TIMES, span: 0 });

  assertEquals([used, usedToday, ofMinute, leasedToday], [0, 0, 0, 0]);
});

for (
  const [what, usage, account, refusal] of [
    ["nothing else has changed", {}, {}, "minute"],
    ["the day is also full", { usedToday: 3 }, {}, undefined],
    ["the account has changed", {}, { name: "Ben" }, undefined],
  ] as const
) {
  Deno.test(`Allowance.refuse() returns ${refusal} after an unsuccessful wait if ${what}`, async () => {
    using time = new VirtualTime();
    const full = { used: 2, usedToday: 2, leased: 1, leasedToday: 1 };
    const { rows, allowance } = allowanceOf({ limits: { minute: 2, day: 3 } }, full);
    const replies = requests(allowance, 1);
    transact(allowance, rows);
    await time.advance(PATIENCE);
    transact(allowance, rows);
    assertEquals(await outcomes(replies), ["minute"]);

    rows.changeUsage(usage);
    if ("name" in account) rows.changeAccount(account);
    allowance.noteRows(rows.state);

    assertEquals(allowance.refuse(NOON, LATE)?.refusal, refusal);
  });
}

for (
  const [what, limits, usage, now] of [
    ["was reset", { minute: 2, day: 2 }, { epoch: 1 }, NOON],
    ["got higher limits", { minute: 5, day: 99 }, { used: 5, usedToday: 5, leased: 2, leasedToday: 2 }, NOON],
    ["got higher limits, and an hour later", { minute: 2, day: 99 }, {
      minute: NOON + 3_600_000,
      leased: 2,
    }, NOON + 3_600_000],
  ] as const
) {
  Deno.test(`Allowance.apply() lets requests wait for others' permits again after the account ${what}`, async () => {
    using time = new VirtualTime();
    const counts = { used: 2, usedToday: 2, leased: 1, leasedToday: 1 };
    const { rows, allowance } = allowanceOf({ limits: { minute: 2, day: 2 } }, counts);
    const lost = requests(allowance, 1);
    transact(allowance, rows);
    await time.advance(PATIENCE);
    transact(allowance, rows);
    assertEquals([...await outcomes(lost), allowance.isAwaiting], ["day", false]);

    rows.changeAccount({ limits });
    rows.changeUsage(usage);
    requests(allowance, 1);
    transact(allowance, rows, TIMES, now);

    assertEquals(allowance.isAwaiting, true);
  });
}
