import { assert, assertEquals } from "@std/assert";
import { type Attachment, Collection } from "../../src/kv/collection.ts";
import { decodeJson, encodeJson, type JsonValue } from "../../src/kv/json_value.ts";
import { Store } from "../../src/kv/store.ts";
import { carryOut, type Commit, disturbed } from "./disturbed_kv.ts";

interface Note {
  readonly id: number;
  readonly text: string;
}

/** Notes, on a KV whose commits are noted too. */
class Notebook extends Collection<string, Note> implements Disposable {
  readonly store: Store;
  readonly commits: Commit[];

  private constructor(store: Store, commits: Commit[]) {
    super(store, {
      head: ["notebook"],
      appendsPerCommit: 100,
      item: (text, id) => ({ id, text }),
      rows: (note) => [[["notes", note.id], encodeJson(note)]],
    });
    this.store = store;
    this.commits = commits;
  }

  static async open({ maxChecks }: { maxChecks: number }): Promise<Notebook> {
    return Notebook.on(await Deno.openKv(":memory:"), { maxChecks });
  }

  static on(kv: Deno.Kv, { maxChecks }: { maxChecks: number }): Notebook {
    const commits: Commit[] = [];
    const noted = disturbed(kv, { commit: (commit) => (commits.push(commit), carryOut(commit)) });
    return new Notebook(new Store(noted, { maxChecks }), commits);
  }

  async stored(): Promise<Note[]> {
    const rows = await this.store.list<JsonValue<Note>>({ prefix: ["notes"] }, 1_000);
    return rows.map(({ value }) => decodeJson(value));
  }

  [Symbol.dispose](): void {
    this.store[Symbol.dispose]();
  }
}

/** Stores a label with the note, unless the label is there already. */
function labelled(label: string, versionstamp: string | null = null): Attachment<Note> {
  return {
    guard: { key: ["labels", label], versionstamp },
    rows: ({ id }) => [[["labels", label], encodeJson(id)]],
  };
}

function notes(from: number, to: number): Note[] {
  return Array.from({ length: to - from + 1 }, (_, index) => ({ id: from + index, text: `${from + index}` }));
}

Deno.test("Collection.append() assigns ids from 1 in the order of the calls", async () => {
  using notebook = await Notebook.open({ maxChecks: 100 });

  const first = await Promise.all(notes(1, 3).map(({ text }) => notebook.append(text)));
  const second = await Promise.all(notes(4, 6).map(({ text }) => notebook.append(text)));

  assertEquals([...first, ...second], notes(1, 6));
  assertEquals(await notebook.stored(), notes(1, 6));
});

Deno.test("Collection.append() stores hundreds of items in a few commits when they come at once", async () => {
  using notebook = await Notebook.open({ maxChecks: 10 });

  const appended = await Promise.all(notes(1, 450).map(({ text }) => notebook.append(text)));

  assertEquals(appended, notes(1, 450));
  assertEquals(await notebook.stored(), notes(1, 450));
  assertEquals(notebook.commits.length, 5);
});

Deno.test("Collection.append() continues from what is stored when the collection is opened again", async () => {
  using kv = await Deno.openKv(":memory:");
  await Notebook.on(kv, { maxChecks: 10 }).append("1");

  assertEquals(await Notebook.on(kv, { maxChecks: 10 }).append("2"), { id: 2, text: "2" });
});

Deno.test("Collection.append() keeps ids unique, ascending and contiguous when several append to one KV", async () => {
  using kv = await Deno.openKv(":memory:");
  const notebooks = [1, 2, 3].map(() => Notebook.on(kv, { maxChecks: 10 }));

  const perNotebook = await Promise.all(notebooks.map(async (notebook, author) => {
    const appended: Note[] = [];
    for (let round = 0; round < 20; round++) {
      const texts = Array.from({ length: 5 }, (_, call) => `${author}.${round}.${call}`);
      const stored = await Promise.all(texts.map((text) => notebook.append(text)));
      appended.push(...stored.filter((note) => note !== undefined));
    }
    return appended;
  }));

  for (const appended of perNotebook) assertEquals(appended, appended.toSorted((a, b) => a.id - b.id));
  const all = perNotebook.flat().toSorted((a, b) => a.id - b.id);
  assertEquals(all.map(({ id }) => id), notes(1, 300).map(({ id }) => id));
  assertEquals(await notebooks[0]?.stored(), all);
});

Deno.test("Collection.append() stores an attachment's rows in the item's commit", async () => {
  using notebook = await Notebook.open({ maxChecks: 10 });

  const note = await notebook.append("1", labelled("a"));

  assertEquals(note, { id: 1, text: "1" });
  const [row, label] = await notebook.store.getMany([["notes", 1], ["labels", "a"]]);
  assertEquals(label?.value, encodeJson(1));
  assertEquals(label?.versionstamp, row?.versionstamp);
});

Deno.test("Collection.append() stores nothing when the guard has changed, and the others all the same", async () => {
  using notebook = await Notebook.open({ maxChecks: 10 });
  await notebook.append("1", labelled("taken"));

  const appended = await Promise.all([
    notebook.append("2"),
    notebook.append("never", labelled("taken")),
    notebook.append("3", labelled("free")),
  ]);

  assertEquals(appended, [notes(2, 2)[0], undefined, notes(3, 3)[0]]);
  assertEquals(await notebook.stored(), notes(1, 3));
  assertEquals((await notebook.store.get(["labels", "taken"]))?.value, encodeJson(1));
});

Deno.test("Collection.append() replaces an attachment's row when the guard knows its version", async () => {
  using notebook = await Notebook.open({ maxChecks: 10 });
  await notebook.append("1", labelled("a"));
  const label = await notebook.store.get(["labels", "a"]);
  assert(label);

  assertEquals(await notebook.append("2", labelled("a", label.versionstamp)), { id: 2, text: "2" });

  assertEquals((await notebook.store.get(["labels", "a"]))?.value, encodeJson(2));
});

Deno.test("Collection.append() lets exactly one of those with the same guard through when they come at once", async () => {
  using notebook = await Notebook.open({ maxChecks: 10 });

  const labels = Array.from({ length: 60 }, (_, index) => `${index % 4}`);
  const appended = await Promise.all(labels.map((label) => notebook.append(label, labelled(label))));

  const stored = appended.filter((note) => note !== undefined);
  assertEquals(stored.map(({ text }) => text).sort(), ["0", "1", "2", "3"]);
  assertEquals(stored.map(({ id }) => id).sort(), [1, 2, 3, 4]);
  assertEquals((await notebook.stored()).length, 4);
});

for (const maxChecks of [10, 100]) {
  Deno.test(`Collection.append() puts at most ${maxChecks} checks into a commit when all are guarded`, async () => {
    using notebook = await Notebook.open({ maxChecks });

    const appended = await Promise.all(
      notes(1, 250).map(({ text }) => notebook.append(text, labelled(text))),
    );

    assertEquals(appended, notes(1, 250));
    const checks = notebook.commits.map((commit) => commit.checks);
    assertEquals(Math.max(...checks), maxChecks);
    assertEquals(checks.length, Math.ceil(250 / (maxChecks - 1)));
  });
}

Deno.test("Collection.append() reads nothing after an append of its own", async () => {
  using kv = await Deno.openKv(":memory:");
  let reads = 0;
  const notebook = Notebook.on(disturbed(kv, { read: () => void reads++ }), { maxChecks: 10 });

  await notebook.append("1");
  reads = 0;
  for (let count = 0; count < 5; count++) await notebook.append("more");
  assertEquals(reads, 0);
});
