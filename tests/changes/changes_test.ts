import { assert, assertEquals, assertMatch } from "@std/assert";
import { DAY, HOUR } from "../../src/base/mod.ts";
import { encodeJson, encodeText, Store, Transactions, Versions } from "../../src/engine/mod.ts";
import { type Catalogue, type ItemsIn, itemsOf, of, rebuild, resource } from "../../src/resource/mod.ts";
import { main } from "../../src/process/cli.ts";
import { assertError } from "../support/assertions.ts";
import { upTo } from "../support/client.ts";
import { OPERATOR_TOKEN } from "../support/desk.ts";
import { fail, onFile } from "../support/fake_kv.ts";
import { Follower, switchFeed } from "../support/feed.ts";
import { HAMMER } from "../support/things.ts";
import { seededRandom } from "../support/time.ts";
import type { Booking } from "../fork/catalogue/bookings.ts";
import type { Room } from "../fork/catalogue/rooms.ts";
import { Harness } from "../support/harness.ts";
import { BLUE, BOOKINGS, idIn, OF_ROOMS, Office, REVIEW, ROOMS } from "../support/office.ts";

/** An office with the feed on. */
async function openOffice(options: Parameters<typeof Office.open>[0] = {}): Promise<Office> {
  const office = await Office.open(options);
  await switchFeed(office);
  return office;
}

/** The stamps of a log's rows. */
async function stampsOf({ kv }: Office, ...log: string[]): Promise<string[]> {
  const rows = await Array.fromAsync(kv.list({ prefix: ["changes", ...log] }));
  return rows.map(({ key }) => String(key.at(-1)));
}

/** Changes rooms and bookings of Ann's in one commit, as an operator. */
async function changeTogether(
  office: Office,
  change: (items: { readonly rooms: ItemsIn<Room>; readonly bookings: ItemsIn<Booking> }) => unknown,
): Promise<void> {
  const { kv, now } = office;
  const store = new Store(onFile(kv, { clock: () => now }));
  const transactions = new Transactions(store, () => now);
  const all = itemsOf(OF_ROOMS, { store, transactions, versions: new Versions(store) });
  const [rooms, bookings] = [all.find(of(ROOMS)), all.find(of(BOOKINGS))];
  assert(rooms && bookings);
  const acting = { by: "operator", accountId: "", now } as const;
  await transactions.run({
    decide(rows, write) {
      change({ rooms: rooms.in(rows, write, acting), bookings: bookings.in(rows, write, acting) });
      return null;
    },
  });
  await Promise.all(all.map(({ ids }) => ids.close()));
}

/** Adds a room for everyone and a booking of Ann's in one commit. */
async function addTogether(office: Office): Promise<void> {
  const ann = await office.idOf(office.ann);
  await changeTogether(office, ({ rooms, bookings }) => {
    rooms.add(BLUE, "");
    bookings.add(REVIEW, ann);
  });
}

/**
 * A KV that calls `happen` once, between the lists of two logs: after everyone's has been read, and before the second,
 * by default that of an account.
 */
function betweenLists(kv: Deno.Kv, happen: () => Promise<unknown>, second: string = "account"): Deno.Kv {
  const { promise: isRead, resolve } = Promise.withResolvers<void>();
  let left = 1;
  async function* list(selector: Deno.KvListSelector, options: Deno.KvListOptions) {
    const name = "start" in selector ? String(selector.start[1]) : "";
    const isSecond = name === second && left-- > 0;
    if (isSecond) {
      await isRead;
      await happen();
    }
    const rows = await Array.fromAsync(kv.list(selector, options));
    if (name === "everyone") resolve();
    yield* rows;
  }
  return new Proxy(kv, {
    get(target, name) {
      const method: unknown = name === "list" ? list : Reflect.get(target, name);
      return typeof method === "function" ? method.bind(target) : method;
    },
  });
}

Deno.test("listChanges() returns changes_off while the feed is off, also to a cursor from before", async () => {
  await using office = await Office.open();
  for (const target of ["GET /v1/changes", "GET /v1/changes?limit=5"]) {
    await assertError(await office.fetch(target, { key: office.ann }), 409, "changes_off");
  }
  await assertError(await office.operate("GET /operator/v1/changes"), 409, "changes_off");
  assertEquals(await stampsOf(office), []);
  await switchFeed(office);
  const [ann, operator] = [await Follower.start(office, office.ann), await Follower.start(office)];
  await office.addRooms(1);
  await switchFeed(office, 0);

  for (const follower of [ann, operator]) {
    await assertError(await follower.ask(`?after=${follower.cursor}`), 409, "changes_off");
    await assertError(await follower.ask(""), 409, "changes_off");
  }
});

Deno.test("listChanges() has each change once, in order and without content, and none of what changes nothing", async () => {
  await using office = await openOffice();
  const [ann, operator] = [await Follower.start(office, office.ann), await Follower.start(office)];
  office.now += HOUR;
  const once = { headers: { "idempotency-key": "1" } };

  await office.book(office.ann, {}, once);
  await office.book(office.ann, {}, once);
  await office.fetch("PATCH /v1/bookings/1", { key: office.ann, json: { title: "Planning" } });
  await office.fetch("PATCH /v1/bookings/1", { key: office.ann, json: { title: "Planning" } });
  await office.fetch("PATCH /v1/bookings/1", { key: office.ben, json: { title: "Mine" } });
  await office.book(office.ann, { roomId: 99 });
  await office.fetch("DELETE /v1/bookings/1", { key: office.ann });

  const response = await ann.ask(`?after=${ann.cursor}`);
  assertEquals(response.headers.get("cache-control"), "no-store");
  const { changes, cursor, more, ...others } = await response.json();
  const at = "2027-01-15T13:00:00.000Z";
  const expected = ["created", "updated", "deleted"].map((change) => ({
    ...{ collection: "bookings", id: 1, change, at },
  }));
  assertEquals([changes, more, others], [expected, false, {}]);
  const { changes: all, days } = await (await operator.ask(`?after=${operator.cursor}`)).json();
  const accountId = await office.idOf(office.ann);
  assertEquals([all, days], [expected.map((change) => ({ ...change, accountId })), 7]);
  assertEquals(await Object.assign(ann, { cursor }).all(), []);
});

Deno.test("listChanges() has the changes of operators, and those of an item of nobody for those who see it", async () => {
  await using office = await openOffice();
  const [ann, ben, operator] = await Promise.all(
    [office.ann, office.ben, OPERATOR_TOKEN].map((key) => Follower.start(office, key)),
  );
  const accountId = await office.idOf(office.ann);

  const [room = 0] = await office.addRooms(1);
  await office.operate(`PATCH /operator/v1/rooms/${room}`, { json: { seats: 9 } });
  await office.operate(`DELETE /operator/v1/rooms/${room}`);
  const owned = await idIn(await office.operate("POST /operator/v1/rooms", { json: { ...BLUE, accountId } }));
  await office.operate("POST /operator/v1/bookings", { json: { ...REVIEW, accountId } });
  await changeTogether(office, ({ bookings }) => bookings.add(REVIEW, ""));
  await office.operate("PATCH /operator/v1/bookings/1", { json: { title: "Planning" } });
  await office.operate("DELETE /operator/v1/bookings/1");

  const ofRoom = [
    `created rooms ${room}`,
    `updated rooms ${room}`,
    `deleted rooms ${room}`,
    `created rooms ${owned}`,
  ];
  const ofAnn = ["created bookings 1", "updated bookings 1", "deleted bookings 1"];
  assertEquals(await ann?.all(), [...ofRoom, ...ofAnn]);
  assertEquals(await ben?.all(), ofRoom);
  const [created = "", ...others] = ofAnn;
  const all = await operator?.all();
  assertMatch(all?.splice(5, 1)[0] ?? "", /^created bookings (?!1$)\d+$/);
  assertEquals(all, [...ofRoom, created, ...others]);
});

Deno.test("listChanges() has the deletion of an account's items, and of an item that cannot be read", async () => {
  await using office = await openOffice();
  office.expectsErrors = true;
  for (let count = 0; count < 3; count++) await office.book(office.ben);
  await office.addRooms(1);
  const id = await office.idOf(office.ben);
  await office.book(office.ann);
  const [ann, operator] = [await Follower.start(office, office.ann), await Follower.start(office)];
  await office.kv.set(["items", "rooms", 2], encodeJson("no room"));
  await office.kv.set(["items", "bookings", 3], encodeJson("no booking"));
  await office.kv.set(["items", "bookings", 4], encodeText(`{"id":4}\n${await office.idOf(office.ann)}`));

  await office.operate("DELETE /operator/v1/rooms/2");
  await office.operate("DELETE /operator/v1/bookings/4");
  await office.operate(`POST /operator/v1/accounts/${id}/close`);
  office.now += HOUR;
  await office.operate(`DELETE /operator/v1/accounts/${id}`);

  assertEquals(await ann.all(), ["deleted rooms 2", "deleted bookings 4"]);
  const [room, ...bookings] = await operator.all();
  const expected = [1, 2, 3, 4].map((id) => `deleted bookings ${id}`);
  assertEquals([room, bookings.sort()], ["deleted rooms 2", expected]);
  assertEquals((await stampsOf(office, "account", id)).length > 0, true);
});

Deno.test("a row of everyone's log has nothing of an item's owner", async () => {
  await using office = await openOffice();
  const accountId = await office.idOf(office.ann);
  await office.operate("POST /operator/v1/rooms", { json: { ...BLUE, accountId } });

  const rows = await Array.fromAsync(office.kv.list<Uint8Array>({ prefix: ["changes", "everyone"] }));

  const names = rows.map(({ value }) => Object.keys(JSON.parse(new TextDecoder().decode(value))[0]));
  assertEquals(names, [["collection", "id", "change", "at"]]);
});

Deno.test("listChanges() never has another account's items, whether accounts read simultaneously or in turn", async () => {
  await using office = await openOffice();
  const ann = await Follower.start(office, office.ann);
  const ben = await Follower.start(office, office.ben);
  const mine: [string[], string[]] = [[], []];
  for (let round = 0; round < 10; round++) {
    const [first, second] = await Promise.all([office.book(office.ann), office.book(office.ben)]);
    mine[0].push(`created bookings ${await idIn(first)}`);
    mine[1].push(`created bookings ${await idIn(second)}`);
    const limit = round % 3 + 1;
    const seen = round % 2 === 0
      ? await Promise.all([ann.all(limit), ben.all(limit)])
      : [await ann.all(limit), await ben.all(limit)];
    assertEquals(seen, mine.map((all) => all.slice(-1)));
  }
  for (const [reader, other] of [[ann, ben], [ben, ann]] as const) {
    await assertError(
      await reader.ask(`?after=${other.cursor}`),
      400,
      "invalid_request",
      /after must be a cursor/,
    );
  }
  const operator = await Follower.start(office);
  await assertError(
    await operator.ask(`?after=${ann.cursor}`),
    400,
    "invalid_request",
    /after must be a cursor/,
  );
  await assertError(
    await ann.ask(`?after=${operator.cursor}`),
    400,
    "invalid_request",
    /after must be a cursor/,
  );
});

Deno.test("listChanges() misses nothing of a commit for everyone and an account between its two lists", async () => {
  await using office = await openOffice();
  const follower = await Follower.start(office, office.ann);
  await office.book(office.ann);
  const kv = betweenLists(office.kv, () => addTogether(office));
  await using reader = new Office(kv, { catalogue: OF_ROOMS, operatorToken: OPERATOR_TOKEN });
  reader.isFirst = false;

  const first = await follower.next(100, reader);
  assertEquals([first, follower.more], [["created bookings 1"], false]);
  const [room = "", booking = ""] = await follower.all(100, reader);
  assertMatch(`${room} ${booking}`, /^created rooms \d+ created bookings \d+$/);
});

Deno.test.each<[limit: number, isSeen: boolean, pages: readonly [changes: number, more: boolean][]]>([
  [2, true, [[2, true], [2, true], [2, false]]],
  [3, true, [[4, true], [2, false]]],
  // The horizon is a change of another account.
  [2, false, [[2, true], [2, true], [2, true], [0, false]]],
  [3, false, [[4, true], [2, false]]],
])(
  "listChanges() with the limit %i has whole commits, and says if there are more",
  async (limit, isSeen, expected) => {
    await using office = await openOffice();
    const follower = await Follower.start(office, office.ann);
    for (let count = 0; count < 3; count++) await addTogether(office);
    if (!isSeen) await office.book(office.ben);

    const pages: [number, boolean][] = [];
    do pages.push([(await follower.next(limit)).length, follower.more]); while (follower.more);

    assertEquals(pages, expected);
  },
);

Deno.test("listChanges() follows logs of more rows than it reads at a time, in the order of their commits", async () => {
  await using office = await openOffice();
  const [ann, operator] = [await Follower.start(office, office.ann), await Follower.start(office)];
  const expected: string[] = [];
  for (let count = 0; count < 260; count++) {
    const isBooking = count % 130 === 129;
    const id = isBooking ? await idIn(await office.book(office.ann)) : (await office.addRooms(1))[0];
    expected.push(`created ${isBooking ? "bookings" : "rooms"} ${id}`);
  }

  assertEquals(await ann.next(1_000), expected);
  assertEquals(ann.more, false);
  assertEquals(await operator.all(7), expected);
});

Deno.test("listChanges() reads at most 1,000 rows of changes that a restricted key does not see", async () => {
  await using office = await openOffice();
  const ann = await Follower.start(office, office.ann);
  const id = await office.idOf(office.ann);
  const entry = [{ collection: "rooms", id: 9, change: "created", at: office.now }];
  const logged = [{ ...entry[0], readableBy: "everyone", tag: "x" }];
  for (let count = 0; count < 1_100; count++) {
    await office.kv.atomic().set(["changes", "everyone", office.kv.commitVersionstamp()], encodeJson(entry))
      .set(["changes", "operators", office.kv.commitVersionstamp()], encodeJson(logged)).commit();
  }
  await office.book(office.ann);
  const { apiKey } = await office.accounts.addKey(id, {
    ...{ label: "bookings", scope: "read", collections: ["bookings"] },
  });
  const restricted = Object.assign(new Follower(office, apiKey), { cursor: ann.cursor });

  const pages: [number, boolean][] = [];
  do pages.push([(await restricted.next(5)).length, restricted.more]); while (restricted.more);

  assertEquals(pages, [[0, true], [0, true], [1, false]]);
  const waiting = await Object.assign(restricted, { cursor: ann.cursor }).ask(`?after=${ann.cursor}&wait=20`);
  const { changes, more } = await waiting.json();
  assertEquals([changes, more], [[], true]);
  assertEquals((await ann.all()).length, 1_101);
});

Deno.test("listChanges() leaves out collections that are not declared any more, or that the account must not read", async () => {
  await using office = await openOffice();
  const ann = await Follower.start(office, office.ann);
  const operator = await Follower.start(office);
  await office.addRooms(1);
  await office.book(office.ann);
  const catalogue: Catalogue = {
    ...OF_ROOMS,
    resources: [resource({ ...ROOMS, noun: ["a room", "rooms"], filters: [], readableBy: "owner" })],
  };
  await using later = office.beside({ catalogue });

  assertEquals(await ann.all(100, later), []);
  assertEquals(await operator.all(100, later), ["created rooms 2"]);
});

Deno.test.each<[what: string, query: string, field: string]>([
  ["no text", "after=", "after"],
  ["another text", "after=abc", "after"],
  ["a cursor with more", "after=CURSORx", "after"],
  ["a cursor with padding", "after=CURSOR=", "after"],
  ["two cursors", "after=CURSOR&after=CURSOR", "after"],
  ["0 as limit", "limit=0", "limit"],
  ["1,001 as limit", "after=CURSOR&limit=1001", "limit"],
  ["a fraction as limit", "limit=1.5", "limit"],
  ["an unknown parameter", "before=1", "before"],
])("listChanges() returns 400 to %s", async (_, query, field) => {
  await using office = await openOffice();
  const { cursor } = await Follower.start(office, office.ann);

  const response = await office.fetch(`GET /v1/changes?${query.replaceAll("CURSOR", cursor)}`, {
    key: office.ann,
  });

  await assertError(response, 400, "invalid_request", new RegExp(`The query parameter ${field} `));
});

Deno.test("listChanges() returns cursor_expired with the cursor of now, once changes after a cursor have been swept", async () => {
  await using office = await openOffice();
  const [ann, operator] = [await Follower.start(office, office.ann), await Follower.start(office)];
  await office.addRooms(1);
  office.now += 7 * DAY + 1;
  await office.addRooms(1);
  await sweep(office);

  for (const follower of [ann, operator]) {
    const response = await follower.ask(`?after=${follower.cursor}`);
    const { cursor } = await response.clone().json();
    await assertError(response, 410, "cursor_expired", /not kept/, ["cursor"]);
    follower.cursor = cursor;
  }
  await office.addRooms(1);
  for (const follower of [ann, operator]) assertEquals(await follower.all(), ["created rooms 4"]);
});

Deno.test("listChanges() goes on after eight quiet days, from a cursor that nothing followed", async () => {
  await using office = await openOffice();
  await office.addRooms(2);
  const ann = await Follower.start(office, office.ann);
  office.now += 8 * DAY;
  await sweep(office);
  assertEquals(await ann.all(), []);
  await office.addRooms(1);
  await sweep(office);

  assertEquals(await ann.all(), ["created rooms 4"]);
});

Deno.test("listChanges() returns cursor_expired if rows are swept between its lists and their beginning", async () => {
  await using office = await openOffice();
  const ann = await Follower.start(office, office.ann);
  await office.addRooms(2);
  await office.book(office.ann);
  office.now += 8 * DAY;
  await office.book(office.ann);
  const kv = betweenLists(office.kv, () => sweep(office));
  await using reader = new Office(kv, { catalogue: OF_ROOMS, operatorToken: OPERATOR_TOKEN });
  Object.assign(reader, { isFirst: false, now: office.now });

  await assertError(await ann.ask(`?after=${ann.cursor}`, reader), 410, "cursor_expired", /not kept/, [
    "cursor",
  ]);
});

Deno.test("listChanges() returns cursor_expired if a gap is swept before it is read", async () => {
  await using office = await openOffice();
  const ann = await Follower.start(office, office.ann);
  await office.addRooms(1);
  for (const days of [0, 7]) await switchFeed(office, days);
  await office.addRooms(1);
  office.now += 8 * DAY;
  await office.addRooms(1);
  const kv = betweenLists(office.kv, () => sweep(office), "gaps");
  await using reader = new Office(kv, { catalogue: OF_ROOMS, operatorToken: OPERATOR_TOKEN });
  Object.assign(reader, { isFirst: false, now: office.now });

  const response = await ann.ask(`?after=${ann.cursor}`, reader);

  await assertError(response, 410, "cursor_expired", /not kept/, ["cursor"]);
});

Deno.test("listChanges() returns changes_gap with the cursor of now, if the feed was off in between", async () => {
  await using office = await openOffice();
  const [ann, operator] = [await Follower.start(office, office.ann), await Follower.start(office)];
  await office.addRooms(1);
  await switchFeed(office, 0);
  await office.addRooms(1);
  await switchFeed(office, 7);
  await office.addRooms(1);

  for (const follower of [ann, operator]) {
    const response = await follower.ask(`?after=${follower.cursor}&limit=1`);
    const { cursor } = await response.clone().json();
    await assertError(response, 410, "changes_gap", /was off/, ["cursor"]);
    follower.cursor = cursor;
  }
  await office.addRooms(1);
  await switchFeed(office, 14);
  for (const follower of [ann, operator]) assertEquals(await follower.all(), ["created rooms 5"]);
});

Deno.test("listChanges() returns what was before, then changes_gap, if the feed was off between its lists", async () => {
  await using office = await openOffice();
  const ann = await Follower.start(office, office.ann);
  await office.addRooms(1);
  const kv = betweenLists(office.kv, async () => {
    for (const days of [0, 7]) await switchFeed(office, days);
  });
  await using reader = new Office(kv, { catalogue: OF_ROOMS, operatorToken: OPERATOR_TOKEN });
  reader.isFirst = false;

  assertEquals(await ann.next(100, reader), ["created rooms 2"]);
  await assertError(await ann.ask(`?after=${ann.cursor}`, reader), 410, "changes_gap", /was off/, ["cursor"]);
});

Deno.test.each<[what: string, readableBy: "owner" | "everyone", code: string]>([
  ["returns changes_gap after a rebuild that changes who may read a collection", "owner", "changes_gap"],
  ["goes on after any other rebuild", "everyone", ""],
])("listChanges() %s", async (_, readableBy, code) => {
  await using office = await openOffice();
  const ann = await Follower.start(office, office.ann);
  await office.addRooms(1);
  const rooms = resource({ ...ROOMS, noun: ["a room", "rooms"], filters: [], readableBy, extend: [] });
  const catalogue: Catalogue = { ...OF_ROOMS, resources: [rooms] };
  const store = new Store(onFile(office.kv, { clock: () => office.now }));
  await store.features();
  await rebuild(rooms, { catalogue, store, clock: () => office.now, notice() {} });
  await using later = office.beside({ catalogue });

  const response = await ann.ask(`?after=${ann.cursor}`, later);

  assertEquals((await response.json()).code ?? "", code);
});

Deno.test("rebuild() appends no gap while the feed is off", async () => {
  await using office = await Office.open();
  const rooms = resource({
    ...ROOMS,
    noun: ["a room", "rooms"],
    filters: [],
    readableBy: "owner",
    extend: [],
  });
  const catalogue: Catalogue = { ...OF_ROOMS, resources: [rooms] };
  const store = new Store(onFile(office.kv, { clock: () => office.now }));
  await store.features();

  await rebuild(rooms, { catalogue, store, clock: () => office.now, notice() {} });

  assertEquals(await stampsOf(office), []);
});

Deno.test("listChanges() returns 410 after a restore, whether the backup has the row of the cursor or not", async () => {
  const folder = await Deno.makeTempDir();
  await using stack = new AsyncDisposableStack();
  stack.defer(() => Deno.remove(folder, { recursive: true }));
  const start = async (name: string) =>
    new Harness(await Deno.openKv(`${folder}/${name}`), { operatorToken: OPERATOR_TOKEN });
  const run = (command: string, name: string) =>
    main(
      [command, `${folder}/backup`],
      (variable) => variable === "KV_PATH" ? `${folder}/${name}` : undefined,
      {
        ...{ clock: Date.now, input: () => Promise.resolve([]), out: () => Promise.resolve(), err() {} },
      },
    );
  const lost = await start("lost");
  const add = () => lost.fetch("POST /operator/v1/things", { key: OPERATOR_TOKEN, json: HAMMER });
  await lost.kv.set(["schema"], encodeJson({ version: 1 }));
  await switchFeed(lost);
  await add();
  const early = await Follower.start(lost);
  assertEquals(await run("backup", "lost"), 0);
  await add();
  const late = await Follower.start(lost);
  await lost[Symbol.asyncDispose]();

  assertEquals(await run("restore", "restored"), 0);

  await using restored = await start("restored");
  const ask = (follower: Follower) => follower.ask(`?after=${follower.cursor}`, restored);
  const [gone, expired] = [await ask(early), await ask(late)];
  const { cursor } = await gone.clone().json();
  await assertError(gone, 410, "changes_gap", /restored/, ["cursor"]);
  await assertError(expired, 410, "cursor_expired", /restored/, ["cursor"]);
  assertEquals((await early.ask(`?after=${cursor}`, restored)).status, 200);
});

Deno.test("listChanges() returns cursor_expired after a copy of the file is put back", async () => {
  const folder = await Deno.makeTempDir();
  const [path, copy] = [`${folder}/kv`, `${folder}/copy`];
  await using stack = new AsyncDisposableStack();
  stack.defer(() => Deno.remove(folder, { recursive: true }));
  const start = async () => new Harness(await Deno.openKv(path), { operatorToken: OPERATOR_TOKEN });
  const first = await start();
  await switchFeed(first);
  await first[Symbol.asyncDispose]();
  await Deno.copyFile(path, copy);
  const lost = await start();
  await lost.fetch("POST /operator/v1/things", { key: OPERATOR_TOKEN, json: HAMMER });
  const follower = await Follower.start(lost);
  await lost[Symbol.asyncDispose]();
  await Deno.copyFile(copy, path);

  await using restored = await start();

  const response = await follower.ask(`?after=${follower.cursor}`, restored);
  await assertError(response, 410, "cursor_expired", /restored/, ["cursor"]);
});

Deno.test("listChanges() returns cursor_expired if another process has written a row in the place of the cursor's", async () => {
  await using office = await openOffice();
  const [id = 0] = await office.addRooms(1);
  const { cursor } = await Follower.start(office, office.ann);
  await using other = office.beside();
  // The same change at the same time.
  for (const seats of [9, 10]) {
    await (seats === 9 ? office : other).operate(`PATCH /operator/v1/rooms/${id}`, { json: { seats } });
  }
  const rows = await Array.fromAsync(office.kv.list<Uint8Array>({ prefix: ["changes", "operators"] }));
  const [mine, theirs] = rows.slice(-2).map(({ value }) => JSON.parse(new TextDecoder().decode(value))[0]);
  assertEquals({ ...mine, tag: theirs.tag }, theirs);
  await office.kv.set(["changes", "operators", stampIn(cursor)], encodeJson([theirs]));

  const response = await office.fetch(`GET /v1/changes?after=${cursor}`, { key: office.ann });

  await assertError(response, 410, "cursor_expired", /restored/, ["cursor"]);
});

Deno.test("listChanges() returns cursor_expired if the same process has written another row in its place", async () => {
  await using office = await openOffice();
  await office.addRooms(1);
  const { cursor } = await Follower.start(office, office.ann);
  const key = ["changes", "operators", stampIn(cursor)];
  const { value } = await office.kv.get<Uint8Array>(key);
  const [entry] = JSON.parse(new TextDecoder().decode(value ?? undefined));
  await office.kv.set(key, encodeJson([{ ...entry, at: entry.at + 1 }]));

  const response = await office.fetch(`GET /v1/changes?after=${cursor}`, { key: office.ann });

  await assertError(response, 410, "cursor_expired", /restored/, ["cursor"]);
});

Deno.test("listChanges() has a change only once no process can show an older item", async () => {
  await using office = await Office.open({ maxStalenessMs: 2_000 });
  await switchFeed(office);
  await assertError(
    await office.fetch("GET /v1/changes", { key: office.ann }),
    409,
    "changes_off",
    /now|off/,
  );
  office.now += 7_000; // The staleness, and the deadline of a commit.
  const [ann, operator] = [await Follower.start(office, office.ann), await Follower.start(office)];
  office.now += 1_000;
  await office.addRooms(1);
  office.now += 6_999;
  const late = await Follower.start(office, office.ann);
  for (const follower of [ann, operator, late]) {
    assertEquals([await follower.all(), follower.more], [[], false]);
  }
  await office.addRooms(1);
  office.now += 1;

  for (const follower of [ann, operator, late]) assertEquals(await follower.all(), ["created rooms 2"]);
  office.now += 6_999;
  for (const follower of [ann, operator, late]) assertEquals(await follower.all(), ["created rooms 3"]);
  // A clock that is more than a day ahead holds nothing up.
  office.now += 2 * DAY;
  await office.addRooms(1);
  office.now -= 2 * DAY;
  for (const follower of [ann, operator, late]) assertEquals(await follower.all(), ["created rooms 4"]);
});

Deno.test("listChanges() gives a cursor from right before many changes that are too young; after 10,000, the oldest", async () => {
  await using office = await openOffice({ maxStalenessMs: 60_000 });
  await office.addRooms(1);
  office.now += HOUR;
  const seen: number[] = [];
  for (const count of [1_100, 8_900]) {
    for (let added = 0; added < count; added++) await appendTo(office);
    const operator = await Follower.start(office);
    office.now += 65_000;
    seen.push((await operator.all(1_000)).length);
    office.now -= 65_000;
  }

  assertEquals(seen, [1_100, 10_001]);
});

Deno.test("listChanges() has changes of a process whose clock is ahead at once, if items are always current", async () => {
  await using office = await openOffice();
  const ann = await Follower.start(office, office.ann);
  await using other = office.beside();
  other.now = office.now + HOUR;

  const [id] = await other.addRooms(1);

  assertEquals(await ann.all(), [`created rooms ${id}`]);
  assertEquals(await (await Follower.start(office, office.ann)).all(), []);
});

Deno.test("listChanges() misses nothing, and repeats nothing, while two processes write", async () => {
  await using office = await openOffice();
  await using other = office.beside();
  const keys = [office.ann, office.ben, OPERATOR_TOKEN];
  const followers = await Promise.all(keys.map((key) => Follower.start(office, key)));
  const seen: string[][] = keys.map(() => []);
  const written: [string, string][] = [];
  let isWriting = true;

  const write = async (service: Office, random: () => number) => {
    for (let count = 0; count < 60; count++) {
      const key = random() < 0.5 ? office.ann : office.ben;
      const isRoom = random() < 0.5;
      const response = isRoom
        ? await service.operate("POST /operator/v1/rooms", { json: BLUE })
        : await service.book(key);
      const name = isRoom ? "rooms" : "bookings";
      const id = await idIn(response);
      written.push([isRoom ? "" : key, `created ${name} ${id}`]);
      if (random() < 0.5) continue;
      await service.operate(`DELETE /operator/v1/${name}/${id}`);
      written.push([isRoom ? "" : key, `deleted ${name} ${id}`]);
    }
  };
  const follow = async (index: number) => {
    const service = index === 1 ? other : office;
    while (isWriting) seen[index]?.push(...await followers[index]?.next(index + 3, service) ?? []);
    seen[index]?.push(...await followers[index]?.all(100, service) ?? []);
  };
  const following = keys.map((_, index) => follow(index));
  await Promise.all([1, 2, 3, 4].map((seed) => write(seed % 2 === 0 ? office : other, seededRandom(seed))));
  isWriting = false;
  await Promise.all(following);

  for (const [index, key] of keys.entries()) {
    const expected = written.filter(([owner]) => owner === "" || owner === key || key === OPERATOR_TOKEN);
    assertEquals(seen[index]?.toSorted(), expected.map(([, change]) => change).sort());
    const places = new Map(seen[index]?.map((change, place) => [change, place]));
    for (const [change, place] of places) {
      assert(
        !change.startsWith("deleted") ||
          place > (places.get(change.replace("deleted", "created")) ?? Infinity),
      );
    }
  }
});

Deno.test("service measures the age of the oldest change that it keeps, if the feed is on and KV works", async () => {
  let isBroken = false;
  const disturbance = { read: () => isBroken ? fail() : undefined };
  await using office = await Office.open({ disturbance });
  const ages = async () => {
    const text = await (await office.operate("GET /metrics")).text();
    return [...text.matchAll(/^office_oldest_change_age_seconds (.*)$/gm)].map(([, age]) => age);
  };
  assertEquals(await ages(), []);
  await switchFeed(office);
  office.now += 8 * DAY;
  assertEquals(await ages(), [`${8 * 86_400}`]);
  await office.addRooms(1);
  office.now += 7 * DAY + 1_000;
  await sweep(office);
  assertEquals(await ages(), [`${7 * 86_400 + 1}`]);
  isBroken = true;
  assertEquals(await ages(), []);
});

Deno.test("service sweeps a row of changes with those of its commit, once its successor is too old", async () => {
  await using office = await openOffice();
  for (const key of [office.ann, office.ben]) await office.book(key);
  await addTogether(office);
  office.now += HOUR;
  await office.book(office.ann);
  await office.addRooms(1);
  const logs = async () => {
    const [ann, ben] = [await office.idOf(office.ann), await office.idOf(office.ben)];
    const names = [["operators"], ["everyone"], ["account", ann], ["account", ben], ["gaps"]];
    return await Promise.all(names.map(async (log) => (await stampsOf(office, ...log)).length));
  };
  assertEquals(await logs(), [6, 2, 3, 1, 1]);

  office.now += 7 * DAY - HOUR;
  await sweep(office);
  assertEquals(await logs(), [6, 2, 3, 1, 1]);
  office.now += 1;
  await sweep(office);
  // The last of those that are old stays, because its successor is not.
  assertEquals(await logs(), [3, 2, 2, 0, 0]);
  office.now += HOUR;
  await sweep(office);
  assertEquals(await logs(), [1, 1, 0, 0, 0]);
  office.now += 30 * DAY;
  await sweep(office);
  assertEquals(await logs(), [1, 1, 0, 0, 0]);
});

Deno.test("service sweeps all rows of changes but the newest when the feed is off", async () => {
  await using office = await openOffice();
  await office.addRooms(3);
  await switchFeed(office, 0);

  await sweep(office);

  assertEquals((await stampsOf(office)).length, 2);
  assertEquals((await stampsOf(office, "operators")).length, 1);
});

Deno.test("service sweeps rows of a clock that was ahead, once what follows them is too old", async () => {
  await using office = await openOffice();
  office.now += 30 * DAY;
  for (let count = 0; count < 600; count++) await appendTo(office);
  office.now += HOUR - 30 * DAY;
  await office.addRooms(2);
  office.now += 7 * DAY;
  await sweep(office);
  assertEquals((await stampsOf(office, "operators")).length, 603);
  office.now += 1;
  await sweep(office);

  assertEquals((await stampsOf(office, "operators")).length, 1);
});

Deno.test("service sweeps many rows of changes of many accounts", async () => {
  await using office = await openOffice();
  for (let count = 0; count < 1_001; count++) await appendTo(office, 1 + count % 100);
  office.now += 7 * DAY + 1;

  await sweep(office);

  assertEquals((await stampsOf(office, "operators")).length, 1);
  assertEquals((await stampsOf(office, "account")).length, 1);
});

/** Appends a commit with bookings of this many accounts. */
async function appendTo({ kv, now }: Office, accounts = 0): Promise<void> {
  const changes = upTo(Math.max(accounts, 1)).map((index) => ({
    ...{ collection: "bookings", id: 1, change: "created", at: now, readableBy: "owner", tag: "x" },
    ...accounts > 0 && { accountId: `acct_${index}` },
  }));
  const operation = kv.atomic().set(["changes", "operators", kv.commitVersionstamp()], encodeJson(changes));
  for (const index of upTo(accounts)) {
    operation.set(
      ["changes", "account", `acct_${index}`, kv.commitVersionstamp()],
      encodeJson([changes[index]]),
    );
  }
  await operation.commit();
}

/** The versionstamp in a cursor. */
function stampIn(cursor: string): string {
  return atob(cursor).slice(0, 20);
}

/** Runs the sweeps of the service until nothing is left. */
async function sweep(office: Office): Promise<void> {
  for (const step of office.app.sweeps) while (await step(office.now));
}
