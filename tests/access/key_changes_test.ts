import { assertEquals } from "@std/assert";
import type { ApiKey } from "../../src/access/api_key.ts";
import type { IssuedKey, KeyStore } from "../../src/access/key_store.ts";
import { PLAN_LIMITS } from "../../src/access/plans.ts";
import { Harness, NOON } from "../harness.ts";
import { call, callAtOnce, type Reply } from "./replies.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** How many requests bring a new key of the Free plan into a condition. */
const CONDITIONS = { "in use": 1, "exhausted": 60, "banned": 121 } as const;

/** The next reply in each condition: status, then requests left, or code and limit of the error. */
type Expected = Readonly<Record<keyof typeof CONDITIONS, string>>;

interface Change {
  readonly name: string;
  readonly apply: (keys: KeyStore, id: string) => Promise<ApiKey | IssuedKey | undefined>;
  /** What the key's secret is told next. */
  readonly next: Expected;
  /** What the new secret, if there is one, is told after that. */
  readonly renewed?: Expected;
}

const INVALID = "401 invalid_api_key 60";
const EXHAUSTED = "429 rate_limit_minute 60";
const BANNED = "429 key_banned 60";
const REVOKED: Expected = { "in use": INVALID, "exhausted": INVALID, "banned": INVALID };

const changes: readonly Change[] = [
  {
    name: "revoked",
    apply: (keys, id) => keys.revoke(id, NOON),
    next: REVOKED,
  },
  {
    name: "rotated",
    apply: (keys, id) => keys.rotate(id, 0, NOON),
    next: REVOKED,
    renewed: { "in use": "200 58", "exhausted": EXHAUSTED, "banned": BANNED },
  },
  {
    name: "rotated with a grace period",
    apply: (keys, id) => keys.rotate(id, HOUR, NOON),
    next: { "in use": "200 58", "exhausted": EXHAUSTED, "banned": BANNED },
    renewed: { "in use": "200 57", "exhausted": EXHAUSTED, "banned": BANNED },
  },
  {
    name: "moved to a higher plan",
    apply: (keys, id) => keys.setPlan(id, "pro", PLAN_LIMITS.pro),
    next: { "in use": "200 298", "exhausted": "200 239", "banned": "429 key_banned 300" },
  },
  {
    name: "moved to a lower plan",
    apply: (keys, id) => keys.setPlan(id, "enterprise", { minute: 1, day: 1_000 }),
    next: {
      "in use": "429 rate_limit_minute 1",
      "exhausted": "429 rate_limit_minute 1",
      "banned": "429 key_banned 1",
    },
  },
  {
    name: "unbanned",
    apply: (keys, id) => keys.unban(id),
    next: { "in use": "200 58", "exhausted": EXHAUSTED, "banned": EXHAUSTED },
  },
];

function describe({ status, code, limit, remaining }: Reply): string {
  return code === "" ? `${status} ${remaining}` : `${status} ${code} ${limit}`;
}

for (const { name, apply, next, renewed } of changes) {
  Deno.test(`Limiter notices at the next request that a key was ${name}`, async (t) => {
    for (const [condition, requests] of Object.entries(CONDITIONS) as [keyof typeof CONDITIONS, number][]) {
      for (const where of ["by the same process", "by another process"]) {
        await t.step(`${condition}, ${where}`, async () => {
          using service = await Harness.open();
          const { key: { id }, secret } = await service.issueKey("free");
          await callAtOnce(requests, [service], secret);

          const keys = where === "by the same process" ? service.keys : new Harness(service.kv).keys;
          const changed = await apply(keys, id);

          assertEquals(describe(await call(service, secret)), next[condition]);
          assertEquals(changed && "secret" in changed, renewed !== undefined);
          if (changed && "secret" in changed) {
            assertEquals(describe(await call(service, changed.secret)), renewed?.[condition]);
          }
        });
      }
    }
  });
}

Deno.test("Limiter notices a change of the key that another process makes between all requests", async () => {
  using service = await Harness.open();
  const { key: { id }, secret } = await service.issueKey("free");
  const { keys } = new Harness(service.kv);

  for (let minute = 61; minute <= 80; minute++) {
    await keys.setPlan(id, "enterprise", { minute, day: 1_000 });
    assertEquals((await call(service, secret)).limit, minute);
  }
});

Deno.test("Limiter loses no request when the key is changed while many are under way", async () => {
  using service = await Harness.open();
  const { key: { id }, secret } = await service.issueKey("free");
  const { keys } = new Harness(service.kv);
  const limits = { minute: 500, day: 1_000 };
  await keys.setPlan(id, "enterprise", limits);

  const replies = (await Promise.all(Array.from({ length: 20 }, async (_, round) => {
    if (round % 2 === 0) await keys.setPlan(id, "enterprise", limits);
    return await callAtOnce(20, [service], secret);
  }))).flat();

  assertEquals(replies.filter(({ status }) => status !== 200), []);
  assertEquals((await keys.find(id))?.usage.minuteUsed, 400);
  assertEquals((await call(service, secret)).remaining, 99);
});
