import { assert, assertEquals, assertRejects } from "@std/assert";
import { encodeText, Store, StoreUnavailable, Transactions, Versions } from "../../src/engine/mod.ts";
import { requireSchema, Superseded } from "../../src/engine/schema_version.ts";
import {
  type Catalogue,
  type Declaration,
  exists,
  type Hook,
  type Item,
  Items,
  openCollections,
  rebuild,
  type Resource,
  resource,
  ResourceError,
  sweepGenerations,
  unique,
} from "../../src/resource/mod.ts";
import { boolean, int64, type Members, oneOf, optional, text } from "../../src/web/schema.ts";
import { carryOut, type Commit, type Disturbance, disturbed, fail, onFile } from "../support/fake_kv.ts";

const DAY = 86_400_000;
const FIELDS = {
  name: text({ max: 9 }),
  colour: optional(oneOf(["red", "blue"])),
  isNew: optional(boolean(), true),
  shelf: optional(int64()),
};
const DECLARATION: Declaration<typeof FIELDS> = {
  name: "cups",
  item: "Cup",
  tag: { name: "Cups", description: "All cups" },
  noun: ["a cup", "cups"],
  fields: FIELDS,
  filters: [],
  readableBy: "everyone",
  writableBy: "owner",
  examples: { item: { name: "Big" }, change: {} },
};

/** Cups as a release declares them. */
function cups(changes: Partial<Declaration<typeof FIELDS>> = {}): Resource {
  return resource({ ...DECLARATION, ...changes });
}

/** The shelves that cups can stand on. */
const SHELVES = resource({
  ...DECLARATION,
  name: "shelves",
  item: "Shelf",
  noun: ["a shelf", "shelves"],
});

/** A catalogue with these cups. */
function catalogueWith(cups: Resource): Pick<Catalogue, "title" | "resources"> {
  return { title: "Cup Store", resources: [SHELVES, cups] };
}

type Process = Awaited<ReturnType<typeof start>>;

const OPERATOR = { by: "operator", accountId: "", now: 0 } as const;

/** A process of a release that declares cups so. It works on these or, if it is given, on another collection. */
async function start(kv: Deno.Kv, cups: Resource, resource = cups) {
  const store = await storeOn(kv);
  const { resources } = catalogueWith(cups);
  const generations = await openCollections(store, catalogueWith(cups), { create: true });
  const transactions = new Transactions(store, () => 0);
  const items = new Items(resource, {
    store,
    transactions,
    versions: new Versions(store),
    resources,
    generations,
  });
  let added = 0;
  return {
    store,
    /** Adds cups for two accounts in turn. */
    async add(...cups: object[]): Promise<void> {
      for (const cup of cups) {
        const ownerId = `acct_${2 - ++added % 2}`;
        await transactions.run(items.adding({ ...cup }, OPERATOR, ownerId));
      }
    },
    async change(id: number, change: object | null): Promise<void> {
      await items.change(id, (owned) => change && owned && { ...owned.item, ...change }, {
        acting: OPERATOR,
        transact: async (transaction) => (await transactions.run(transaction)).result,
      });
    },
    /** Ids of the cups that the first account sees. */
    async ids(filters: object = {}): Promise<number[]> {
      const { json } = await items.list({ limit: 100, ...filters }, "acct_1");
      return JSON.parse(json).map(({ id }: Item) => id);
    },
  };
}

async function storeOn(kv: Deno.Kv): Promise<Store> {
  const backend = onFile(kv, { clock: () => 0 });
  return new Store(backend, { schema: await requireSchema(backend, true) });
}

/** Options of {@linkcode rebuilt}. */
interface Options extends Disturbance {
  readonly now?: number;
  readonly clock?: () => number;
  readonly lines?: string[];
}

/** Rebuilds cups at a time. Resolves to the lines for the operator. */
async function rebuilt(
  kv: Deno.Kv,
  resource: Resource,
  { now = 0, clock = () => now, lines = [], ...disturbance }: Options = {},
): Promise<string[]> {
  const store = await storeOn(disturbed(kv, disturbance));
  await rebuild(resource, {
    catalogue: catalogueWith(resource),
    store,
    clock,
    notice: (line) => lines.push(line),
  });
  return lines;
}

/** The text of each row by its key, without markers and probes. */
async function rowsOf(kv: Deno.Kv, isAsked = (_table: string) => true): Promise<Map<string, string>> {
  const entries = await Array.fromAsync(kv.list<Uint8Array>({ prefix: [] }));
  const rows = entries.filter(({ key: [table] }) => table !== "commits" && isAsked(String(table)));
  return new Map(rows.map(({ key, value }) => [JSON.stringify(key), new TextDecoder().decode(value)]));
}

/** Rows of the current generation that are derived from cups, with keys that are the same in every generation. */
async function derived(kv: Deno.Kv): Promise<Map<string, string>> {
  const { value } = await kv.get<Uint8Array>(["resources", "cups"]);
  const { generation = "" } = JSON.parse(new TextDecoder().decode(value ?? undefined));
  const index = generation === "" ? ["items_by", "cups"] : ["generations", "cups", generation];
  const rows = [index, ["own", "cups", generation]].map(async (prefix) => {
    const entries = await Array.fromAsync(kv.list<Uint8Array>({ prefix }));
    return entries.map(({ key, value }): [string, string] => [
      JSON.stringify([prefix === index, ...key.slice(prefix.length)]),
      new TextDecoder().decode(value),
    ]);
  });
  return new Map((await Promise.all(rows)).flat());
}

const SOME = [
  { name: "A", colour: "red", isNew: false },
  { name: "B", isNew: true, shelf: 1 },
  { name: "C", colour: "blue", isNew: true },
  { name: "D", colour: "red", isNew: true, shelf: 1 },
];

Deno.test.each<[string, Resource, Resource]>([
  ["a filter is added", cups(), cups({ filters: ["colour"] })],
  ["a filter is removed", cups({ filters: ["colour", "isNew"] }), cups({ filters: ["isNew"] })],
  ["filters are exchanged", cups({ filters: ["colour"] }), cups({ filters: ["isNew"] })],
  ["only owners may read", cups({ filters: ["colour"] }), cups({ filters: ["colour"], readableBy: "owner" })],
  ["everyone may read", cups({ readableBy: "owner" }), cups()],
  ["a hook is added", cups(), cups({ extend: [exists(SHELVES, "shelf"), unique("name")] })],
  [
    "a hook is removed",
    cups({ extend: [exists(SHELVES, "shelf"), unique("name")] }),
    cups({ extend: [unique("name")] }),
  ],
  ["nothing changes", cups({ filters: ["colour"] }), cups({ filters: ["colour"] })],
])("rebuild() derives the rows that a new collection would have: %s", async (_, before, now) => {
  using kv = await Deno.openKv(":memory:");
  using other = await Deno.openKv(":memory:");
  for (const one of [kv, other]) {
    await (await start(one, one === kv ? before : now, SHELVES)).add({ name: "Low" });
  }
  await (await start(kv, before)).add(...SOME);

  const lines = await rebuilt(kv, now);

  assertEquals(lines, ["Rebuilt cups: 4 items. Now start the release that declares them so."]);
  const process = await start(kv, now);
  const fresh = await start(other, now);
  await fresh.add(...SOME);
  for (const [id, change] of [[1, {}], [1, { name: "E", colour: "blue", shelf: 1 }], [3, null]] as const) {
    for (const one of [process, fresh]) await one.change(id, change);
    assertEquals(await derived(kv), await derived(other));
    for (const filters of [{}, { colour: "red" }, { isNew: true }]) {
      assertEquals(await process.ids(filters), await fresh.ids(filters));
    }
  }
});

Deno.test("a release starts on other rows only after a rebuild, and the one before only until then", async () => {
  using kv = await Deno.openKv(":memory:");
  const { isNew: _, ...fields } = FIELDS;
  const [before, now] = [
    resource({ ...DECLARATION, fields, filters: [] }),
    cups({ filters: ["colour", "isNew"] }),
  ];
  await (await start(kv, before)).add({ name: "A", colour: "red" }, { name: "B" });
  const command = "stop every process of the service and run: deno task items cups rebuild";
  const starts = (resource: Resource) => start(kv, resource);

  await assertRejects(() => starts(now), ResourceError, command);
  await starts(before);
  await rebuilt(kv, now);

  await assertRejects(() => starts(before), ResourceError, command);
  const started = await starts(now);
  assertEquals(await started.ids({ colour: "red" }), [1]);
  assertEquals(await started.ids({ isNew: true }), [1, 2]);
});

Deno.test("a process that runs during a rebuild stops with its next commit, which is not sent again", async () => {
  using kv = await Deno.openKv(":memory:");
  const resource = cups({ filters: ["colour"] });
  for (const revision of [1, 2]) {
    const process = await start(kv, resource);
    await process.add({ name: "A" });
    await rebuilt(kv, resource);
    const rows = await rowsOf(kv);

    await assertRejects(() => process.add({ name: "B" }), Superseded, "rewritten since this process started");

    assert(await process.store.schema.superseded);
    assertEquals(await rowsOf(kv), rows);
    assertEquals(rows.get('["schema"]'), JSON.stringify({ version: 2, revision }));
  }
});

Deno.test("rebuild() changes nothing if any of its commits fails, and then begins again", async () => {
  using kv = await Deno.openKv(":memory:");
  const [before, now] = [cups({ filters: ["isNew"] }), cups({ filters: ["colour"] })];
  const names = Array.from({ length: 600 }, (_, index) => ({ name: `${index}`, colour: "red" }));
  await (await start(kv, before)).add(...names);
  const isOther = (table: string) => table !== "generations";
  const rows = await rowsOf(kv, isOther);

  const outcomes: unknown[] = [];
  while (outcomes.at(-1) !== "rebuilt" && outcomes.length < 100) {
    let allowed = outcomes.length;
    const commit = (commit: Commit) => allowed-- > 0 ? carryOut(commit) : fail();
    const error = await rebuilt(kv, now, { commit }).then(() => "rebuilt", (error) => error);
    outcomes.push(error instanceof StoreUnavailable ? "failed" : error);
    if (error !== "rebuilt") assertEquals(await rowsOf(kv, isOther), rows);
  }

  assertEquals(outcomes, [...Array(3).fill("failed"), "rebuilt"]);
  assertEquals((await (await start(kv, now)).ids({ colour: "red" })).length, 100);
});

/** Cups with a filter that they did not have before. */
const FILTERED = cups({ filters: ["colour"] });

Deno.test.each<
  [reason: string, now: Resource, meddle: (cups: Process, shelves: Process, time: { now: number }) => unknown]
>([
  ["its generation might be swept", FILTERED, (_cups, _shelves, time) => time.now = DAY / 2 + 1],
  ["an item is added meanwhile", FILTERED, (cups) => cups.add({ name: "E" })],
  ["an item is changed meanwhile", FILTERED, (cups) => cups.change(1, { colour: "blue" })],
  ["an item is deleted meanwhile", FILTERED, (cups) => cups.change(4, null)],
  [
    "an item that others refer to is deleted meanwhile",
    cups({ extend: [exists(SHELVES, "shelf", { onDelete: "refuse" })] }),
    (_, shelves) => shelves.change(1, null),
  ],
])("rebuild() does not switch if %s", async (_, now, meddle) => {
  using kv = await Deno.openKv(":memory:");
  const [process, shelves] = [await start(kv, cups()), await start(kv, cups(), SHELVES)];
  await shelves.add({ name: "Low" });
  await process.add(...SOME);
  const time = { now: 0 };
  let commits = 0;
  const commit = async (commit: Commit) => {
    const result = await carryOut(commit);
    if (++commits === 1) await meddle(process, shelves, time);
    return result;
  };

  await assertRejects(
    () => rebuilt(kv, now, { commit, clock: () => time.now }),
    ResourceError,
    "Stop every process",
  );

  assertEquals((await rowsOf(kv)).get('["schema"]'), '{"version":1}');
  assertEquals(await (await start(kv, cups())).ids(), await process.ids());
});

Deno.test("rebuild() notices a process that still writes before it derives the rows of 500 more items", async () => {
  using kv = await Deno.openKv(":memory:");
  const process = await start(kv, cups());
  await process.add(...Array.from({ length: 501 }, (_, index) => ({ name: `${index}`, colour: "red" })));
  let meddling: Promise<void> | undefined;
  const commit = async (commit: Commit) => {
    const result = await carryOut(commit);
    await (meddling ??= process.change(1, { colour: "blue" }));
    return result;
  };

  await assertRejects(() => rebuilt(kv, FILTERED, { commit }), ResourceError, "Stop every process");

  const rows = [...(await rowsOf(kv, (table) => table === "generations")).values()];
  assertEquals(rows.filter((text) => JSON.parse(text.split("\n")[0] ?? "").name === "500"), []);
  assertEquals(rows.length, 500);
});

Deno.test("rebuild() names the items that break a new hook, which it leaves to the release before", async () => {
  using kv = await Deno.openKv(":memory:");
  const refusing = exists(SHELVES, "shelf", { onDelete: "refuse" });
  const now = cups({ extend: [refusing, unique("name")] });
  const shelves = await start(kv, cups(), SHELVES);
  await shelves.add({ name: "Low" });
  const before = await start(kv, cups());
  await before.add(...SOME, { name: "B" }, { name: "F", shelf: 2 });
  const lines: string[] = [];

  await assertRejects(() => rebuilt(kv, now, { lines }), ResourceError, "2 of 6 items do not fit");

  assertEquals(lines, [
    "Item 5 of cups: The field name must be unique: another cup has this value.",
    "Item 6 of cups: The field shelf must be the id of a shelf.",
  ]);
  await before.change(5, { name: "E" });
  await before.change(6, null);
  await rebuilt(kv, now);
});

Deno.test("rebuild() lets hooks read rows of another collection, in its current generation", async () => {
  using kv = await Deno.openKv(":memory:");
  await (await start(kv, cups())).add(...SOME);
  await kv.set(["resources", "shelves"], encodeText('{"filters":[],"generation":"current"}'));
  await kv.set(["own", "shelves", "current", "mark"], encodeText("here"));
  const key = ["own", "shelves", "mark"];
  const marks = new Set<unknown>();
  const hook: Hook = {
    name: "mark",
    apply: (rows) => void marks.add(rows.get(key)?.value),
  };

  await rebuilt(kv, cups({ extend: [hook] }));

  marks.delete(undefined); // The row was not read yet.
  assertEquals([...marks].map(String), [String(encodeText("here"))]);
});

Deno.test("rebuild() names the items that this release cannot read, and leaves out those that none can", async () => {
  using kv = await Deno.openKv(":memory:");
  await (await start(kv, cups())).add(...SOME);
  await kv.set(["items", "cups", 2], encodeText("no cup"));
  const fields: Members = { ...FIELDS, colour: optional(oneOf(["blue"])) };
  const now = (fields: Members) => resource({ ...DECLARATION, fields, filters: [], sorts: [] });
  const lines: string[] = [];

  await assertRejects(
    () => rebuilt(kv, now(fields), { lines }),
    ResourceError,
    "2 of 4 items do not fit the declaration of cups, so nothing was changed. Change or delete them with the release " +
      "before, or change the declaration. Then rebuild again.",
  );
  assertEquals(lines, [
    "Item 1 of cups: In item 1 of cups, the field colour has a value that is not declared.",
    "Item 2 of cups: Item 2 of cups is not a cup.",
    "Item 4 of cups: In item 4 of cups, the field colour has a value that is not declared.",
  ]);
  assertEquals((await rebuilt(kv, now(FIELDS))).at(-1)?.slice(0, 21), "Rebuilt cups: 4 items");
});

Deno.test("sweepGenerations() removes a generation once it and the current one are more than a day old", async () => {
  using kv = await Deno.openKv(":memory:");
  const resource = cups({ filters: ["colour"] });
  await (await start(kv, resource)).add(...SOME);
  await kv.set(["own", "cups", "", "count"], encodeText("4"));
  await kv.set(["generations", "mugs", new Date(0).toISOString(), 1], encodeText("another's"));
  /** Days on which generations began, after a sweep. */
  const swept = async (now: number) => {
    const store = await storeOn(kv);
    const generations = await openCollections(store, catalogueWith(resource), { create: false });
    while (await sweepGenerations(store, [resource], generations, now));
    const names = [...(await rowsOf(kv, (table) => /^(items_by|generations|own)$/.test(table))).keys()]
      .map((key) => JSON.parse(key)).filter(([, collection]) => collection === "cups")
      .map(([table, , generation]) =>
        table === "items_by" ? "first" : generation && Date.parse(generation.slice(0, 24)) / DAY
      );
    return [...new Set(names)].sort();
  };
  const breakOff = ({ apply, keys: [key] }: Commit) => key?.[0] === "generations" ? apply() : fail();

  await rebuilt(kv, resource, { commit: breakOff }).catch(() => {});
  assertEquals(await swept(DAY), ["", 0, "first"]);
  assertEquals(await swept(DAY + 1), ["", "first"]);
  await rebuilt(kv, resource, { now: 2 * DAY });
  assertEquals(await swept(3 * DAY), ["", 2, "first"]);
  assertEquals(await swept(3 * DAY + 1), [2]);
  await rebuilt(kv, resource, { now: 4 * DAY, commit: breakOff }).catch(() => {});
  assertEquals(await swept(5 * DAY), [2, 4]);
  assertEquals(await swept(5 * DAY + 1), [2]);
  await rebuilt(kv, resource, { now: 6 * DAY });
  assertEquals(await swept(7 * DAY), [2, 6]);
  assertEquals(await swept(7 * DAY + 1), [6]);
  assertEquals(await (await start(kv, resource)).ids({ colour: "red" }), [1, 4]);
  assertEquals((await rowsOf(kv, (table) => table === "generations")).size, 4);
});
