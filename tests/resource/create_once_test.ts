import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { hash } from "node:crypto";
import { pause } from "../../src/base/time.ts";
import { encodeText } from "../../src/engine/mod.ts";
import { quickEtagOf } from "../../src/web/etag.ts";
import { carryOut, type Commit, onFile } from "../support/fake_kv.ts";
import { RecordingService } from "../support/harness.ts";
import { HAMMER } from "../support/things.ts";
import { JSON_TYPE } from "../support/client.ts";
import { Workshop } from "../support/workshop.ts";

const DAY = 86_400_000;
const ONCE = { "idempotency-key": "once" };
const CREATE = "POST /v1/things";

function isReplay({ headers }: Response): boolean {
  return headers.get("idempotency-replayed") === "true";
}

Deno.test("createThing() replays its first reply for a day, even after the key was rotated and the thing removed", async () => {
  await using workshop = await Workshop.open();
  const { account, apiKey } = await workshop.createAccount();
  const first = await workshop.fetch(CREATE, { key: apiKey, json: HAMMER, headers: ONCE });
  const { apiKey: key = "" } = await workshop.accounts.rotate(account.id) ?? {};
  await workshop.fetch("DELETE /v1/things/1", { key });

  workshop.now += DAY - 1;
  const again = await workshop.fetch(CREATE, { key, json: HAMMER, headers: { "idempotency-key": '"once"' } });
  workshop.now += 1;
  const other = { key, json: { ...HAMMER, weight: 1 }, headers: ONCE };
  const later = [await workshop.fetch(CREATE, other), await workshop.fetch(CREATE, other)];

  assertEquals([first, again, ...later].map(isReplay), [false, true, false, true]);
  for (const name of ["content-type", "location", "content-location", "etag"]) {
    assertEquals(again.headers.get(name), first.headers.get(name));
  }
  assertNotEquals(again.headers.get("x-request-id"), first.headers.get("x-request-id"));
  assertEquals([again.status, await again.text()], [201, await first.text()]);
  assertEquals(await workshop.ids(), [2]);
});

/** Bodies that mean the same: in another order, with other spaces and numbers, a default, and an ignored field. */
const ALIKE = [
  '{"name":"Hammer","weight":700}',
  '{ "weight" : 7e2, "name" : "\\u0048ammer" }',
  '{"isSpare":false,"name":"Hammer","state":"new","weight":700.0,"more":[1]}',
];
const OTHERS = [
  '{"name":"Hammer","weight":701}',
  '{"name":"Hammer","weight":700,"isSpare":true}',
  '{"name":"Hammer","weight":700,"labels":[]}',
];

/** Sends bodies with the same key, one after the other. Resolves to `replay` or the status of each response. */
async function outcomes(workshop: Workshop, bodies: readonly string[]): Promise<(string | number)[]> {
  const found: (string | number)[] = [];
  for (const body of bodies) {
    const response = await workshop.call(CREATE, { body, headers: { ...JSON_TYPE, ...ONCE } });
    await response.text();
    found.push(isReplay(response) ? "replay" : response.status);
  }
  return found;
}

Deno.test.each(ALIKE)(
  "createThing() replays its reply to %s for other bodies that mean it",
  async (first) => {
    await using workshop = await Workshop.open();

    assertEquals(await outcomes(workshop, [first, ...ALIKE]), [201, "replay", "replay", "replay"]);
    assertEquals(await outcomes(workshop, OTHERS), [422, 422, 422]);
    assertEquals(await workshop.ids(), [1]);
  },
);

Deno.test("createThing() stores the hash of the bytes, too, by which an earlier release replays, and replays by it alone", async () => {
  await using workshop = await Workshop.open();
  const sent = '{"weight":700,"state":"used","isSpare":false,"name":"Hammer"}';
  await outcomes(workshop, [sent]);
  const [row] = await Array.fromAsync(workshop.kv.list<Uint8Array>({ prefix: ["idempotency"] }));
  assert(row);
  const [head = "", body = ""] = new TextDecoder().decode(row.value).split("\n");
  const { meaning, ...earlier } = JSON.parse(head);
  const location = "http://localhost:8000/v1/things/1";

  assertEquals(earlier, {
    status: 201,
    headers: { location, "content-location": location, etag: quickEtagOf(body) },
    fingerprint: hash("sha256", sent),
    expiresAt: workshop.now + DAY,
  });
  // Without defaults and in order of name, so a release can add fields with a default, and move others.
  assertEquals(meaning, hash("sha256", '[["name","Hammer"],["state","used"],["weight",700]]'));
  await workshop.kv.set(row.key, encodeText(`${JSON.stringify(earlier)}\n${body}`));
  assertEquals(await outcomes(workshop, [sent, sent.replace("700", "7e2")]), ["replay", 422]);
});

Deno.test("createThing() gives the id of a replay and of a refused request to the next thing, and unused ones to the next process", async () => {
  await using workshop = await Workshop.open();

  await outcomes(workshop, [...ALIKE, ...OTHERS, ...ALIKE]);

  assertEquals(await workshop.add({}, {}), [2, 3]);
  await workshop.app.close();
  await using later = workshop.beside();
  assertEquals(await later.add({}), [4]);
});

Deno.test("createThing() creates another thing for a different key or account, or without a key", async () => {
  await using workshop = await Workshop.open();
  const { apiKey } = await workshop.createAccount();
  const create = (key: string, once?: string) =>
    workshop.fetch(CREATE, { key, json: HAMMER, headers: once ? { "idempotency-key": once } : {} });

  const responses = [await create(apiKey, "once")];
  for (const key of ["once", "Once", "k".repeat(255), "", ""]) {
    responses.push(await create(workshop.key, key));
  }

  assertEquals(responses.map(({ status }) => status), Array(6).fill(201));
  assertEquals(responses.filter(isReplay), []);
  assertEquals(await workshop.ids(), [1, 2, 3, 4, 5, 6]);
});

Deno.test("createThing() never draws an id again if it is in doubt whether its thing was created", async () => {
  await using service = await RecordingService.open();
  const { time } = service;
  const { apiKey: key } = await service.createAccount();
  const create = (headers = {}) => time.until(service.fetch(CREATE, { key, json: HAMMER, headers }), 6_000);
  await create();
  // The commit that creates the second thing applies, but that is known too late.
  service.disturbance = {
    async commit(commit) {
      const result = await commit.apply();
      if (commit.keys.some(([kind]) => kind === "items")) await pause(20_000);
      return result;
    },
  };
  service.expectsErrors = true;

  const second = await create(ONCE);
  await time.advance(20_000);
  service.disturbance = {};
  const third = await create();

  assertEquals([second.status, third.status], [503, 201]);
  assertEquals((await third.json()).id, 3);
});

/** Adds a thing with an Idempotency-Key. Resolves to whether the reply was replayed. */
async function create(workshop: Workshop, key: string): Promise<boolean> {
  return isReplay(await workshop.call(CREATE, { json: HAMMER, headers: { "idempotency-key": key } }));
}

/** Removes some of the replies that have expired by `now`. Resolves to whether there may be more. */
async function sweep({ app }: Workshop, now: number): Promise<boolean | undefined> {
  return await app.sweeps[0]?.(now);
}

/** The keys of stored replies. Asserts that as many expiries are stored. */
async function keptIn({ kv }: Workshop): Promise<unknown[]> {
  const [replies = [], expiries] = await Promise.all(
    ["idempotency", "idempotency_by_expiry"].map((kind) => Array.fromAsync(kv.list({ prefix: [kind] }))),
  );
  assertEquals(expiries?.length, replies.length);
  return replies.map(({ key }) => key.at(-1));
}

Deno.test("service sweeps the replies that expired first, in as many commits per step as there are lanes, each within KV's limit of checks", async () => {
  await using workshop = await Workshop.open();
  const checks: number[] = [];
  await using other = workshop.beside({
    disturbance: { commit: (commit) => (checks.push(commit.checks), carryOut(commit)) },
    // Three checks per commit, one of them for the schema version.
    backend: (kv, options) => Object.assign(onFile(kv, options), { maxChecks: 3, lanes: 10 }),
  });
  for (let count = 0; count < 25; count++) {
    await create(workshop, `key${count}`);
    workshop.now++;
  }
  workshop.now += DAY;
  await create(workshop, "alive");

  assertEquals(await sweep(other, workshop.now), true);
  assertEquals(await keptIn(workshop), ["alive", "key20", "key21", "key22", "key23", "key24"]);
  for (const _ of ["then", "later"]) {
    assertEquals([await sweep(other, workshop.now), await keptIn(workshop)], [false, ["alive"]]);
  }

  assertEquals(Math.max(...checks), 3);
  assertEquals([await create(workshop, "alive"), await create(workshop, "key0")], [true, false]);
});

Deno.test("service keeps the newer reply to a key that was used again, before or during the sweep", async () => {
  await using workshop = await Workshop.open();
  for (const key of ["before", "during"]) await create(workshop, key);
  workshop.now += DAY;
  await create(workshop, "before");
  let isRenewed = false;
  const commit = async ({ apply, checks }: Commit) => {
    if (checks > 1 && !isRenewed) isRenewed = !await create(workshop, "during");
    return await apply();
  };
  await using other = workshop.beside({ disturbance: { commit } });

  assertEquals([await sweep(other, workshop.now + 1), isRenewed], [true, true]);
  assertEquals(await sweep(other, workshop.now + 1), false);

  assertEquals([await create(workshop, "before"), await create(workshop, "during")], [true, true]);
  assertEquals(await keptIn(workshop), ["before", "during"]);
  await sweep(workshop, workshop.now + DAY + 1);
  assertEquals(await keptIn(workshop), []);
});
