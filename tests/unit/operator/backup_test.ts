import {
  assert,
  assertEquals,
  assertLess,
  assertMatch,
  assertRejects,
  assertStringIncludes,
} from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { main } from "../../../src/cli.ts";
import { openStore } from "../../../src/kv/open.ts";
import { encodeJson } from "../../../src/kv/row.ts";
import { writeAtomically } from "../../../src/operator/backup.ts";
import { copyStore } from "../../../src/operator/store_copy.ts";
import { CommandError } from "../../../src/operator/command_line.ts";

const CLOCK = { clock: Date.now };

/** A folder with a store of some rows, and somebody who backs it up and restores it. */
class Keeper implements AsyncDisposable {
  readonly folder: string = Deno.makeTempDirSync();
  readonly store: string = `${this.folder}/animals.kv`;
  /** Lines of the last command for programs, and for people. */
  out: string[] = [];
  err: string[] = [];

  static async start(rows: number = 3): Promise<Keeper> {
    const keeper = new Keeper();
    const store = await openStore(keeper.store, { ...CLOCK, create: true });
    for (let row = 0; row < rows; row++) {
      await store.commit((operation) => operation.set(["rows", row], new Uint8Array(50_000).fill(row)));
    }
    await store.close();
    return keeper;
  }

  /** Runs a command, in which names in capitals are files in the folder, to its exit code. */
  run(command: string, kvPath: string = this.store): Promise<number> {
    [this.out, this.err] = [[], []];
    const inFolder = (text: string) => text.replaceAll(/\b[A-Z_]{2,}\b/g, (name) => `${this.folder}/${name}`);
    return main(inFolder(command).split(" "), (name) => name === "KV_PATH" ? inFolder(kvPath) : undefined, {
      ...CLOCK,
      input: () => Promise.resolve([]),
      out: (line) => Promise.resolve(void this.out.push(line)),
      err: (line) => this.err.push(line.replaceAll(`${this.folder}/`, "")),
      isStopping: () => false,
      isRemote: false,
    });
  }

  /** What is in the folder, and below it. */
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

/** A file whose one row has another key in the table than in the index; nothing but a check of all of it shows that. */
function withWrongKey(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const wrong = bytes.slice();
  const name = new TextEncoder().encode("rows");
  const at = wrong.findIndex((_, start) => name.every((byte, offset) => wrong[start + offset] === byte));
  assertLess(0, at);
  wrong[at] = "R".charCodeAt(0);
  return wrong;
}

/** All rows of a store but those that every process leaves there of its commits. */
async function rowsOf(path: string): Promise<Deno.KvEntry<unknown>[]> {
  using kv = await Deno.openKv(path);
  return (await Array.fromAsync(kv.list({ prefix: [] }))).filter(({ key: [kind] }) => kind !== "commits");
}

Deno.test("main() restores, as one file for its owner alone, what it backed up from a store in use", async () => {
  await using keeper = await Keeper.start();
  const store = await openStore(keeper.store, { ...CLOCK, create: false });
  await store.commit((operation) => operation.set(["rows", "newest"], new Uint8Array([1])));

  assertEquals([await keeper.run("backup BACKUP"), keeper.out], [0, []]);
  assertEquals(keeper.err, [`Backed up animals.kv to BACKUP.`]);
  await store.commit((operation) => operation.set(["rows", "later"], new Uint8Array([2])));
  await store.close();
  assertEquals(await keeper.run("restore BACKUP", "DATA/animals.kv"), 0);
  assertEquals(keeper.err, [`Restored DATA/animals.kv from BACKUP.`]);

  const others = (await keeper.names()).filter((name) => !name.startsWith("animals.kv"));
  assertEquals(others, ["BACKUP", "DATA", "DATA/animals.kv"]);
  for (const [name, mode] of [["BACKUP", 0o600], ["DATA", 0o700], ["DATA/animals.kv", 0o600]] as const) {
    const stat = await Deno.stat(`${keeper.folder}/${name}`);
    if (Deno.build.os !== "windows") assertEquals((stat.mode ?? 0) & 0o777, mode, name);
  }
  const expected = (await rowsOf(keeper.store)).filter(({ key }) => key[1] !== "later");
  assertEquals(await rowsOf(`${keeper.folder}/DATA/animals.kv`), expected);
  assertEquals(expected.length, 5);
});

Deno.test("main() makes one file of a store whose process was killed, log and all", async () => {
  await using keeper = await Keeper.start();
  const store = await openStore(keeper.store, { ...CLOCK, create: false });
  await store.commit((operation) => operation.set(["rows", "newest"], new Uint8Array([1])));
  for (const end of ["", "-wal"]) await Deno.copyFile(keeper.store + end, `${keeper.folder}/KILLED${end}`);
  await store.close();

  const code = await keeper.run("backup BACKUP", "KILLED");

  assertEquals([code, keeper.err], [0, ["Backed up KILLED to BACKUP."]]);
  assert((await rowsOf(`${keeper.folder}/BACKUP`)).some(({ key }) => key[1] === "newest"));
});

Deno.test("main() restores nothing from a damaged backup, and leaves nothing", async (t) => {
  await using keeper = await Keeper.start(40);
  await keeper.run("backup BACKUP");
  const bytes = await Deno.readFile(`${keeper.folder}/BACKUP`);
  const before = await keeper.names();
  const middle = bytes.length / 2;
  for (
    const [what, damaged] of [
      ["cut short", bytes.subarray(0, middle)],
      ["overwritten in part", bytes.slice().fill(0xaa, 4_096, middle)],
      ["empty", bytes.subarray(0, 0)],
    ] as const
  ) {
    await t.step(`it is ${what}`, async () => {
      await Deno.writeFile(`${keeper.folder}/BACKUP`, damaged);

      const code = await keeper.run("restore BACKUP", "DATA/animals.kv");

      assertEquals([code, keeper.out, keeper.err.length], [1, [], 1]);
      assertMatch(keeper.err.join(), /^BACKUP was not restored: [^\n]+\.$/);
      assertEquals(await keeper.names(), before);
    });
  }
});

Deno.test.each([
  ["backup BACKUP", "MISSING", /^MISSING was not backed up: there is no such file\.$/],
  ["backup BACKUP", "FOLDER", /^FOLDER was not backed up: it is not a file\.$/],
  ["backup BACKUP", "TEXT", /^TEXT was not backed up: .*not a database\.$/],
  ["backup BACKUP", "FOREIGN", /^FOREIGN was not backed up: its rows are of version 9, [^\n]+\.$/],
  ["backup BACKUP", "SQLITE", /^SQLITE was not backed up: it is not a Deno KV\.$/],
  ["backup TEXT", "animals.kv", /^animals\.kv was not backed up: TEXT exists, [^\n]+\.$/],
  ["backup NONE/BACKUP", "animals.kv", /^animals\.kv was not backed up: there is no folder NONE\.$/],
  [
    "backup BACKUP",
    ":memory:",
    /^Commands cannot use KV_PATH=:memory:, because only the server has access to it\.$/,
  ],
  ["backup BACKUP", "http://localhost", /^KV_PATH is the URL of a KV Connect server\. [^\n@]+\.$/],
  ["restore SQLITE", "https://localhost", /^KV_PATH is the URL of a KV Connect server\. [^\n@]+\.$/],
  ["restore SQLITE", "animals.kv", /^SQLITE was not restored: animals\.kv exists, [^\n]+\.$/],
  ["restore SQLITE", "HALF", /^SQLITE was not restored: HALF-wal exists, [^\n]+\.$/],
  ["restore SQLITE", "TORN", /^SQLITE was not restored: TORN-journal exists, [^\n]+\.$/],
  ["restore SQLITE", "NEW/animals.kv", /^SQLITE was not restored: it is not a Deno KV\.$/],
  ["restore TEXT", "NEW/animals.kv", /^TEXT was not restored: it is not a backup of a store\.$/],
  [
    "restore FOREIGN",
    "NEW/animals.kv",
    /^FOREIGN was not restored: it is a store, not a backup of one: [^\n]+\.$/,
  ],
  ["restore MISSING", "NEW/animals.kv", /^MISSING was not restored: there is no such file\.$/],
  ["restore SQLITE", "TEXT/animals.kv", /^SQLITE was not restored: [^\n]+\.$/],
])(
  "main() says in one line why it does not '%s' where KV_PATH is %s, and leaves nothing",
  async (command, kvPath, says) => {
    await using keeper = await Keeper.start();
    const { folder } = keeper;
    await Deno.mkdir(`${folder}/FOLDER`);
    await Deno.writeTextFile(`${folder}/TEXT`, "This is no database. ".repeat(1_000));
    for (const rest of ["HALF-wal", "TORN-journal"]) await Deno.writeTextFile(`${folder}/${rest}`, "");
    const sqlite = new DatabaseSync(`${folder}/SQLITE`);
    sqlite.exec("CREATE TABLE animals (name text)");
    sqlite.close();
    {
      using kv = await Deno.openKv(`${folder}/FOREIGN`);
      await kv.set(["schema"], encodeJson({ version: 9 }));
    }
    const names = async () => (await keeper.names()).filter((name) => !/FOREIGN-/.test(name));
    const before = await names();

    const code = await keeper.run(
      command,
      kvPath.replace("animals.kv", (name) => kvPath === name ? keeper.store : name),
    );

    assertEquals([code, keeper.out, keeper.err.length], [1, [], 1]);
    assertMatch(keeper.err.join().replaceAll(folder, ""), says);
    assertEquals(await names(), before);
  },
);

Deno.test.each(["backup", "restore", "backup ONE TWO", "backup ONE --fast", "restore ONE --plan free"])(
  "main() says in one line what it does not understand of '%s', and exits with 2",
  async (command) => {
    await using keeper = await Keeper.start();

    const code = await keeper.run(command);

    assertEquals([code, keeper.out, keeper.err.length], [2, [], 1]);
    assertMatch(keeper.err.join(), new RegExp(`\\. See: deno task ${command.split(" ")[0]} --help$`));
    assertEquals(await keeper.names(), ["animals.kv"]);
  },
);

Deno.test.each(["backup", "restore"])("main() prints help when it is given '%s --help'", async (command) => {
  await using keeper = await Keeper.start();

  assertEquals([await keeper.run(`${command} --help`, ":memory:"), keeper.err], [0, []]);

  assertStringIncludes(keeper.out.join(), `Usage: deno task ${command} FILE`);
});

Deno.test("copyStore() copies one moment and never starts anew when others write meanwhile", async () => {
  await using keeper = await Keeper.start(20);
  const before = await rowsOf(keeper.store);
  const writer = new DatabaseSync(keeper.store);
  const copied: number[] = [];
  const notices: string[] = [];
  const target = `${keeper.folder}/copy`;

  await copyStore({ source: keeper.store, target, distrusted: false, step: 20 }, (notice) => {
    notices.push(notice);
    copied.push(Number(/^Copied (\d+) of \d+ pages\.$/.exec(notice)?.[1]));
    if (notices.length > 100) throw new Error("It starts anew with every write");
    writer.exec("UPDATE kv SET v = zeroblob(60000) WHERE length(v) > 40000");
  });

  writer.close();
  assertEquals(notices.at(-1), "Copied all pages. Checking the copy.");
  copied.pop();
  assertLess(1, copied.length);
  assertEquals(copied, copied.map((_, step) => 20 * (step + 1)));
  assertEquals(await rowsOf(target), before);
});

Deno.test("copyStore() makes a copy of a damaged file only if it trusts that, and finds the damage in the copy", async () => {
  await using keeper = await Keeper.start();
  await keeper.run("backup BACKUP");
  const [source, target] = [`${keeper.folder}/BACKUP`, `${keeper.folder}/copy`];
  await Deno.writeFile(source, withWrongKey(await Deno.readFile(source)));

  for (const distrusted of [true, false]) {
    await assertRejects(
      () => copyStore({ source, target, distrusted }, () => {}),
      CommandError,
      "it is damaged: ",
    );
    assertEquals((await keeper.names()).includes("copy"), !distrusted);
  }
});

Deno.test("writeAtomically() makes a file with any name that a file may have", async () => {
  await using keeper = await Keeper.start();
  const names = ["x".repeat(255), ...(Deno.build.os === "windows" ? [] : ["2027-01-15T12:00:00+00:00.kv"])];

  for (const name of names) {
    await writeAtomically(`${keeper.folder}/${name}`, (unfinished) => Deno.writeTextFile(unfinished, "text"));
  }

  assertEquals(await keeper.names(), [...names, "animals.kv"].sort());
});

Deno.test({
  name: "writeAtomically() says where nothing can be made, and why",
  ignore: Deno.build.os === "windows", // Links are for administrators there.
  async fn() {
    await using keeper = await Keeper.start();
    const folder = `${keeper.folder}/unmounted`;
    await Deno.symlink(`${keeper.folder}/none`, folder);

    const { message } = await assertRejects(
      () => writeAtomically(`${folder}/file`, async () => {}),
      CommandError,
    );

    assertMatch(message.replace(keeper.folder, ""), /^cannot create anything in \/unmounted: [^:]+$/);
  },
});

Deno.test("writeAtomically() leaves alone what came to be in its place, and nothing of its own", async () => {
  await using keeper = await Keeper.start();
  const path = `${keeper.folder}/file`;

  await assertRejects(
    () =>
      writeAtomically(path, async (unfinished) => {
        await Deno.writeTextFile(unfinished, "mine");
        await Deno.writeTextFile(path, "theirs");
      }),
    Error,
    "exists",
  );

  assertEquals(await Deno.readTextFile(path), "theirs");
  assertEquals(await keeper.names(), ["animals.kv", "file"]);
});

Deno.test("writeAtomically() shows nothing under its path before it is written", async () => {
  await using keeper = await Keeper.start();
  const seen: string[][] = [];

  await writeAtomically(`${keeper.folder}/file`, async (unfinished) => {
    await Deno.writeTextFile(unfinished, "text");
    seen.push(await keeper.names());
  });

  assertEquals(seen.flat().includes("file"), false);
  assertEquals(await keeper.names(), ["animals.kv", "file"]);
  assertEquals(await Deno.readTextFile(`${keeper.folder}/file`), "text");
});
