import { assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { openAccounts } from "../../src/accounts/plans.ts";
import { type Catalogue, ResourceError } from "../../src/resource/mod.ts";
import { operated, OPERATOR_TOKEN } from "../support/desk.ts";
import { Harness } from "../support/harness.ts";
import { OF_THINGS, PLANS } from "../support/things.ts";

const { free, pro } = PLANS.limits;
/** A later release, with other limits of a plan and one plan fewer. */
const LATER: Catalogue = {
  ...OF_THINGS,
  plans: { limits: { free: { minute: 9, day: 99 }, pro }, signUp: "free", own: "enterprise" },
};

Deno.test.each<[fault: string, change: Partial<Catalogue>]>([
  ["The plan Gold must have a name of lower-case letters, digits, _ and -.", {
    plans: { ...PLANS, limits: { free, Gold: pro } },
  }],
  ["The plan free must have limits from 1 to 1000000000000, not 0.", {
    plans: { ...PLANS, limits: { free: { minute: 0, day: 1 } } },
  }],
  ["The plan basic of sign-up must have limits: add it to limits, or name another.", {
    plans: { ...PLANS, signUp: "basic" },
  }],
  [
    "The plan pro must not have limits, because each of its accounts has its own: remove it from limits.",
    { plans: { ...PLANS, own: "pro" } },
  ],
  [
    "The key prefix A.s must be at most 12 lower-case letters and digits, such as my: keys then begin with my_live_.",
    { keyPrefix: "A.s" },
  ],
  [
    "The key prefix as must not be a former one, too: remove it from formerKeyPrefixes.",
    { formerKeyPrefixes: ["as"] },
  ],
])("openAccounts() refuses a catalogue: %s", async (fault, change) => {
  await using service = await Harness.open();

  const { message } = await assertRejects(
    () => openAccounts(service.store, { ...OF_THINGS, ...change }),
    ResourceError,
  );

  assertEquals(message, fault);
});

Deno.test("openAccounts() refuses a release without a plan that an account has, until the account is moved", async () => {
  await using service = await Harness.open();
  const { account: { id } } = await service.createAccount("business");
  const refused = () => assertRejects(() => openAccounts(service.store, LATER), ResourceError);

  const { message: ofUnknown } = await refused();
  await openAccounts(service.store, OF_THINGS);
  const { message } = await refused();
  await service.accounts.change(id, { plan: "pro", limits: pro });
  await openAccounts(service.store, LATER);

  assertEquals(ofUnknown, message);
  assertEquals(
    message,
    `Accounts have the plan business, such as ${id}, but this release does not declare it. Declare it in ` +
      "src/catalogue/plans.ts, or move these accounts first: deno task accounts plan ID PLAN.",
  );
});

Deno.test("openAccounts() reads accounts only if a plan is missing", async () => {
  await using service = await Harness.open();
  await service.createAccount("business");
  await openAccounts(service.store, OF_THINGS);
  const more = { ...PLANS, limits: { ...PLANS.limits, gold: pro } };
  const { list } = service.store;
  service.store.list = () => Promise.reject(new TypeError("Accounts are read"));

  await openAccounts(service.store, OF_THINGS);
  await openAccounts(service.store, { ...OF_THINGS, plans: more });

  await assertRejects(() => openAccounts(service.store, OF_THINGS), TypeError);
  service.store.list = list;
});

Deno.test("accounts apply-plans gives open accounts the limits of their plans, and can be repeated", async () => {
  await using before = await Harness.open();
  const [one, other, closed] = [
    await before.createAccount("free"),
    await before.createAccount("pro"),
    await before.createAccount("free"),
  ];
  const own = await before.createAccount({ minute: 7, day: 70 });
  for (let count = 0; count < 120; count++) await before.createAccount("free");
  await before.accounts.close(closed.account.id);
  await using later = before.beside({ catalogue: LATER, operatorToken: OPERATOR_TOKEN });
  const limitOf = async (key: string) =>
    (await later.fetch("GET /v1/things", { key })).headers.get("x-ratelimit-limit");
  const unchanged = await limitOf(one.apiKey);

  const first = await operated(later.app.fetch, ["accounts", "apply-plans"]);
  const again = await operated(later.app.fetch, ["accounts", "apply-plans"]);

  assertEquals(first.err, ["Checked 124 accounts, changed 121."]);
  assertEquals(again.err, ["Checked 124 accounts, changed 0."]);
  assertEquals(unchanged, "60");
  assertEquals(await Promise.all([one, other, own].map(({ apiKey }) => limitOf(apiKey))), ["9", "300", "7"]);
  assertEquals((await later.accounts.find(closed.account.id))?.holder.limits, free);
});

Deno.test("keys with a former prefix stay valid, are hidden, and are no longer issued", async () => {
  await using before = await Harness.open({ catalogue: { ...OF_THINGS, keyPrefix: "old" } });
  const { apiKey: key } = await before.createAccount("free");
  await using after = before.beside();

  const response = await after.fetch("GET /v1/things", { key });
  const echoed = await after.fetch(`GET /v1/account?${key}=1`, { key });
  const rotated = await after.fetch("POST /v1/account/key", { key });

  assertEquals([key.slice(0, 9), response.status], ["old_test_", 200]);
  assertStringIncludes(await echoed.text(), "[secret]");
  assertStringIncludes((await rotated.json()).apiKey, "as_test_");
});
