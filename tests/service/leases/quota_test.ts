import { assert, assertEquals, assertGreater, assertNotEquals } from "@std/assert";
import type { Account } from "../../../src/accounts/account.ts";
import type { AccountState } from "../../../src/accounts/account_state.ts";
import { pardon, roll, UNUSED, type Usage } from "../../../src/accounts/usage.ts";
import { AGAIN } from "../../../src/kv/retried.ts";
import { leaseTimes } from "../../../src/leases/held_leases.ts";
import { Quota } from "../../../src/leases/quota.ts";
import { Harness } from "../../support/harness.ts";
import { NOON, VirtualTime } from "../../support/time.ts";

/** What the rows of an account tell, both of this version. */
function stateOf(account: Account, usage: Usage, version = "1"): AccountState {
  return { account, accountVersionstamp: version, usage, usageVersionstamp: version };
}

Deno.test("Quota.apply() takes over no version of the row that is older than the one seen: an unban stays", async () => {
  await using service = await Harness.open();
  const { account } = await service.createAccount({ minute: 2, day: 99 });
  const times = leaseTimes(0, false);
  const quota = new Quota(stateOf(account, roll(UNUSED, NOON)));
  const replies = Array.from({ length: 5 }, () => quota.waiting.wait("1"));
  const proposal = quota.propose(NOON, times);

  quota.see(stateOf(account, pardon(proposal.usage), "3"));
  quota.apply(proposal, "2", NOON, times);

  assertEquals(proposal.usage.bannedUntil > NOON, true);
  const decisions = (await Promise.all(replies)).filter((decision) => decision !== AGAIN);
  assertEquals(decisions.map(({ refusal }) => refusal), [undefined, undefined, "minute", "minute", "ban"]);
  assertEquals(quota.admit(NOON)?.refusal, "minute");
  assertEquals(quota.needsCommit(NOON + 60_000), true);
});

Deno.test("Quota.apply() tells whoever waited of the limits that it was charged under", async () => {
  await using service = await Harness.open();
  const { account } = await service.createAccount({ minute: 2, day: 99 });
  const times = leaseTimes(0, false);
  const quota = new Quota(stateOf(account, roll(UNUSED, NOON)));
  const reply = quota.waiting.wait("1");
  const proposal = quota.propose(NOON, times);

  quota.see(stateOf({ ...account, limits: { minute: 60, day: 1_000 } }, { ...proposal.usage, used: 2 }, "3"));
  quota.apply(proposal, "2", NOON, times);

  const decision = await reply;
  assert(decision !== AGAIN);
  assertEquals([decision.minute.limit, decision.minute.remaining, decision.day?.limit], [2, 1, 99]);
});

Deno.test("Quota.admit() refuses from memory for the day, but not while a place is on its way back", async () => {
  await using service = await Harness.open();
  const { account } = await service.createAccount({ minute: 2, day: 2 });
  const { limits } = account;
  const quota = new Quota(stateOf(account, { ...UNUSED, minute: NOON, used: 2, usedToday: 2 }));

  assertEquals(quota.admit(NOON)?.refusal, "day");
  quota.held.giveBack({ epoch: 0, minute: NOON, size: 1, left: 0, limits, takenAt: 0, provisional: 1 });
  assertEquals(quota.admit(NOON), undefined);
});

/** A lease of two places, both handed out provisionally, that other limits have ended, as its row tells of it. */
function provisionalPlaces(account: Account) {
  const { limits } = account;
  const usage = { ...UNUSED, minute: NOON, used: 2, usedToday: 2, leased: 2, leasedToday: 2 };
  const quota = new Quota(stateOf(account, usage));
  const lease = { epoch: 0, minute: NOON, limits, size: 2, left: 0, provisional: 2, takenAt: Infinity };
  quota.held.replace([], lease);
  quota.see(stateOf({ ...account, limits: { minute: 2, day: 2 } }, usage, "2"));
  const settle = (version: string) => {
    const proposal = quota.propose(NOON, leaseTimes(0, false));
    quota.apply(proposal, version, NOON, leaseTimes(0, false));
    const { used, usedToday, leased, leasedToday } = proposal.usage;
    return { used, usedToday, leased, leasedToday };
  };
  return { held: quota.held, lease, settle };
}

Deno.test("Quota.propose() counts places as leased until no request can give them back", async () => {
  await using service = await Harness.open();
  const { held, lease, settle } = provisionalPlaces((await service.createAccount()).account);

  assertEquals(settle("3"), { used: 2, usedToday: 2, leased: 2, leasedToday: 2 });
  held.giveBack(lease);
  assertEquals(settle("4"), { used: 1, usedToday: 1, leased: 1, leasedToday: 1 });
  held.keep(lease);
  assertEquals(settle("5"), { used: 1, usedToday: 1, leased: 0, leasedToday: 0 });
  assertEquals(held.isEmpty, true);
});

Deno.test("HeldLeases.giveBack() hands out a place again while its lease stands", async () => {
  await using service = await Harness.open();
  const { account } = await service.createAccount();
  const usage = { ...UNUSED, minute: NOON, used: 1, usedToday: 1, leased: 1, leasedToday: 1 };
  const { held } = new Quota(stateOf(account, usage));
  const lease = {
    epoch: 0,
    minute: NOON,
    limits: account.limits,
    size: 1,
    left: 0,
    provisional: 1,
    takenAt: Infinity,
  };
  held.replace([], lease);

  held.giveBack(lease);

  assertEquals(held.withPlace(usage, account.limits, NOON), lease);
});

Deno.test("Quota.apply() leaves strikes alone that came after an account had changed", async () => {
  await using service = await Harness.open();
  const { account } = await service.createAccount({ minute: 9, day: 99 });
  const times = leaseTimes(0, false);
  const quota = new Quota(stateOf(account, { ...UNUSED, minute: NOON, used: 9, usedToday: 9 }));
  const refuse = (count: number) => Array.from({ length: count }, () => quota.admit(NOON));
  refuse(3);
  const proposal = quota.propose(NOON, times);

  quota.see(stateOf(account, proposal.usage, "2"));
  refuse(2);
  quota.apply(proposal, "2", NOON, times);

  assertEquals(quota.propose(NOON, times).usage.strikes, 3 + 2);
});

Deno.test.each(
  [
    ["keeps", {}, "1", 3],
    ["forgets", { minute: NOON + 60_000 }, "1", 0],
    ["forgets", { epoch: 1 }, "1", 0],
    ["forgets", {}, "2", 0],
  ] as const,
)(
  "Quota.see() %s strikes not yet written when usage differs by %j, account version %s",
  async (_, change, accountVersionstamp, strikes) => {
    await using service = await Harness.open();
    const { account } = await service.createAccount({ minute: 9, day: 99 });
    const usage = { ...UNUSED, minute: NOON, used: 9, usedToday: 9 };
    const quota = new Quota(stateOf(account, usage));
    for (let count = 0; count < 3; count++) quota.admit(NOON);

    quota.see({ ...stateOf(account, { ...usage, ...change }, "2"), accountVersionstamp });

    assertEquals(quota.propose(NOON, leaseTimes(0, false)).usage.strikes, strikes);
  },
);

Deno.test("Quota.propose() leases what the pace asks for", async () => {
  await using service = await Harness.open();
  const { account } = await service.createAccount({ minute: 1_000, day: 9_000 });
  const times = leaseTimes(0, false);
  const quota = new Quota(stateOf(account, { ...UNUSED, minute: NOON }));
  quota.apply(quota.propose(NOON, times), undefined, NOON, times);
  const lease = {
    ...UNUSED,
    limits: account.limits,
    minute: NOON,
    size: 500,
    left: 500,
    provisional: 0,
    takenAt: Infinity,
  };
  for (let count = 0; count < 100; count++) quota.take(lease, NOON);

  assertGreater(quota.propose(NOON, times).ahead, 0);
});

Deno.test("Quota.propose() leases sixteen for each request that was served, at most, however fast two came", async () => {
  using _time = new VirtualTime();
  await using service = await Harness.open();
  const { account } = await service.createAccount({ minute: 1_000, day: 9_000 });
  const times = leaseTimes(0, true);
  const quota = new Quota(stateOf(account, { ...UNUSED, minute: NOON }));
  quota.waiting.wait(quota.accountVersionstamp);
  quota.apply(quota.propose(NOON, times), "2", NOON, times);
  quota.waiting.wait(quota.accountVersionstamp);

  assertEquals(quota.propose(NOON, times).ahead, 16);
});

Deno.test("Quota.fail() forgets strikes, for they may be written", async () => {
  await using service = await Harness.open();
  const { account } = await service.createAccount({ minute: 9, day: 99 });
  const times = leaseTimes(0, false);
  const usage = { ...UNUSED, minute: NOON, used: 9, usedToday: 9 };
  const quota = new Quota(stateOf(account, usage));
  for (let count = 0; count < 3; count++) quota.admit(NOON);
  quota.propose(NOON, times);

  quota.fail(new Error());
  quota.see({ ...stateOf(account, { ...usage, strikes: 3 }), usageVersionstamp: "2" });

  assertEquals(quota.propose(NOON, times).usage.strikes, 3);
});

Deno.test("Quota.propose() turns away who was recognized before the account changed, and nobody else", async () => {
  await using service = await Harness.open();
  const { account } = await service.createAccount({ minute: 9, day: 99 });
  const times = leaseTimes(0, false);
  const usage = { ...UNUSED, minute: NOON };
  const quota = new Quota(stateOf(account, usage));
  const earlier = quota.waiting.wait(quota.accountVersionstamp);
  quota.see(stateOf(account, usage, "2"));
  const later = quota.waiting.wait(quota.accountVersionstamp);

  const proposal = quota.propose(NOON, times);
  quota.apply(proposal, "3", NOON, times);

  assertEquals(proposal.granted, 1);
  assertEquals(await earlier, AGAIN);
  assertNotEquals(await later, AGAIN);
});

Deno.test("Quota.see() takes over neither row where it is older than the one seen: a key that ended stays so", async () => {
  await using service = await Harness.open();
  const { account } = await service.createAccount("free");
  const quota = new Quota(stateOf(account, UNUSED));
  const closed = { ...account, closedAt: NOON };

  quota.see(stateOf(closed, UNUSED, "2"));
  quota.see({ ...stateOf(account, { ...UNUSED, used: 5 }, "3"), accountVersionstamp: "1" });
  assertEquals([quota.account, quota.usage.used], [closed, 5]);
  quota.see({ ...stateOf(account, UNUSED, "4"), usageVersionstamp: "2" });
  assertEquals([quota.account, quota.usage.used], [account, 5]);

  assertEquals([quota.accountVersionstamp, quota.usageVersionstamp], ["4", "3"]);
});

Deno.test("Quota.forget() keeps nothing that would have to be written", async () => {
  await using service = await Harness.open();
  const { account } = await service.createAccount("free");
  const times = leaseTimes(0, false);
  const quota = new Quota(stateOf(account, { ...UNUSED, minute: NOON }));
  quota.apply({ ...quota.propose(NOON, times), ahead: 3 }, "2", NOON, times);
  const waiting = quota.waiting.wait(quota.accountVersionstamp);
  assertEquals([quota.held.left, quota.isActive], [3, true]);

  quota.forget();

  assertEquals(await waiting, AGAIN);
  assertEquals([quota.held.left, quota.isActive], [0, false]);
});
