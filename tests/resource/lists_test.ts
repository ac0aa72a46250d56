// Lists in the order of a field, filtered by references, and of items that have lists of objects.
import {
  assert,
  assertEquals,
  assertMatch,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import { Store, Transactions, Versions } from "../../src/engine/mod.ts";
import type { Call } from "../../src/service/mod.ts";
import { Client } from "../../src/operator/client.ts";
import { runCommandLine } from "../../src/operator/command_line.ts";
import { clientTasks } from "../../src/process/cli.ts";
import {
  type Catalogue,
  createdAt,
  exists,
  type Item,
  type ItemPage,
  type ItemQuery,
  Items,
  openCollections,
  rebuild,
  type Resource,
  resource,
  ResourceError,
} from "../../src/resource/mod.ts";
import { cursorSchema, encodeCursor } from "../../src/resource/list_parameters.ts";
import {
  boolean,
  date,
  int64,
  integer,
  Invalid,
  list,
  nullable,
  object,
  oneOf,
  optional,
  type Schema,
  text,
  timestamp,
} from "../../src/web/schema.ts";
import { assertError } from "../support/assertions.ts";
import { nextTarget } from "../support/client.ts";
import { OPERATOR_TOKEN, targetOf } from "../support/desk.ts";
import { onFile } from "../support/fake_kv.ts";
import { Harness } from "../support/harness.ts";
import { assertConsistent } from "../support/stored_rows.ts";
import { OF_THINGS } from "../support/things.ts";
import { NOON, seededRandom } from "../support/time.ts";

const COMMON = {
  tag: { name: "Papers", description: "Papers of accounts" },
  readableBy: "owner",
  writableBy: "owner",
} as const;

const CUSTOMERS = resource({
  ...COMMON,
  name: "customers",
  item: "Customer",
  noun: ["a customer", "customers"],
  fields: { name: text({ max: 20 }) },
  filters: [],
  examples: { item: { name: "Ann" }, change: { name: "Ben" } },
});

const LINE = object({
  text: text({ max: 20, description: "What it is for" }),
  cents: int64(),
  count: optional(integer(1, 9), 1),
});
const BILL_FIELDS = {
  customerId: optional(int64({ description: "Who pays it" })),
  dueOn: optional(date({ description: "When it is to be paid" })),
  isPaid: optional(boolean(), false),
  lines: optional(list(LINE, 5, { description: "What it is for" })),
};
const BILLS = resource({
  ...COMMON,
  name: "bills",
  item: "Bill",
  noun: ["a bill", "bills"],
  fields: BILL_FIELDS,
  filters: ["customerId", "isPaid"],
  sorts: ["dueOn"],
  extend: [exists(CUSTOMERS, "customerId")],
  examples: { item: { dueOn: "2027-02-01" }, change: { dueOn: "2027-03-01" } },
});

/** Everyone reads these, and their lists have no order but that of ids. */
const NOTES = resource({
  ...COMMON,
  name: "notes",
  item: "Note",
  noun: ["a note", "notes"],
  readableBy: "everyone",
  fields: { billId: optional(int64({ description: "The bill" })), isNew: optional(boolean(), true) },
  filters: ["isNew", "billId"],
  extend: [exists(BILLS, "billId")],
  examples: { item: { isNew: true }, change: { isNew: false } },
});

/** Only their account reads these, and they have a filter that is a reference. */
const RECEIPTS = resource({
  ...COMMON,
  name: "receipts",
  item: "Receipt",
  noun: ["a receipt", "receipts"],
  fields: { billId: optional(nullable(int64({ description: "The bill" })), null) },
  filters: ["billId"],
  extend: [exists(BILLS, "billId")],
  examples: { item: {}, change: {} },
});

const OF_BILLS: Catalogue = { ...OF_THINGS, title: "Bills", resources: [CUSTOMERS, BILLS, NOTES, RECEIPTS] };
const RESOURCES = [CUSTOMERS, BILLS, NOTES, RECEIPTS];
const LIMITS = { minute: 1_000_000, day: 1_000_000 };

/** The service with two accounts, each with a customer. */
class Desk extends Harness {
  ann: string = "";
  ben: string = "";

  static override async open(): Promise<Desk> {
    const desk = new Desk(await Deno.openKv(":memory:"), {
      catalogue: OF_BILLS,
      operatorToken: OPERATOR_TOKEN,
    });
    const [ann, ben] = [await desk.createAccount(LIMITS), await desk.createAccount(LIMITS)];
    Object.assign(desk, { ann: ann.apiKey, ben: ben.apiKey });
    for (const key of [desk.ann, desk.ben]) await desk.post("customers", key, { name: "C" });
    return desk;
  }

  /** Another process on the same KV. */
  override beside(): Desk {
    const other = new Desk(this.kv, { catalogue: OF_BILLS, operatorToken: OPERATOR_TOKEN });
    return Object.assign(other, { ann: this.ann, ben: this.ben, isFirst: false });
  }

  /** Adds an item. Resolves to its id. */
  async post(collection: string, key: string, json: object): Promise<number> {
    const response = await this.fetch(`POST /v1/${collection}`, { key, json });
    assertEquals(response.status, 201);
    return (await response.json()).id;
  }

  /** The ids of all pages of a list. */
  async ids(target: string, key: string): Promise<number[]> {
    const page = await this.fetch(target, { key });
    assertEquals([target, page.status], [target, 200]);
    const items: Item[] = await page.json();
    const next = nextTarget(page);
    return [...items.map(({ id }) => id), ...next ? await this.ids(next, key) : []];
  }
}

/** Values to sort by in ascending order. Those of a group are equal. */
type Groups = readonly (readonly unknown[])[];

const MANY_NINES = "9".repeat(100);
const TEXTS: Groups = [
  ..." \u0000, \u0000\u0000, \u0001,!,0,10,9,A,Z,a,a\u0000,a\u0001,aa,b".split(",").map((
    text,
  ) => [text.trimStart()]),
  ...["\u007f", "\u0080", "é", "\ud7ff", "\ue000", "\uffff", "\u{10000}", "\u{10ffff}"].map((text) => [text]),
  ["\u{10ffff}".repeat(99)],
  ["\u{10ffff}".repeat(100)],
];
const TIMES: Groups = [
  ["0000-01-01T00:00:00+23:59"],
  ["0000-01-01T00:00:00Z", "0000-01-01T01:00:00+01:00"],
  ["1969-12-31T23:59:59.999999999Z"],
  ["1970-01-01T00:00:00Z", "1970-01-01t00:00:00.000z", "1970-01-01T05:30:00.0+05:30"],
  ["1970-01-01T00:00:00.000000001Z"],
  ["1970-01-01T00:00:00.000001Z"],
  ["2027-01-15T11:59:59.9Z"],
  ["2027-01-15T12:00:00Z", "2027-01-15T00:30:00-11:30"],
  ["2027-01-15T12:00:00.1Z", "2027-01-15T13:00:00.100000000+01:00"],
  ["2027-01-15T12:00:00.12Z"],
  ["9999-12-31T23:59:59.999999999Z"],
  ["9999-12-31T23:59:59.999999999-00:01"],
  ["9999-12-31T23:59:59.999999999-23:59"],
];
const INTEGERS: Groups = [
  -(2n ** 63n),
  -(2n ** 53n) - 1n,
  -(2 ** 53 - 1),
  -256,
  -255,
  -1,
  0,
  1,
  7,
  255,
  256,
  2 ** 53 - 1,
  2n ** 53n,
  2n ** 63n - 1n,
].map((value) => [value]);
const DAYS: Groups = ["0000-01-01", "0999-12-31", "1969-12-31", "2027-01-15", "2028-02-29", "9999-12-31"]
  .map((value) => [value]);

/** A collection that is sorted by a value of this kind. */
function sortedBy(value: Schema, changes: Partial<Pick<Resource, "readableBy">> = {}): Resource {
  return resource({
    ...COMMON,
    name: "papers",
    item: "Paper",
    noun: ["a paper", "papers"],
    fields: { value, isNew: boolean(), kind: oneOf(["a", "b"]) },
    filters: ["kind", "isNew"],
    sorts: JSON.parse('["value"]'), // Its type is not known here.
    examples: JSON.parse('{"item":{"isNew":true,"kind":"a"},"change":{}}'),
    ...changes,
  });
}

/** A process that has such a collection. It counts the rows that lists read. */
function processOn(kv: Deno.Kv, of: Resource) {
  const store = new Store(onFile(kv, { clock: () => 0 }));
  const transactions = new Transactions(store, () => 0);
  const items = new Items(of, { store, transactions, versions: new Versions(store) });
  const reads: number[] = [];
  const { list } = store;
  store.list = async (...args) => {
    const rows = await list.apply(store, args);
    reads.push(rows.length);
    return rows;
  };
  return { items, reads, transactions, store };
}

/** What remains of a list of ranked items, sorted by its definition. */
interface Ranked {
  readonly id: number;
  readonly ownerId: string;
  readonly rank: number;
  readonly kind: unknown;
  readonly isNew: unknown;
}

Deno.test.each<[kind: string, schema: Schema, groups: Groups, bounds?: Groups]>([
  ["texts", text({ max: 100 }), TEXTS],
  ["times", timestamp(), TIMES],
  ["integers", int64(), INTEGERS],
  ["days", date(), DAYS],
])(
  "lists are in the order of %s, in pages in either direction, as a plain sort has them",
  async (_, schema, groups) => {
    for (const readableBy of ["owner", "everyone"] as const) {
      using kv = await Deno.openKv(":memory:");
      const of = sortedBy(optional(nullable(schema)), { readableBy });
      const { items, reads, transactions } = processOn(kv, of);
      const CURSOR = cursorSchema(of);
      const random = seededRandom(7);
      const below = (end: number) => Math.floor(random() * end);
      const NONE = groups.length; // The rank of items without a value.
      const ranked: Ranked[] = [];
      const fieldsOf = (rank: number) => {
        const group = groups[rank] ?? [undefined, null];
        return { value: group[below(group.length)], isNew: random() < 0.5, kind: random() < 0.5 ? "a" : "b" };
      };
      const acting = (accountId: string) => ({ by: "account", accountId, now: 0 }) as const;
      const ranks = [...groups.keys(), ...groups.keys(), NONE, NONE, NONE, NONE].sort(() => random() - 0.5);
      for (const rank of ranks) {
        const ownerId = random() < 0.5 ? "ann" : "ben";
        // Half of them get another value first.
        const fields = fieldsOf(random() < 0.5 ? rank : below(NONE + 1));
        const { result: { item: { id } } } = await transactions.run(items.adding(fields, acting(ownerId)));
        const after = fieldsOf(rank);
        await items.change(id, () => after, {
          acting: acting(ownerId),
          transact: async (transaction) => (await transactions.run(transaction)).result,
        });
        ranked.push({ id, ownerId, rank, kind: after.kind, isNew: after.isNew });
      }

      for (const accountId of ["ann", "ben", undefined]) {
        for (const filters of [{}, { kind: "a" }, { isNew: true }, { kind: "b", isNew: false }]) {
          for (const sort of ["value", "-value"]) {
            const one = () => below(NONE);
            const all: { from?: number; to?: number }[] = [{}, { from: one() }, { to: one() }, {
              from: one(),
              to: one(),
            }];
            for (const { from, to } of [...all, { from: one(), to: one() }]) {
              const isListed = ({ ownerId, rank, kind, isNew }: Ranked) =>
                (readableBy === "everyone" || accountId === undefined || ownerId === accountId) &&
                Object.entries(filters).every(([name, value]) => ({ kind, isNew })[name] === value) &&
                (from === undefined || (rank >= from && rank < NONE)) &&
                (to === undefined || rank < to);
              const sign = sort === "value" ? 1 : -1;
              const expected = ranked.filter(isListed).sort((one, other) => {
                const [a, b] = [one, other].map(({ rank }) => rank === NONE ? Infinity * sign : rank);
                return sign * ((a === b ? 0 : Number(a) - Number(b)) || one.id - other.id);
              }).map(({ id }) => id);
              const limit = 1 + below(5);
              const query = { ...filters, sort, ...valuesOf(groups, { from, to }) };

              const seen: number[] = [];
              let cursor: ItemQuery["cursor"];
              do {
                reads.length = 0;
                const page: { ids: number[]; next: ItemQuery["cursor"] } = accountId === undefined
                  ? await ownedPage(items, limit, { ...query, cursor })
                  : idsOf(await items.list({ ...query, limit, cursor }, accountId));
                const left = expected.length - seen.length;
                const most = accountId === undefined ? limit : limit + 1;
                assert(reads.length <= 1);
                assertEquals(reads[0] ?? 0, Math.min(most, left));
                seen.push(...page.ids);
                cursor = page.next;
                if (cursor !== undefined) assertEquals(CURSOR.parse(encodeCursor(cursor), "cursor"), cursor);
              } while (cursor !== undefined);
              assertEquals([accountId, query, limit, seen], [accountId, query, limit, expected]);
            }
          }
        }
      }
      await assertConsistent(kv, [of]);
    }
  },
);

/** Bounds with these ranks. */
function valuesOf(
  groups: Groups,
  { from, to }: { from?: number | undefined; to?: number | undefined },
): object {
  return {
    ...from !== undefined && { from: groups[from]?.at(-1) },
    ...to !== undefined && { to: groups[to]?.at(-1) },
  };
}

function idsOf({ json, next }: ItemPage): { ids: number[]; next: ItemQuery["cursor"] } {
  return { ids: JSON.parse(json).map(({ id }: Item) => id), next };
}

async function ownedPage(items: Items, limit: number, query: Parameters<Items["listOwned"]>[1]) {
  const { items: owned, next } = await items.listOwned(limit, query);
  return { ids: owned.map(({ item: { id } }) => id), next };
}

/** Due days of the bills of an account, in the order of ids. */
const DUE = ["2027-03-01", undefined, "2027-01-01", "2027-02-01", "2027-01-01", undefined];

Deno.test("service lists the bills of an account by day and by customer, in both directions, and none without a value in a range", async () => {
  await using desk = await Desk.open();
  const [customerId] = await desk.ids("GET /v1/customers", desk.ann);
  for (const [index, dueOn] of DUE.entries()) {
    await desk.post("bills", desk.ann, { dueOn, ...index % 2 === 0 && { customerId } });
  }

  for (const limit of [1, 2, 3, 100]) {
    for (
      const [query, ids] of [
        ["", [1, 2, 3, 4, 5, 6]],
        ["&sort=id", [1, 2, 3, 4, 5, 6]],
        ["&sort=-id", [6, 5, 4, 3, 2, 1]],
        ["&sort=dueOn", [3, 5, 4, 1, 2, 6]],
        ["&sort=-dueOn", [1, 4, 5, 3, 6, 2]],
        [`&sort=-dueOn&customerId=${customerId}`, [1, 5, 3]],
        [`&customerId=${customerId}&isPaid=false`, [1, 3, 5]],
        ["&customerId=999", []],
        ["&isPaid=false&sort=dueOn", [3, 5, 4, 1, 2, 6]],
        ["&isPaid=true&sort=dueOn", []],
        ["&sort=dueOn&from=2027-01-01", [3, 5, 4, 1]],
        ["&sort=dueOn&from=2027-02-01", [4, 1]],
        ["&sort=-dueOn&to=2027-03-01", [4, 5, 3]],
        ["&sort=-dueOn&from=2027-02-01&to=2027-03-01", [4]],
        ["&sort=dueOn&from=2027-02-01&to=2027-02-01", []],
        ["&sort=dueOn&from=2027-03-01&to=2027-01-01", []],
      ] satisfies [string, number[]][]
    ) {
      assertEquals([query, await desk.ids(`GET /v1/bills?limit=${limit}${query}`, desk.ann)], [query, ids]);
      assertEquals(await desk.ids(`GET /operator/v1/bills?limit=${limit}${query}`, OPERATOR_TOKEN), ids);
    }
  }
  await assertConsistent(desk.kv, RESOURCES);
});

Deno.test("service lists the items that refer to one, to their account and to operators", async () => {
  await using desk = await Desk.open();
  const [mine = 0, theirs = 0, other = 0] = await Promise.all(
    [desk.ann, desk.ben, desk.ben].map((key) => desk.post("bills", key, {})),
  );
  for (const billId of [mine, null, mine]) await desk.post("receipts", desk.ann, { billId });
  for (const billId of [theirs, mine, other, theirs]) {
    const response = await desk.fetch("POST /v1/notes", { key: desk.ben, json: { billId } });
    assertEquals(response.status, billId === mine ? 400 : 201);
  }
  await desk.post("receipts", desk.ben, { billId: theirs });
  await desk.fetch("PATCH /v1/receipts/1", { key: desk.ann, json: { billId: null } });

  for (
    const [target, ofAnn, ofBen, ofOperator] of [
      [`receipts?billId=${mine}`, [3], [], [3]],
      [`receipts?billId=${theirs}`, [], [4], [4]],
      [`receipts?billId=${theirs}&sort=-id`, [], [4], [4]],
      [`receipts`, [1, 2, 3], [4], [1, 2, 3, 4]],
      [`notes?limit=1&billId=${theirs}`, [1, 3], [1, 3], [1, 3]],
      [`notes?limit=1&billId=${theirs}&isNew=true&sort=-id`, [3, 1], [3, 1], [3, 1]],
      [`notes?billId=${mine}`, [], [], []],
    ] satisfies [string, number[], number[], number[]][]
  ) {
    assertEquals([target, await desk.ids(`GET /v1/${target}`, desk.ann)], [target, ofAnn]);
    assertEquals([target, await desk.ids(`GET /v1/${target}`, desk.ben)], [target, ofBen]);
    assertEquals([target, await desk.ids(`GET /operator/v1/${target}`, OPERATOR_TOKEN)], [
      target,
      ofOperator,
    ]);
  }
  await assertError(
    await desk.fetch("GET /v1/receipts?billId=null", { key: desk.ann }),
    400,
    "invalid_request",
    /billId must be an integer/,
  );
  await assertConsistent(desk.kv, RESOURCES);
});

Deno.test("a page of a sorted list has a link with all parameters, an ETag of its own, and a cursor of the list's order", async () => {
  await using desk = await Desk.open();
  for (const dueOn of DUE) await desk.post("bills", desk.ann, { dueOn });
  const ask = (query: string, headers = {}, path = "/v1", key = desk.ann) =>
    desk.fetch(`GET ${path}/bills?${query}`, { key, headers });

  for (const [path, key] of [["/v1", desk.ann], ["/operator/v1", OPERATOR_TOKEN]] as const) {
    const page = await ask("to=2027-02-28&limit=1&from=2027-01-01&sort=-dueOn&isPaid=false", {}, path, key);
    const link = nextTarget(page) ?? "";
    assertMatch(
      link,
      RegExp(
        `^GET ${path}/bills\\?limit=1&isPaid=false&sort=-dueOn&from=2027-01-01&to=2027-02-28&cursor=[\\w-]+$`,
      ),
    );
    const [cursor = ""] = /cursor=.*$/.exec(link) ?? [];
    const idsAt = async (query: string) =>
      (await (await ask(query, {}, path, key)).json()).map(({ id }: Item) => id);
    assertEquals(await idsAt(cursor), [5, 3, 6, 2]);
    assertEquals(await idsAt(`${cursor}&sort=-dueOn`), [5, 3, 6, 2]);
    assertMatch(
      nextTarget(await ask(`${cursor}&limit=1`, {}, path, key)) ?? "",
      /limit=1&sort=-dueOn&cursor=/,
    );
    assertEquals(await idsAt(`${cursor}&from=2027-01-01`), [5, 3]);
    // A cursor outside of a range lets nothing in that is not in the range.
    const cursorAt = async (query: string) =>
      /cursor=.*$/.exec(nextTarget(await ask(query, {}, path, key)) ?? "")?.[0] ?? "";
    const descending = await cursorAt("limit=1&sort=-dueOn");
    assertEquals(await idsAt(descending), [4, 5, 3, 6, 2]);
    assertEquals(await idsAt(`${descending}&to=2027-02-01`), [5, 3]);
    const ascending = await cursorAt("limit=1&sort=dueOn");
    assertEquals(await idsAt(ascending), [5, 4, 1, 2, 6]);
    assertEquals(await idsAt(`${ascending}&from=2027-02-01`), [4, 1]);
    for (const [wrong, field] of [["dueOn", "sort"], ["id", "sort"], ["-id", "sort"]] as const) {
      const message = "must be -dueOn, as in the list that the cursor comes from, or be left out";
      const error = await ask(`${cursor}&sort=${wrong}`, {}, path, key);
      assertStringIncludes((await error.clone().json()).message, message);
      assertEquals([error.status, (await error.json()).field], [400, field]);
    }
  }

  const first = await ask("sort=dueOn&limit=2");
  const etag = first.headers.get("etag") ?? "";
  const tags = await Promise.all(
    ["sort=dueOn", "sort=dueOn&from=0000-01-01&limit=2", "sort=id&limit=2", "sort=-dueOn&limit=2"]
      .map(async (query) => (await ask(query)).headers.get("etag")),
  );
  assertEquals(new Set([etag, ...tags]).size, 5);
  assertEquals((await ask("sort=dueOn&limit=2", { "if-none-match": etag })).status, 304);
  await desk.fetch("PATCH /v1/bills/4", { key: desk.ann, json: { dueOn: "2026-01-01" } });
  const changed = await ask("sort=dueOn&limit=2", { "if-none-match": etag });
  assertEquals([changed.status, (await changed.json()).map(({ id }: Item) => id)], [200, [4, 3]]);
});

Deno.test.each<[query: string, field: string, message: string]>([
  ["from=2027-01-01", "from", "The query parameter from requires sort=dueOn or sort=-dueOn."],
  ["to=2027-01-01", "to", "The query parameter to requires sort=dueOn or sort=-dueOn."],
  ["sort=-id&to=2027-01-01", "to", "The query parameter to requires sort=dueOn or sort=-dueOn."],
  ["cursor=MQ&from=2027-01-01", "from", "The query parameter from requires sort=dueOn or sort=-dueOn."],
  ["sort=dueOn&from=7", "from", "The query parameter from must be a day such as 2027-01-15."],
  ["sort=dueOn&to=null", "to", "The query parameter to must be a day such as 2027-01-15."],
  ["sort=dueOn&to=2027-02-30", "to", "The query parameter to must be a day such as 2027-01-15."],
  ["sort=isPaid", "sort", "The query parameter sort must be one of id, -id, dueOn, -dueOn."],
  ["customerId=x", "customerId", "The query parameter customerId must be an integer from"],
])("service refuses %s in a list that can be sorted", async (query, field, message) => {
  await using desk = await Desk.open();

  for (const [path, key] of [["/v1", desk.ann], ["/operator/v1", OPERATOR_TOKEN]]) {
    const response = await desk.fetch(`GET ${path}/bills?${query}`, { key: key ?? "" });
    assertEquals((await response.clone().json()).field, field);
    await assertError(response, 400, "invalid_request", RegExp(`^${message}`));
  }
});

Deno.test("service accepts only cursors that its links have, whatever they claim", async () => {
  await using desk = await Desk.open();
  for (const dueOn of DUE) await desk.post("bills", desk.ann, { dueOn });
  const encode = (json: unknown) =>
    btoa(String.fromCharCode(...new TextEncoder().encode(JSON.stringify(json))))
      .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  const statusOf = async (cursor: string, path = "/v1", key = desk.ann) =>
    (await desk.fetch(`GET ${path}/bills?cursor=${encodeURIComponent(cursor)}`, { key })).status;

  for (const right of [["dueOn", "2027-01-01", 3], ["-dueOn", null, 6], 1, -1]) {
    assertEquals([right, await statusOf(encode(right))], [right, 200]);
    assertEquals(await statusOf(encode(right), "/operator/v1", OPERATOR_TOKEN), 200);
  }
  for (
    const wrong of [
      ...[["id", "2027-01-01", 3], ["isPaid", "x", 3], ["dueOn", 7, 3], ["dueOn", "x", 0], [
        "dueOn",
        "x",
        -3,
      ]],
      ...[["dueOn", "x", 1.5], ["dueOn", "x", "3"], ["dueOn", "x", 3, 4], ["dueOn", "x".repeat(101), 3], [
        "dueOn",
      ]],
      ...[["dueOn", ["x"], 3], ["dueOn", "\ud800", 3], {}, null, "dueOn", true, [1], [], 0, 1.5, "1"],
    ]
  ) {
    assertEquals([wrong, await statusOf(encode(wrong))], [wrong, 400]);
    assertEquals(await statusOf(encode(wrong), "/operator/v1", OPERATOR_TOKEN), 400);
  }
  for (const wrong of ["", "x", "!", "7", `${encode(["dueOn", "2027-01-01", 3])}=`]) {
    assertEquals([wrong, await statusOf(wrong)], [wrong, 400]);
  }
});

Deno.test.each<[kind: string, schema: Schema]>([["integers", int64()], ["times", timestamp()]])(
  "a cursor of %s has only digits",
  (_, schema) => {
    const CURSOR = cursorSchema(sortedBy(schema));
    const encode = (value: string) => btoa(JSON.stringify(["value", value, 1])).replaceAll("=", "");

    for (const right of ["0", "-7", `${2n ** 63n - 1n}`]) {
      assertEquals(CURSOR.parse(encode(right), "cursor"), { sort: "value", value: BigInt(right), id: 1 });
    }
    for (const wrong of ["", "x", "1.5", "0x10", "+7", " 7", "007", "-0", "7n", "9".repeat(31)]) {
      assertThrows(
        () => CURSOR.parse(encode(wrong), "cursor"),
        Invalid,
        "must be a cursor from a Link header",
      );
    }
  },
);

Deno.test("two accounts that ask the same URLs get their own bills in every order, at once and in turn, from two processes", async () => {
  await using desk = await Desk.open();
  await using other = desk.beside();
  const keys = [desk.ann, desk.ben];
  const own = new Map<string, Map<number, string | undefined>>(keys.map((key) => [key, new Map()]));
  const rows = (key: string) => [...own.get(key) ?? []];
  const sorted = (key: string, sign: 1 | -1) => {
    const valued = rows(key).filter(([, day]) => day !== undefined);
    const none = rows(key).filter(([, day]) => day === undefined).map(([id]) => id);
    const order = valued.sort(([one, a = ""], [two, b = ""]) => a === b ? one - two : a < b ? -1 : 1);
    const ids = order.map(([id]) => id);
    return sign === 1 ? [...ids, ...none] : [...ids.reverse(), ...none.reverse()];
  };
  const add = async (key: string, dueOn: string | undefined) => {
    own.get(key)?.set(await desk.post("bills", key, { dueOn }), dueOn);
  };
  const days = ["2027-01-03", undefined, "2027-01-01", "2027-01-02", "2027-01-01"];
  for (const day of days) for (const key of keys) await add(key, day);

  const changes = [
    () => {},
    () => add(desk.ben, "2027-01-01"),
    () => add(desk.ann, undefined),
    async () => {
      const [id = 0] = sorted(desk.ben, 1);
      await desk.fetch(`PATCH /v1/bills/${id}`, { key: desk.ben, json: { dueOn: null } });
      own.get(desk.ben)?.set(id, undefined);
    },
    async () => {
      const [id = 0] = sorted(desk.ann, -1);
      await desk.fetch(`DELETE /v1/bills/${id}`, { key: desk.ann });
      own.get(desk.ann)?.delete(id);
    },
  ];
  for (const change of changes) {
    await change();
    for (
      const [query, expected] of [
        ["", (key: string) => rows(key).map(([id]) => id)],
        ["&sort=dueOn", (key: string) => sorted(key, 1)],
        ["&sort=-dueOn", (key: string) => sorted(key, -1)],
        ["&sort=-dueOn&isPaid=false", (key: string) => sorted(key, -1)],
        [
          "&sort=dueOn&from=2027-01-02",
          (key: string) => sorted(key, 1).filter((id) => (own.get(key)?.get(id) ?? "") >= "2027-01-02"),
        ],
      ] as const
    ) {
      for (const limit of [2, 100]) {
        const ask = (service: Desk, key: string) => service.ids(`GET /v1/bills?limit=${limit}${query}`, key);
        const asked = [desk, other].flatMap((service) =>
          [...keys, ...keys].map((key) => [service, key] as const)
        );
        const right = asked.map(([, key]) => expected(key));
        assertEquals([query, await Promise.all(asked.map(([service, key]) => ask(service, key)))], [
          query,
          right,
        ]);
        for (const [service, key] of asked) assertEquals(await ask(service, key), expected(key));
      }
    }
  }
  const [mine = 0] = sorted(desk.ann, 1);
  const cursor = nextTarget(await desk.fetch("GET /v1/bills?limit=1&sort=dueOn", { key: desk.ann })) ?? "";
  assertEquals((await desk.ids(cursor, desk.ben)).includes(mine), false);
  const [theirs = 0] = await desk.ids("GET /v1/customers", desk.ann);
  assertEquals(await desk.ids(`GET /v1/bills?customerId=${theirs}`, desk.ben), []);
  await assertConsistent(desk.kv, RESOURCES);
});

Deno.test("Items.list() shows nobody's items to an account without an id", async () => {
  using kv = await Deno.openKv(":memory:");
  const { items, transactions } = processOn(kv, sortedBy(optional(int64())));
  await transactions.run(items.adding({ isNew: true, kind: "a" }, { by: "operator", accountId: "", now: 0 }));

  for (const sort of ["id", "value", "-value"]) {
    assertEquals((await items.list({ limit: 9, sort }, "")).json, "[]");
  }
  assertEquals((await items.listOwned(9, { sort: "value" })).items.length, 1);
  await assertRejects(
    () => items.list({ limit: 9, sort: "kind" }, "ann"),
    TypeError,
    "There is no list of papers",
  );
});

Deno.test("deleteAccount() deletes all rows of sorted lists, also of items that this release cannot read", async () => {
  await using desk = await Desk.open();
  const { id } = await (await desk.fetch("GET /v1/account", { key: desk.ann })).json();
  for (const dueOn of DUE) for (const key of [desk.ann, desk.ben]) await desk.post("bills", key, { dueOn });
  const damaged = await desk.post("bills", desk.ann, { dueOn: "2027-01-01" });
  for await (const { key, value } of desk.kv.list<Uint8Array>({ prefix: [] })) {
    const [table, name] = key;
    if (!String(table).startsWith("items") || name !== "bills" || key.at(-1) !== damaged) continue;
    const broken = new TextDecoder().decode(value).replace("2027", "").replace(
      '"dueOn":"-01-01"',
      '"dueOn":7',
    );
    await desk.kv.set(key, new TextEncoder().encode(broken));
  }
  desk.expectsErrors = true;

  for (const target of [`POST /operator/v1/accounts/${id}/close`, `DELETE /operator/v1/accounts/${id}`]) {
    const response = await desk.fetch(target, { key: OPERATOR_TOKEN });
    assert(response.ok, await response.text());
    desk.now += 60_000;
  }

  const left = await Array.fromAsync(desk.kv.list<Uint8Array>({ prefix: [] }));
  const isAnns = (value: unknown) =>
    value instanceof Uint8Array && new TextDecoder().decode(value).endsWith(id);
  assertEquals(
    left.filter(({ key, value }) => key[0] !== "usage" && isAnns(value)).map(({ key }) => key),
    [],
  );
  assertEquals((await desk.ids("GET /operator/v1/bills?sort=dueOn", OPERATOR_TOKEN)).length, DUE.length);
  await assertConsistent(desk.kv, RESOURCES);
});

Deno.test("documents have the parameters of a sorted list in their order, and say that synchronising overlaps by a minute", async () => {
  await using desk = await Desk.open();
  const document = await (await desk.fetch("GET /v1/openapi.json")).json();
  const ofOperators = await (await desk.fetch("GET /operator/v1/openapi.json", { key: OPERATOR_TOKEN }))
    .json();
  const parametersOf = (
    of: typeof document,
    path: string,
  ): { name: string; schema: object; description: string }[] => of.paths[path].get.parameters;
  const namesOf = (of: typeof document, path: string) => parametersOf(of, path).map(({ name }) => name);
  const ordered = ["limit", "customerId", "isPaid", "cursor", "sort", "from", "to"];

  assertEquals(namesOf(document, "/bills").filter((name) => name !== "If-None-Match"), ordered);
  assertEquals(namesOf(ofOperators, "/bills"), ordered);
  assertEquals(namesOf(ofOperators, "/notes"), ["limit", "billId", "isNew", "cursor", "sort"]);
  assertEquals(namesOf(ofOperators, "/customers"), ["limit", "cursor", "sort"]);
  const [, filter] = parametersOf(document, "/receipts");
  assertEquals(filter?.schema, { type: "integer", format: "int64" });
  const described = parametersOf(document, "/bills");
  const [sort, from] = ["sort", "from"].map((name) => described.find((one) => one.name === name));
  assertStringIncludes(JSON.stringify(from), "begin a minute before the last value that you have seen");
  assertStringIncludes(JSON.stringify(sort?.schema), '["id","-id","dueOn","-dueOn"]');
  assertStringIncludes(JSON.stringify(from?.schema), '"type":"string","format":"date"');
  assertStringIncludes(document.paths["/bills"].get.description, "in order of id, or of `dueOn`");
});

Deno.test("createdAt() can be sorted by, and a null that older items have comes last", async () => {
  using kv = await Deno.openKv(":memory:");
  const before = resource({
    ...COMMON,
    name: "papers",
    item: "Paper",
    noun: ["a paper", "papers"],
    fields: { isNew: optional(boolean(), true) },
    filters: [],
    examples: { item: {}, change: {} },
  });
  const now = resource({
    ...COMMON,
    name: "papers",
    item: "Paper",
    noun: ["a paper", "papers"],
    fields: { isNew: optional(boolean(), true), createdAt: createdAt() },
    filters: [],
    sorts: ["createdAt"],
    examples: { item: {}, change: {} },
  });
  const add = (process: ReturnType<typeof processOn>, ms: number) =>
    process.transactions.run(process.items.adding({}, { by: "account", accountId: "ann", now: ms }));
  const opened = (of: Resource, store: Store) =>
    openCollections(store, { title: "Papers", resources: [of] }, { create: true });
  const old = processOn(kv, before);
  await opened(before, old.store);
  await add(old, 1);
  await assertRejects(
    () => opened(now, old.store),
    ResourceError,
    "The store has papers not sorted, but this release declares them sorted by createdAt. Declare them as before, or stop",
  );
  await rebuild(now, {
    catalogue: { title: "Papers", resources: [now] },
    store: old.store,
    clock: () => NOON,
    notice: () => {},
  });
  const { store } = processOn(kv, now);
  const generations = await opened(now, store);
  const transactions = new Transactions(store, () => 0);
  const items = new Items(now, { store, transactions, versions: new Versions(store), generations });
  const ids: number[] = [];
  for (const ms of [NOON + 1, NOON]) {
    const { result } = await transactions.run(
      items.adding({}, { by: "account", accountId: "ann", now: ms }),
    );
    ids.push(result.item.id);
  }
  const [later, earlier] = ids;

  const idsBy = async (query: object) => idsOf(await items.list({ limit: 9, ...query }, "ann")).ids;
  assertEquals(await idsBy({ sort: "createdAt" }), [earlier, later, 1]);
  assertEquals(await idsBy({ sort: "-createdAt" }), [later, earlier, 1]);
  assertEquals(await idsBy({ sort: "createdAt", from: new Date(NOON + 1).toISOString() }), [later]);
  // A release that has no sorts takes this for a filter that it lacks.
  await assertRejects(() => opened(before, store), ResourceError, "run: deno task items papers rebuild");
  const { value } = await kv.get<Uint8Array>(["resources", "papers"]);
  assertMatch(
    new TextDecoder().decode(value ?? undefined),
    /^\{"filters":\["sort createdAt"\],"readableBy":"owner",/,
  );
});

Deno.test("openCollections() stores nothing new of a collection that is not sorted", async () => {
  using kv = await Deno.openKv(":memory:");
  const { store } = processOn(kv, NOTES);
  await openCollections(store, OF_BILLS, { create: true });

  const rows = await Array.fromAsync(kv.list<Uint8Array>({ prefix: ["resources"] }));
  assertEquals(rows.map(({ value }) => new TextDecoder().decode(value)), [
    '{"filters":["customerId","isPaid","sort dueOn"],"readableBy":"owner","extend":["exists(customers, customerId)"]}',
    '{"filters":[],"readableBy":"owner"}',
    '{"filters":["billId","isNew"],"extend":["exists(bills, billId)"]}',
    '{"filters":["billId"],"readableBy":"owner","extend":["exists(bills, billId)"]}',
  ]);
});

Deno.test("rebuild() derives the rows of sorts that a new collection would have", async () => {
  using kv = await Deno.openKv(":memory:");
  using fresh = await Deno.openKv(":memory:");
  const now = sortedBy(optional(text({ max: 100 })));
  const before: Resource = { ...now, sorts: [], operatorsFilters: [] };
  const generation = async (one: Deno.Kv, of: Resource) => {
    const { store, transactions } = processOn(one, of);
    const generations = await openCollections(store, { title: "Papers", resources: [of] }, { create: true });
    return {
      store,
      items: new Items(of, { store, transactions, versions: new Versions(store), generations }),
    };
  };
  for (const [one, of] of [[kv, before], [fresh, now]] as const) {
    const { items } = await generation(one, of);
    const { transactions } = processOn(one, of);
    for (const value of [undefined, "b", "a", "\u0000", "b"]) {
      await transactions.run(
        items.adding({ value, isNew: true, kind: "a" }, { by: "account", accountId: "ann", now: 0 }),
      );
    }
  }
  await rebuild(now, {
    catalogue: { title: "Papers", resources: [now] },
    store: processOn(kv, now).store,
    clock: () => NOON,
    notice: () => {},
  });

  const [rebuilt, other] = [await generation(kv, now), await generation(fresh, now)];
  for (const sort of ["id", "value", "-value"]) {
    for (const query of [{}, { kind: "a" }, { kind: "a", isNew: true }]) {
      const [one, its] = [rebuilt, other].map(({ items }) => items.list({ limit: 9, sort, ...query }, "ann"));
      assertEquals((await one)?.json, (await its)?.json);
      const [owned, theirs] = [rebuilt, other].map(({ items }) => items.listOwned(9, { sort, ...query }));
      assertEquals((await owned)?.items, (await theirs)?.items);
    }
  }
  await assertConsistent(kv, [now]);
});

Deno.test("a text that an earlier release let be longer is sorted by its first 100 characters, and can be changed", async () => {
  using kv = await Deno.openKv(":memory:");
  const of = (max: number) => sortedBy(optional(text({ max })));
  const [wide, narrow] = [processOn(kv, { ...of(5_000), sorts: [] }), of(100)];
  const adding = { isNew: true, kind: "a" } as const;
  const acting = { by: "account", accountId: "ann", now: 0 } as const;
  await wide.transactions.run(wide.items.adding({ ...adding, value: MANY_NINES.repeat(30) }, acting));
  await rebuild(narrow, {
    catalogue: { title: "Papers", resources: [narrow] },
    store: wide.store,
    clock: () => NOON,
    notice: () => {},
  });
  const { store, transactions } = processOn(kv, narrow);
  const generations = await openCollections(store, { title: "Papers", resources: [narrow] }, {
    create: true,
  });
  const items = new Items(narrow, { store, transactions, versions: new Versions(store), generations });
  const ids: number[] = [];
  for (const value of [MANY_NINES, "8"]) {
    ids.push((await transactions.run(items.adding({ ...adding, value }, acting))).result.item.id);
  }
  const [nines, eight] = ids;

  const first = await items.list({ limit: 2, sort: "value" }, "ann");
  assertEquals(idsOf(first).ids, [eight, 1]);
  assertEquals(idsOf(await items.list({ limit: 2, cursor: first.next }, "ann")).ids, [nines]);
  await items.change(1, (owned) => owned && { ...owned.item, value: "7" }, {
    acting,
    transact: async (transaction) => (await transactions.run(transaction)).result,
  });
  assertEquals(idsOf(await items.list({ limit: 9, sort: "value" }, "ann")).ids, [1, eight, nines]);
  await assertConsistent(kv, [narrow]);
});

Deno.test("the largest change of an item that starts fits into one commit", async () => {
  using kv = await Deno.openKv(":memory:");
  const fields = (max: number) => ({
    state: oneOf(["a".repeat(600), "b".repeat(600)]),
    kind: oneOf(["é".repeat(300), "ü".repeat(300)]),
    value: optional(text({ max: 100 })),
    note: text({ max }),
  });
  const large = { state: "a".repeat(600), kind: "é".repeat(300), note: "x" };
  const of = (max: number) =>
    resource({
      ...COMMON,
      name: "papers",
      item: "Paper",
      noun: ["a paper", "papers"],
      fields: fields(max),
      filters: JSON.parse('["state","kind"]'), // Their values are no literals.
      sorts: ["value"],
      examples: { item: large, change: {} },
    });
  const refusal = async (max: number) => {
    const { store } = processOn(kv, of(max));
    const opened = openCollections(store, { title: "Papers", resources: [of(max)] }, { create: false });
    return await opened.then(() => "", (error) => error.message);
  };
  let [low, high] = [1, 5_000];
  while (low + 1 < high) {
    const middle = (low + high) >> 1;
    if (await refusal(middle) === "") low = middle;
    else high = middle;
  }
  assert(low > 1_000);
  assertMatch(
    await refusal(high),
    RegExp(
      "^The resource papers needs up to \\d+ rows, \\d+ bytes of keys and 600\\d+ bytes of values for one change of an " +
        "item of up to \\d+ bytes, which 24 rows have, but a commit has room for 900 rows, 75000 bytes of keys and " +
        "600000 bytes of values: lower a maximum, such as that of note, or drop the sort value, the filter state or " +
        "the filter kind\\.$",
    ),
  );

  const { items, transactions } = processOn(kv, of(low));
  const acting = { by: "account", accountId: "0123456789abcdef01234", now: 0 } as const;
  const note = "\u0001".repeat(low);
  await transactions.run(items.adding({ ...large, note, value: "\u{10ffff}".repeat(100) }, acting));
  const transact: Call["transact"] = async (transaction) => (await transactions.run(transaction)).result;
  for (const value of [undefined, "\u{10fffe}".repeat(100)]) {
    const changed = { ...large, state: "b".repeat(600), kind: "ü".repeat(300), note, value };
    await items.change(1, () => changed, { acting, transact });
    await items.change(1, () => ({ ...changed, ...large, note }), { acting, transact });
  }
  await assertConsistent(kv, [of(low)]);
});

Deno.test("lists of objects have a schema of their own, and PATCH replaces them as a whole", async () => {
  await using desk = await Desk.open();
  const lines = [{ text: "Work", cents: 9_000 }, { text: "Parts", cents: 5, count: 3 }];
  const shown = [{ ...lines[0], count: 1 }, lines[1]];
  const send = (target: string, json: unknown) => desk.fetch(target, { key: desk.ann, json });

  const created = await send("POST /v1/bills", { lines });
  assertEquals((await created.json()).lines, shown);
  const changed = await send("PATCH /v1/bills/1", { lines: [{ text: "Ice", cents: 1 }] });
  assertEquals((await changed.json()).lines, [{ text: "Ice", cents: 1, count: 1 }]);
  const wrong = await send("PATCH /v1/bills/1", {
    lines: [lines[0], { text: "Ice", cents: 1, colour: "red" }],
  });
  assertEquals((await wrong.clone().json()).field, "lines[1].colour");
  await assertError(wrong, 400, "invalid_request", /lines\[1\]\.colour is unknown/);
  assertEquals((await (await send("PATCH /v1/bills/1", { lines: null })).json()).lines, undefined);

  for (const [target, key] of [["/v1", undefined], ["/operator/v1", OPERATOR_TOKEN]] as const) {
    const response = await desk.fetch(`GET ${target}/openapi.json`, key === undefined ? {} : { key });
    const { components: { schemas } } = await response.json();
    assertEquals(schemas.BillLine, {
      type: "object",
      properties: {
        text: { type: "string", minLength: 1, maxLength: 20, description: "What it is for" },
        cents: { type: "integer", format: "int64" },
        count: { type: "integer", minimum: 1, maximum: 9, description: "1 by default" },
      },
      required: ["text", "cents"],
      additionalProperties: true,
    });
    const [item, creation, patch] = target === "/v1"
      ? ["Bill", "BillCreation", "BillPatch"]
      : ["OwnedBill", "OwnedBillCreation", "OwnedBillPatch"];
    const items = { $ref: "#/components/schemas/BillLine" };
    for (const name of [item, creation, patch]) {
      assertEquals(schemas[name ?? ""].properties.lines.items, items);
    }
    assertEquals(schemas[creation ?? ""].additionalProperties, false);
  }
});

Deno.test.each([
  ["lines", "PaperLine"],
  ["entries", "PaperEntry"],
  ["addresses", "PaperAddress"],
  ["boxes", "PaperBox"],
  ["expenses", "PaperExpense"],
  ["data", "PaperData"],
])("resource() names the objects in the list %s %s", (field, name) => {
  const { schemas } = resource({
    ...COMMON,
    name: "papers",
    item: "Paper",
    noun: ["a paper", "papers"],
    fields: { [field]: list(object({ x: int64() }), 2) },
    filters: [],
    examples: { item: { [field]: [] }, change: {} },
  });

  assert(name in schemas.item.definitions);
});

Deno.test("items NAME list filters and sorts as the operators' list does, and items NAME add takes objects as JSON", async () => {
  await using desk = await Desk.open();
  const run = async (...args: string[]) => {
    const [out, err]: [string[], string[]] = [[], []];
    const client = new Client((target, { method = "", ...init }) =>
      desk.fetch(`${method} ${target}`, { key: OPERATOR_TOKEN, ...init })
    );
    const exit = await runCommandLine(clientTasks(OF_BILLS), ["items", ...args], {
      clock: () => NOON,
      input: () => Promise.resolve([]),
      out: (line) => Promise.resolve(void out.push(line)),
      err: (line) => err.push(line),
    }, (work) => work(targetOf(client)));
    return { exit, out, err };
  };
  const { id } = await (await desk.fetch("GET /v1/account", { key: desk.ann })).json();
  const add = ["bills", "add", "--account-id", id];
  const line = '{"text":"Work","cents":9007199254740993}';
  await run(...add, "--due-on", "2027-03-01", "--customer-id", "1");
  const added = await run(
    ...add,
    "--due-on",
    "2027-02-01",
    "--lines",
    line,
    "--lines",
    '{"text":"Ice","cents":1}',
  );

  assertEquals(added.out, [
    '{"id":2,"dueOn":"2027-02-01","isPaid":false,"lines":[{"text":"Work","cents":9007199254740993,"count":1},' +
    `{"text":"Ice","cents":1,"count":1}],"accountId":"${id}"}`,
  ]);
  const idsAt = async (...args: string[]) =>
    (await run("bills", "list", "--json", ...args)).out.map((text) => JSON.parse(text).id);
  assertEquals(await idsAt("--sort", "dueOn"), [2, 1]);
  assertEquals(await idsAt("--sort=-dueOn"), [1, 2]);
  assertEquals(await idsAt("--sort", "dueOn", "--from", "2027-02-02"), [1]);
  assertEquals(await idsAt("--customer-id", "1", "--is-paid", "no"), [1]);
  for (
    const [args, message] of [
      [["--from", "2027-02-02"], "The query parameter from requires sort=dueOn or sort=-dueOn."],
      [["--sort", "isPaid"], "--sort must be one of id, -id, dueOn, -dueOn"],
      [["--customer-id", "x"], "--customer-id must be an integer from"],
    ] as const
  ) {
    const { exit, err } = await run("bills", "list", ...args);
    assertEquals(exit, 2);
    assertStringIncludes(err.join(), message);
  }
  assertEquals((await run("receipts", "list", "--bill-id", "1")).exit, 0);
  const { exit, err } = await run("customers", "list", "--sort", "id");
  assertEquals([exit, err.length], [2, 1]); // This list has no options but --json.
  const broken = await run(...add, "--lines", "{");
  assertEquals([broken.exit, broken.err[0]?.split(". ")[0]], [2, "--lines must be an object in JSON"]);
});
