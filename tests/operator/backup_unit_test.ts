import { assertEquals, assertLess, assertMatch, assertRejects } from "@std/assert";
import { backup, DatabaseSync } from "node:sqlite";
import { main } from "../../src/process/cli.ts";
import { openStore } from "../../src/engine/open.ts";
import { encodeJson } from "../../src/engine/row.ts";
import { writeAtomically } from "../../src/operator/backup.ts";
import { copyStore } from "../../src/operator/store_copy.ts";
import { CommandError } from "../../src/operator/command_line.ts";

const CLOCK = { clock: Date.now };
/** KV closes a file some time after `close()`, and until then may lock it. In ms. */
const PATIENT = { timeout: 60_000 };

/** A temporary folder with a store, and the commands that back it up and restore it. */
class Fixture implements AsyncDisposable {
  readonly folder: string = Deno.makeTempDirSync();
  readonly store: string = `${this.folder}/things.kv`;
  /** Lines that the last command wrote to standard output, and to standard error. */
  out: string[] = [];
  err: string[] = [];

  static async start(rows: number = 3): Promise<Fixture> {
    const fixture = new Fixture();
    const store = await openStore(fixture.store, { ...CLOCK, create: true });
    for (let row = 0; row < rows; row++) {
      await store.commit((operation) => operation.set(["rows", row], new Uint8Array(50_000).fill(row)));
    }
    await store.close();
    return fixture;
  }

  /** Runs a command and returns its exit code. Names in capitals are files in the folder. */
  run(command: string, kvPath: string = this.store): Promise<number> {
    [this.out, this.err] = [[], []];
    const inFolder = (text: string) => text.replaceAll(/\b[A-Z_]{2,}\b/g, (name) => `${this.folder}/${name}`);
    return main(inFolder(command).split(" "), (name) => name === "KV_PATH" ? inFolder(kvPath) : undefined, {
      ...CLOCK,
      input: () => Promise.resolve([]),
      out: (line) => Promise.resolve(void this.out.push(line)),
      err: (line) => this.err.push(line.replaceAll(`${this.folder}/`, "")),
    });
  }

  /** Paths of everything in the folder, relative to it. */
  async names(path: string = this.folder): Promise<string[]> {
    const names: string[] = [];
    for await (const { name, isDirectory } of Deno.readDir(path)) {
      names.push(...isDirectory ? await this.names(`${path}/${name}`) : [], `${path}/${name}`);
    }
    return names.map((name) => name.replace(`${this.folder}/`, "")).sort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.folder, { recursive: true });
  }
}

/** A file with a row whose key differs between the table and the index. Only a check of the whole file shows that. */
function withWrongKey(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const wrong = bytes.slice();
  const name = new TextEncoder().encode("rows");
  const at = wrong.findIndex((_, start) => name.every((byte, offset) => wrong[start + offset] === byte));
  assertLess(0, at);
  wrong[at] = "R".charCodeAt(0);
  return wrong;
}

/** All rows of a store except the markers of commits. */
async function rowsOf(path: string): Promise<Deno.KvEntry<unknown>[]> {
  using kv = await Deno.openKv(path);
  return (await Array.fromAsync(kv.list({ prefix: [] }))).filter(({ key: [kind] }) => kind !== "commits");
}

Deno.test("main() backs up a store in use, or of a killed process, and restores it, each as one file for its owner only", async () => {
  await using fixture = await Fixture.start();
  const { folder } = fixture;
  const store = await openStore(fixture.store, { ...CLOCK, create: false });
  await store.commit((operation) => operation.set(["rows", "newest"], new Uint8Array([1])));
  // What a killed process leaves: its write-ahead log has the newest rows.
  for (const end of ["", "-wal"]) await Deno.copyFile(fixture.store + end, `${folder}/KILLED${end}`);

  assertEquals([await fixture.run("backup BACKUP"), fixture.out], [0, []]);
  assertEquals(fixture.err, ["Backed up things.kv to BACKUP."]);
  assertEquals(await fixture.run("backup OTHER", "KILLED"), 0);
  await store.commit((operation) => operation.set(["rows", "later"], new Uint8Array([2])));
  await store.close();
  assertEquals(await fixture.run("restore BACKUP", "DATA/things.kv"), 0);
  const [before = "", ...after] = fixture.err;
  assertMatch(before, /^This brings back [^\n]+: keys [^\n]+, accounts that were suspended [^\n]+, and ids /);
  assertEquals(after, ["Restored DATA/things.kv from BACKUP."]);

  const others = (await fixture.names()).filter((name) => !/^(things\.kv|KILLED)/.test(name));
  assertEquals(others, ["BACKUP", "DATA", "DATA/things.kv", "OTHER"]);
  for (const [name, mode] of [["BACKUP", 0o600], ["DATA", 0o700], ["DATA/things.kv", 0o600]] as const) {
    assertEquals(((await Deno.stat(`${folder}/${name}`)).mode ?? 0) & 0o777, mode, name);
  }
  const expected = (await rowsOf(fixture.store)).filter(({ key }) => key[1] !== "later");
  for (const copy of ["OTHER", "DATA/things.kv"]) assertEquals(await rowsOf(`${folder}/${copy}`), expected);
  assertEquals(expected.length, 5);
});

Deno.test("main() restores nothing from a damaged backup, and leaves no files or folders of its own", async () => {
  await using fixture = await Fixture.start(40);
  await fixture.run("backup BACKUP");
  await Deno.mkdir(`${fixture.folder}/EMPTY`);
  const bytes = await Deno.readFile(`${fixture.folder}/BACKUP`);
  const middle = bytes.length / 2;
  for (
    const [damaged, kvPath] of [
      [bytes.subarray(0, middle), "EMPTY/things.kv"],
      [bytes.slice().fill(0xaa, 4_096, middle), "EMPTY/NEW/ONE/things.kv"],
      [bytes.subarray(0, 0), "NEW/ONE/things.kv"],
      [bytes.subarray(0, 8_192), "NEW/ONE/things.kv"],
    ] as const
  ) {
    await Deno.writeFile(`${fixture.folder}/BACKUP`, damaged);

    const code = await fixture.run("restore BACKUP", kvPath);

    assertEquals([code, fixture.out], [1, []]);
    assertMatch(fixture.err.at(-1) ?? "", /^BACKUP was not restored: [^\n]+\.$/);
    assertEquals(await fixture.names(), ["BACKUP", "EMPTY", "things.kv"]);
  }
});

Deno.test("main() says what to do with a copy by sqlite3 .backup, and restores it after that", async () => {
  await using fixture = await Fixture.start();
  const store = new DatabaseSync(fixture.store, PATIENT);
  await backup(store, `${fixture.folder}/COPY`); // As sqlite3 .backup does.
  store.close();

  assertEquals([await fixture.run("restore COPY", "DATA/things.kv"), fixture.err.length], [1, 1]);
  const [, pragma = ""] = /after sqlite3 FILE '([^']+)'/.exec(fixture.err.join()) ?? [];
  const copy = new DatabaseSync(`${fixture.folder}/COPY`);
  copy.exec(pragma);
  copy.close();
  assertEquals(await fixture.run("restore COPY", "DATA/things.kv"), 0);

  assertEquals(await rowsOf(`${fixture.folder}/DATA/things.kv`), await rowsOf(fixture.store));
});

/** Commands that fail, with KV_PATH, and how the line begins that says why. */
const FAILURES: readonly (readonly [command: string, kvPath: string, start: string])[] = [
  ["backup BACKUP", "MISSING", "MISSING was not backed up: there is no such file."],
  ["backup BACKUP", "FOLDER", "FOLDER was not backed up: it is not a file."],
  ["backup BACKUP", "TEXT", "TEXT was not backed up: file is not a database."],
  ["backup BACKUP", "FOREIGN", "FOREIGN was not backed up: its rows have version 9, "],
  ["backup BACKUP", "SQLITE", "SQLITE was not backed up: it is not a Deno KV."],
  ["backup TEXT", "things.kv", "things.kv was not backed up: TEXT exists, and "],
  ["backup NONE/BACKUP", "things.kv", "things.kv was not backed up: there is no folder NONE."],
  ["restore SQLITE", "https://localhost", "KV_PATH is the URL of a KV Connect server. Run this on "],
  ["restore SQLITE", "things.kv", "SQLITE was not restored: things.kv exists, and "],
  ["restore SQLITE", "HALF", "SQLITE was not restored: HALF-wal exists, and "],
  ["restore SQLITE", "TORN", "SQLITE was not restored: TORN-journal exists, and "],
  ["restore SQLITE", "NEW/things.kv", "SQLITE was not restored: it is not a Deno KV."],
  ["restore TEXT", "NEW/things.kv", "TEXT was not restored: it is not a backup of a store."],
  ["restore FOREIGN", "NEW/things.kv", "FOREIGN was not restored: it is a store, not a backup of one. "],
  ["restore MISSING", "NEW/things.kv", "MISSING was not restored: there is no such file."],
  ["restore SQLITE", "TEXT/things.kv", "SQLITE was not restored: "],
];

Deno.test("main() explains in one line why a backup or a restore fails, and leaves no files", async () => {
  await using fixture = await Fixture.start();
  const { folder } = fixture;
  await Deno.mkdir(`${folder}/FOLDER`);
  await Deno.writeTextFile(`${folder}/TEXT`, "This is no database. ".repeat(1_000));
  for (const rest of ["HALF-wal", "TORN-journal"]) await Deno.writeTextFile(`${folder}/${rest}`, "");
  const sqlite = new DatabaseSync(`${folder}/SQLITE`);
  sqlite.exec("CREATE TABLE things (name text)");
  sqlite.close();
  {
    using kv = await Deno.openKv(`${folder}/FOREIGN`);
    await kv.set(["schema"], encodeJson({ version: 9 }));
  }
  const names = async () => (await fixture.names()).filter((name) => !/FOREIGN-/.test(name));
  const before = await names();

  for (const [command, kvPath, start] of FAILURES) {
    const code = await fixture.run(command, kvPath === "things.kv" ? fixture.store : kvPath);

    const line = (fixture.err.at(-1) ?? "").replaceAll(folder, "");
    const seen = [code, fixture.out, line.slice(0, start.length), /^[^\n]+\.$/.test(line), await names()];
    assertEquals([command, kvPath, ...seen], [command, kvPath, 1, [], start, true, before]);
  }
});

Deno.test("copyStore() copies one snapshot, and does not start over when another process writes", async () => {
  await using fixture = await Fixture.start(20);
  const before = await rowsOf(fixture.store);
  const writer = new DatabaseSync(fixture.store, PATIENT);
  const copied: number[] = [];
  const notices: string[] = [];
  const target = `${fixture.folder}/copy`;

  await copyStore({ source: fixture.store, target, isRestored: false, step: 20 }, (notice) => {
    notices.push(notice);
    copied.push(Number(/^Copied (\d+) of \d+ pages\.$/.exec(notice)?.[1]));
    if (notices.length > 100) throw new Error("The copy starts over with every write");
    writer.exec("UPDATE kv SET v = zeroblob(60000) WHERE length(v) > 40000");
  });

  writer.close();
  assertEquals(notices.at(-1), "Copied all pages. Checking the copy.");
  copied.pop();
  assertLess(1, copied.length);
  assertEquals(copied, copied.map((_, step) => 20 * (step + 1)));
  assertEquals(await rowsOf(target), before);
});

Deno.test("copyStore() detects damage in a backup before the copy, otherwise in the copy", async () => {
  await using fixture = await Fixture.start();
  await fixture.run("backup BACKUP");
  const [source, target] = [`${fixture.folder}/BACKUP`, `${fixture.folder}/copy`];
  await Deno.writeFile(source, withWrongKey(await Deno.readFile(source)));

  for (const isRestored of [true, false]) {
    await assertRejects(
      () => copyStore({ source, target, isRestored }, () => {}),
      CommandError,
      "it is damaged: ",
    );
    assertEquals((await fixture.names()).includes("copy"), !isRestored);
  }
});

Deno.test("writeAtomically() keeps a file that appeared at its path, and says where it can create none", async () => {
  await using fixture = await Fixture.start();
  const path = `${fixture.folder}/file`;
  const write = async (unfinished: string) => {
    await Deno.writeTextFile(unfinished, "mine");
    await Deno.writeTextFile(path, "theirs");
  };

  await assertRejects(() => writeAtomically(path, write), CommandError, "was created in the meantime");

  assertEquals(await Deno.readTextFile(path), "theirs");
  assertEquals(await fixture.names(), ["file", "things.kv"]);
  const folder = `${fixture.folder}/unmounted`;
  await Deno.symlink(`${fixture.folder}/none`, folder);
  const reason = `cannot create anything in ${folder}: `;
  await assertRejects(() => writeAtomically(`${folder}/file`, write), CommandError, reason);
});
