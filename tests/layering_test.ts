import { assertEquals } from "@std/assert";

/** Files through which other folders import libraries. */
const DOORS = [
  ...["base/mod.ts", "engine/mod.ts", "limits/mod.ts", "service/mod.ts", "resource/mod.ts"],
  ...["web/mod.ts", "web/schema.ts", "web/openapi.ts", "web/headers.ts"],
];
/** Libraries that know no service. */
const LIBRARIES = ["base", "engine", "web", "limits"];
/** Libraries that know nothing of each other. */
const APART: readonly (readonly [string, string])[] = [["engine", "web"], ["limits", "web"]];
const ROOT = new URL("..", import.meta.url).href;
const ENTRIES = ["main.ts", "src/process/cli.ts"];
/** Files that every test may import. */
const SHARED = ["main.ts", "tests/catalogue/operations.ts"];
/** Folders that a fork can delete. */
const REMOTE = /^(src|tests)\/engine\/remote\//;

/** The text of each file of code, without documentation. Paths start at the root of the repository. */
const TEXTS: ReadonlyMap<string, string> = new Map(
  await Promise.all(["main.ts", ...await sourcesIn("src"), ...await sourcesIn("tests")].map(read)),
);
/** What each file imports: paths, and specifiers of packages. */
const ALL_IMPORTS: ReadonlyMap<string, readonly string[]> = new Map(
  [...TEXTS].map(([file, text]) => {
    const imports = [...text.matchAll(/\b(?:from |import |import\()"([^"]+)"/g)];
    const resolve = (name: string) => new URL(name, `${ROOT}${file}`).href.replace(ROOT, "");
    return [file, imports.map(([, name = ""]) => name.startsWith(".") ? resolve(name) : name)];
  }),
);
const IMPORTS: typeof ALL_IMPORTS = new Map([...ALL_IMPORTS].filter(([file]) => !file.startsWith("tests/")));

/** Files that forks do not take from a release. */
const ADOPTERS_OWN = /^(?:src|tests)\/catalogue\//;
/** What a fork of any release has in them. */
const IN_EVERY_FORK: Readonly<Record<string, readonly string[]>> = {
  "src/catalogue/catalogue.ts": ["CATALOGUE", "DEFAULT_KV_PATH"],
  "src/catalogue/identity.ts": ["IDENTITY"],
  "src/catalogue/parts.ts": ["PARTS"],
  "tests/catalogue/operations.ts": ["OWN"],
};
/** What an adopter's files import: declarations the first, parts both. */
const ADOPTERS = ["src/declare.ts", "src/part.ts"];
/** What they imported before there were these. Forks that did so take later releases without an edit. */
const FORMER = ["engine/mod.ts", "web/mod.ts", "web/schema.ts", "resource/mod.ts", "operator/part.ts"];
/** The parts that are shipped: a catalogue imports them to serve them. */
const SHIPPED_PARTS = ["src/messages/messages.ts", "src/page/page_operations.ts"];
/** The parts that a catalogue serves. */
const PARTS = /^src\/catalogue\/parts[./]/;
/** Folders of src from bottom to top. A folder imports only from those before it. */
const FOLDERS = [
  ...[
    "base",
    "engine",
    "web",
    "limits",
    "service",
    "resource",
    "declare.ts",
    "catalogue",
    "accounts",
    "changes",
  ],
  ...["operator", "messages", "page", "part.ts", "parts of the catalogue", "app", "process", "main.ts"],
];

async function read(file: string): Promise<[file: string, text: string]> {
  const text = await Deno.readTextFile(new URL(file, ROOT));
  return [file, text.replaceAll(/\/\*\*.*?\*\//gs, "")];
}

/** The folder of a file, or the file itself if it is in none. */
function folderOf(file: string): string {
  if (PARTS.test(file)) return "parts of the catalogue";
  const [top = "", folder = ""] = file.split("/");
  return top === "src" ? folder : top;
}

function mayImport(file: string, target: string): boolean {
  if (/^(?:@std\/|node:)/.test(target) || target === "deno.json") return true;
  const [from, to] = [folderOf(file), folderOf(target)];
  if (!IMPORTS.has(target) || !FOLDERS.includes(from)) return false;
  const isClosed = DOORS.some((door) => folderOf(`src/${door}`) === to);
  if (from !== to && isClosed && !DOORS.includes(target.replace("src/", ""))) return false;
  if (APART.some((folders) => from !== to && folders.includes(from) && folders.includes(to))) return false;
  return FOLDERS.includes(to) && FOLDERS.indexOf(to) <= FOLDERS.indexOf(from);
}

/** The files that a file imports, directly or indirectly. */
function reachedFrom(file: string, imports: ReadonlyMap<string, readonly string[]>): ReadonlySet<string> {
  const reached = new Set(imports.get(file));
  for (const target of reached) for (const further of imports.get(target) ?? []) reached.add(further);
  return reached;
}

/** The files of code below a folder, without installed packages. */
async function sourcesIn(folder: string): Promise<string[]> {
  const entries = await Array.fromAsync(Deno.readDir(new URL(folder, ROOT)));
  const own = entries.filter(({ name }) => name !== "node_modules");
  const sources = own.map(({ name, isDirectory }) => {
    const path = `${folder}/${name}`;
    return isDirectory ? sourcesIn(path) : /(?<!\.d)\.[jt]s$/.test(path) ? [path] : [];
  });
  return (await Promise.all(sources)).flat();
}

Deno.test("src imports only its own folder, folders before it, @std and node:", () => {
  const wrong = [...IMPORTS].flatMap(([file, targets]) =>
    targets.filter((target) => !mayImport(file, target)).map((target) => `${file} imports ${target}`)
  );

  assertEquals(wrong, []);
});

Deno.test("src has no import cycles", () => {
  assertEquals([...IMPORTS.keys()].filter((file) => reachedFrom(file, IMPORTS).has(file)), []);
});

Deno.test("src exports each constant, function and class under a name of its own", () => {
  const statement = /^export (?:const|class|(?:async )?function\*?) (\w+)/gm;
  const names = [...IMPORTS.keys()].filter((file) => file.endsWith(".ts")).flatMap((file) => {
    const declared = [...TEXTS.get(file)?.matchAll(statement) ?? []];
    return [...new Set(declared.map(([, name = ""]) => name))]; // A function can have several signatures.
  });

  assertEquals(names.filter((name, index) => names.indexOf(name) !== index), []);
});

Deno.test("doors only export what other files declare, and web's only what other folders import", () => {
  const namesIn = (text: string, statement: RegExp) =>
    [...text.matchAll(statement)].flatMap(([, names = ""]) => names.match(/\b(?!type )\w+/g) ?? []);
  const wrong = DOORS.flatMap((door) => {
    const text = TEXTS.get(`src/${door}`) ?? "";
    const code = text.replaceAll(/export (?:type )?\{[^}]*\} from ".*";/g, "").trim();
    // A fork without the page does not need all that it imports.
    if (!door.startsWith("web/") || !TEXTS.has("src/page/page.ts")) return code;
    const imports = new RegExp(String.raw`import (?:type )?\{([^}]*)\} from "[./\w]*/${door}"`, "g");
    const used = new Set([...TEXTS.values()].flatMap((text) => namesIn(text, imports)));
    return [code, ...namesIn(text, /export \{([^}]*)\}/g).filter((name) => !used.has(name))];
  });

  assertEquals(wrong.filter((text) => text !== ""), []);
});

Deno.test("libraries do not name what the service is about", async () => {
  const about =
    /\b(?:accounts?|operators?'?|plans?|(?:api|live|test)[ _]keys?|\[key\]|animals?|pets?|toys?)\b/gi;
  const files = (await Promise.all(LIBRARIES.map((name) => sourcesIn(`src/${name}`)))).flat();
  const named = await Promise.all(files.map(async (file) => {
    const text = await Deno.readTextFile(new URL(file, ROOT));
    const words = text.replaceAll(/^ *\* @example.*?\*\//gms, "").match(about) ?? [];
    return words.map((word) => `${file}: ${word}`);
  }));

  assertEquals(named.flat(), []);
});

Deno.test("src has no unused files", () => {
  const entries = [...ENTRIES, ...ADOPTERS];
  const used = new Set(entries.flatMap((entry) => [entry, ...reachedFrom(entry, IMPORTS)]));

  assertEquals([...IMPORTS.keys()].filter((file) => !used.has(file)), []);
});

Deno.test("of the catalogue, only app and process import parts.ts, only the page identity.ts, and nobody a resource", () => {
  const importers: Readonly<Record<string, RegExp>> = {
    "catalogue.ts": /^(?:main\.ts|src\/process\/)/,
    "parts.ts": /^src\/(?:app|process)\//,
    "identity.ts": /^src\/page\//,
  };
  const isOwn = (file: string) => file.startsWith("src/catalogue/");
  const wrong = [...IMPORTS].filter(([file]) => !isOwn(file)).flatMap(([file, targets]) =>
    targets.filter((target) => isOwn(target) && !importers[target.slice("src/catalogue/".length)]?.test(file))
      .map((target) => `${file} imports ${target}`)
  );

  assertEquals(wrong, []);
});

Deno.test("code imports from an adopter's files only what every fork has", () => {
  const wrong = [...TEXTS].filter(([file]) => !ADOPTERS_OWN.test(file)).flatMap(([file, text]) =>
    [...text.matchAll(/import (?:type )?\{([^}]*)\} from "([./]+[^"]+)"/g)].flatMap(
      ([, names = "", path = ""]) => {
        const target = new URL(path, `${ROOT}${file}`).href.replace(ROOT, "");
        const imported = names.match(/\b(?!type )\w+/g) ?? [];
        const isKnown = (name: string) => IN_EVERY_FORK[target]?.includes(name);
        return ADOPTERS_OWN.test(target)
          ? imported.filter((name) => !isKnown(name)).map((name) => `${file}: ${name}`)
          : [];
      },
    )
  );

  assertEquals(wrong, []);
});

Deno.test("catalogues import only declare.ts and, in parts, part.ts", () => {
  const isIn = (file: string) => /^(?:src|tests\/fork)\/catalogue\//.test(file);
  const isShipped = (file: string) => TEXTS.has("src/catalogue/pets.ts") || file.startsWith("tests/");
  const mayName = (file: string, target: string) =>
    !isShipped(file) && FORMER.includes(target.replace("src/", "")) || isIn(target) ||
    target === ADOPTERS[0] || /\/parts[./]/.test(file) && ADOPTERS.includes(target) ||
    file.endsWith("/parts.ts") && SHIPPED_PARTS.includes(target);
  const wrong = [...ALL_IMPORTS].filter(([file]) => isIn(file)).flatMap(([file, targets]) =>
    targets.filter((target) => !mayName(file, target)).map((target) => `${file} imports ${target}`)
  );

  assertEquals(wrong, []);
});

Deno.test("only engine/open.ts imports engine/remote, and of the tests only its own", () => {
  const isRemote = (file: string) => REMOTE.test(file);
  const others = [...ALL_IMPORTS].filter(([file, targets]) =>
    file !== "src/engine/open.ts" && !isRemote(file) && targets.some(isRemote)
  );

  assertEquals(others.map(([file]) => file), []);
});

Deno.test("tests import only src, what tests share and their own folder, and unit tests not the harness", () => {
  const folders = ["support", ...FOLDERS];
  const files = [...ALL_IMPORTS.keys()].filter((file) =>
    folders.some((folder) => file.startsWith(`tests/${folder}/`))
  );

  const wrong = files.flatMap((file) => {
    const folder = file.replace(/[^/]+$/, "");
    const known = ["src/", "tests/support/", "tests/process/", "tests/fork/catalogue/", folder];
    if (REMOTE.test(folder)) known.push("tests/engine/", "tests/model/");
    const isWrong = (target: string) =>
      target === "tests/support/harness.ts" && file.endsWith("_unit_test.ts") ||
      TEXTS.has(target) && !SHARED.includes(target) && !known.some((start) => target.startsWith(start));
    return [...reachedFrom(file, ALL_IMPORTS)].filter(isWrong).map((target) => `${file} imports ${target}`);
  });

  assertEquals(wrong, []);
});
