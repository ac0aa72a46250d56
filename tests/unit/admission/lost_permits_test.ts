import { assert, assertEquals } from "@std/assert";
import { type Account, accountKey } from "../../../src/accounts/account.ts";
import { decodeUsage, encodeUsage, UNUSED, type Usage, usageKey } from "../../../src/accounts/usage.ts";
import { Allowance, type LeaseTimes, PATIENCE } from "../../../src/admission/allowance.ts";
import { encodeJson, type Entry } from "../../../src/kv/row.ts";
import type { Write } from "../../../src/store/transaction.ts";
import { NOON, VirtualTime } from "../../support/time.ts";

const TIMES: LeaseTimes = { span: 200, renewal: 0, unchanged: 0, life: 250 };
const ACCOUNT: Account = {
  id: "acct_1",
  name: "Ann",
  environment: "staging",
  plan: "enterprise",
  limits: { minute: 2, day: 2 },
  signedUp: false,
  createdAt: 0,
  suspendedAt: null,
  closedAt: null,
  keyHash: "key",
  previousKey: null,
};

/** One allowance and its rows. */
class Fixture {
  version = 1;
  account: Account = ACCOUNT;
  usage: Usage;
  readonly allowance: Allowance;

  constructor(usage: Partial<Usage>) {
    this.usage = { ...UNUSED, minute: NOON, ...usage };
    this.allowance = new Allowance(this.state);
  }

  get accountRow(): Entry {
    return { key: accountKey("acct_1"), value: encodeJson(this.account), versionstamp: `${this.version}` };
  }

  get usageRow(): Entry {
    return { key: usageKey("acct_1"), value: encodeUsage(this.usage), versionstamp: `${this.version}` };
  }

  get state() {
    const { account, accountRow, usage, usageRow } = this;
    return { account, accountRow, usage, usageRow };
  }

  transact(now: number) {
    const write: Write = {
      set: (key, value) => {
        if (key[0] !== "usage") return;
        this.usage = decodeUsage({ key, value, versionstamp: "" });
        this.version++;
      },
      delete() {},
      add() {},
      bump() {},
      id: () => 0,
    };
    this.allowance.begin(now, TIMES);
    const rows = { get: (key: Deno.KvKey) => key[0] === "usage" ? this.usageRow : this.accountRow };
    const run = this.allowance.decide(rows, write, now, TIMES);
    assert(run);
    this.allowance.apply(
      run,
      [this.accountRow, this.usageRow].map((entry) => ({ key: entry.key, entry })),
      TIMES,
    );
  }
}

for (
  const [what, limits, usage, now] of [
    ["was reset", { minute: 2, day: 2 }, { epoch: 1 }, NOON],
    ["has higher limits", { minute: 5, day: 99 }, { used: 5, usedToday: 5, leased: 2, leasedToday: 2 }, NOON],
    ["has higher limits, an hour later", { minute: 2, day: 99 }, {
      minute: NOON + 3_600_000,
      leased: 2,
    }, NOON + 3_600_000],
  ] as const
) {
  Deno.test(`Allowance.apply() lets requests wait for permits of other processes again after the account ${what}`, async () => {
    using time = new VirtualTime();
    const fixture = new Fixture({ used: 2, usedToday: 2, leased: 1, leasedToday: 1 });
    const { allowance } = fixture;
    const lost = allowance.request({ hash: "key", now: NOON });
    fixture.transact(NOON);
    await time.advance(PATIENCE);
    fixture.transact(NOON);
    const decision = await lost;
    assert(typeof decision !== "symbol");
    assertEquals([decision.refusal, allowance.isAwaiting], ["day", false]);

    fixture.account = { ...fixture.account, limits };
    fixture.usage = { ...fixture.usage, ...usage };
    fixture.version++;
    allowance.request({ hash: "key", now: NOON });
    fixture.transact(now);

    assertEquals(allowance.isAwaiting, true);
  });
}
