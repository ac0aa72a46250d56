import { assertEquals, assertGreater } from "@std/assert";
import { Store } from "../../src/kv/store.ts";
import { Harness } from "../harness.ts";
import { assertExact, createMany } from "./creations.ts";
import { carryOut, type Disturbance, disturbed, locked } from "./disturbed_kv.ts";
import { seededRandom } from "../seeded_random.ts";

interface Trouble {
  readonly name: string;
  /** A disturbance that counts through `happened` how often it struck. */
  readonly disturbance: (random: () => number, happened: () => void) => Disturbance;
}

const troubles: readonly Trouble[] = [
  {
    name: "replies get lost and the client repeats the commit",
    disturbance: (random, happened) => ({
      commit: async ({ apply }) => {
        const result = await apply();
        if (random() > 0.4) return result;
        happened();
        return await apply();
      },
    }),
  },
  {
    name: "the file is locked for most commits",
    disturbance: (random, happened) => ({
      commit: (commit) => {
        if (random() > 0.7) return carryOut(commit);
        happened();
        return locked();
      },
    }),
  },
  {
    name: "replies get lost and the file is locked",
    disturbance: (random, happened) => ({
      commit: async ({ apply }) => {
        if (random() < 0.3) return await locked();
        const result = await apply();
        if (random() > 0.3) return result;
        happened();
        return await apply();
      },
    }),
  },
];

for (const { name, disturbance } of troubles) {
  Deno.test(`Store.commit() loses no admission or creation and counts none twice when ${name}`, async (t) => {
    for (const [instances, seed] of [[1, 20270115], [2, 731]] as const) {
      await t.step(`${instances} on one KV`, async () => {
        using kv = await Deno.openKv(":memory:");
        let struck = 0;
        const rough = disturbed(kv, disturbance(seededRandom(seed), () => struck++));
        const services = Array.from(
          { length: instances },
          () => new Harness(rough, new Store(rough, { maxChecks: 10 })),
        );
        const calm = new Harness(kv);
        const { key: { id }, secret } = await calm.issueKey("business");

        const responses = await createMany(services, secret, { callers: 10, each: 50 });

        await assertExact(calm, id, responses);
        assertGreater(struck, 20);
      });
    }
  });
}

Deno.test("Limiter counts each of many keys exactly when replies get lost in several commits at once", async () => {
  using kv = await Deno.openKv(":memory:");
  const random = seededRandom(35);
  const rough = disturbed(kv, {
    commit: async ({ apply }) => {
      const result = await apply();
      return random() < 0.5 ? await apply() : result;
    },
  });
  const service = new Harness(rough, new Store(rough, { maxChecks: 10 }));
  const keys = await Promise.all(Array.from({ length: 60 }, () => service.issueKey("free")));

  for (let round = 1; round <= 20; round++) {
    const replies = await Promise.all(
      keys.map(({ secret: key }) => service.fetch("GET /v1/nowhere", { key })),
    );

    const remaining = new Set(replies.map(({ headers }) => headers.get("x-ratelimit-remaining")));
    assertEquals(remaining, new Set([`${60 - round}`]));
  }
});
