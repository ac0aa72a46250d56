import { assertEquals } from "@std/assert";

/** The graph of modules that `deno info` prints, as far as it is used here. */
interface Graph {
  readonly modules: readonly { readonly specifier: string; readonly dependencies?: readonly Import[] }[];
}

/** An import of a module, for its code, its types or both. */
interface Import {
  readonly specifier: string;
  readonly code?: { readonly specifier?: string };
  readonly type?: { readonly specifier?: string };
}

/** Files through which other folders import libraries. */
const DOORS = [
  ...["base/mod.ts", "engine/mod.ts", "limits/mod.ts", "resource/mod.ts"],
  ...["web/mod.ts", "web/schema.ts", "web/openapi.ts", "web/headers.ts"],
];
/** Libraries that know no service. */
const LIBRARIES = ["base", "engine", "web", "limits"];
/** Libraries that know nothing of each other. */
const APART: readonly (readonly [string, string])[] = [["engine", "web"], ["limits", "web"]];
const ROOT = new URL("..", import.meta.url).href;
const ENTRIES = ["main.ts", "src/process/cli.ts"];
/** Folders that a fork can delete. */
const REMOTE = /^(src|tests)\/engine\/remote\//;

/** The imports of each file of the service, as Deno resolves them. Paths start at the root of the repository. */
const IMPORTS: ReadonlyMap<string, readonly string[]> = new Map(
  (await Promise.all(ENTRIES.map(readGraph))).flatMap(({ modules }) => modules)
    .filter(({ specifier }) => specifier.startsWith(ROOT))
    .map(({ specifier, dependencies = [] }) => [pathOf(specifier), dependencies.map(targetOf)]),
);

/** The parts that a catalogue serves. */
const PARTS = /^src\/catalogue\/parts[./]/;
/** Folders of src from bottom to top. A folder imports only from those before it. */
const FOLDERS = [
  ...["base", "engine", "web", "limits", "resource", "catalogue", "accounts", "operator", "messages", "page"],
  ...["parts of the catalogue", "app", "process", "main.ts"],
];

async function readGraph(entry: string): Promise<Graph> {
  const command = new Deno.Command(Deno.execPath(), { args: ["info", "--json", entry], cwd: new URL(ROOT) });
  return JSON.parse(new TextDecoder().decode((await command.output()).stdout));
}

function pathOf(specifier: string): string {
  return specifier.replace(ROOT, "");
}

/** The path of the imported file, or the specifier if that file is not in the repository. */
function targetOf({ specifier, code, type }: Import): string {
  const target = code?.specifier ?? type?.specifier ?? "";
  return target.startsWith(ROOT) ? pathOf(target) : specifier;
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

/** The files that a file imports, according to its text. */
async function readImports(file: string): Promise<[file: string, targets: string[]]> {
  const text = await Deno.readTextFile(new URL(file, ROOT));
  const specifiers = [...text.matchAll(/ from "(\.[^"]+)"/g)].map(([, specifier = ""]) => specifier);
  return [file, specifiers.map((specifier) => pathOf(new URL(specifier, `${ROOT}${file}`).href))];
}

/** The TypeScript files below a folder. */
async function sourcesIn(folder: string): Promise<string[]> {
  const entries = await Array.fromAsync(Deno.readDir(new URL(folder, ROOT)));
  const sources = entries.map(({ name, isDirectory }) => {
    const path = `${folder}/${name}`;
    return isDirectory ? sourcesIn(path) : path.endsWith(".ts") ? [path] : [];
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

Deno.test("src exports each constant, function and class under a name of its own", async () => {
  const exported = await Promise.all((await sourcesIn("src")).map(async (file) => {
    const text = await Deno.readTextFile(new URL(file, ROOT));
    const declared = text.matchAll(/^export (?:const|class|(?:async )?function\*?) (\w+)/gm);
    return [...new Set([...declared].map(([, name = ""]) => name))];
  }));
  const names = exported.flat();

  assertEquals(names.filter((name, index) => names.indexOf(name) !== index), []);
});

Deno.test("doors only export what other files declare, and web's only what other folders import", async () => {
  const files = ["main.ts", ...await sourcesIn("src"), ...await sourcesIn("tests")];
  const texts = await Promise.all(files.map(async (file) => {
    const text = await Deno.readTextFile(new URL(file, ROOT));
    return [file, text.replaceAll(/\/\*\*.*?\*\//gs, "")] as const;
  }));
  const textOf = new Map(texts);
  const namesIn = (text: string, statement: RegExp) =>
    [...text.matchAll(statement)].flatMap(([, names = ""]) => names.match(/\b(?!type )\w+/g) ?? []);
  const wrong = DOORS.flatMap((door) => {
    const text = textOf.get(`src/${door}`) ?? "";
    const code = text.replaceAll(/export (?:type )?\{[^}]*\} from ".*";/g, "").trim();
    if (!door.startsWith("web/")) return code;
    const imports = new RegExp(String.raw`import (?:type )?\{([^}]*)\} from "[./\w]*/${door}"`, "g");
    const used = new Set(texts.flatMap(([, text]) => namesIn(text, imports)));
    return [code, ...namesIn(text, /export \{([^}]*)\}/g).filter((name) => !used.has(name))];
  });

  assertEquals(wrong.filter((text) => text !== ""), []);
});

Deno.test("libraries do not name what the service is about", async () => {
  const about =
    /\b(?:accounts?|operators?'?|plans?|(?:api|live|test)[ _]keys?|\[key\]|animals?|pets?|toys?)\b/gi;
  const bans = /\bban(?:s|ned)?\b/gi;
  const files = (await Promise.all(LIBRARIES.map((name) => sourcesIn(`src/${name}`)))).flat();
  const named = await Promise.all(files.map(async (file) => {
    const code = (await Deno.readTextFile(new URL(file, ROOT))).replaceAll(/^ *\* @example.*?\*\//gms, "");
    const words = [
      ...code.match(about) ?? [],
      ...file.startsWith("src/limits/") ? [] : code.match(bans) ?? [],
    ];
    return words.map((word) => `${file}: ${word}`);
  }));

  assertEquals(named.flat(), []);
});

Deno.test("src has no unused files", async () => {
  const imported = [...IMPORTS.keys()].filter((file) => file.endsWith(".ts"));

  assertEquals(imported.sort(), ["main.ts", ...await sourcesIn("src")].sort());
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

Deno.test("only engine/open.ts imports engine/remote, and of the tests only its own", async () => {
  const imports = new Map([...IMPORTS, ...await Promise.all((await sourcesIn("tests")).map(readImports))]);
  const isRemote = (file: string) => REMOTE.test(file);
  const others = [...imports].filter(([file, targets]) =>
    file !== "src/engine/open.ts" && !isRemote(file) && targets.some(isRemote)
  );

  assertEquals(others.map(([file]) => file), []);
});

Deno.test("tests import only src, what tests share and their own folder, and unit tests not the harness", async () => {
  const present = await Array.fromAsync(Deno.readDir(new URL("tests", ROOT)), ({ name }) => name);
  const folders = ["support", ...FOLDERS].filter((name) => present.includes(name));
  const files = (await Promise.all(folders.map((name) => sourcesIn(`tests/${name}`)))).flat();
  const imports = new Map(await Promise.all(files.map(readImports)));

  const wrong = files.flatMap((file) => {
    const folder = file.replace(/[^/]+$/, "");
    const isWrong = (target: string) => {
      if (target === "tests/support/harness.ts" && file.endsWith("_unit_test.ts")) return true;
      const known = [
        "src/",
        "tests/support/",
        "tests/catalogue/operations.ts",
        "tests/fork/catalogue/",
        "tests/process/",
        folder,
        "main.ts",
        "deno.json",
      ];
      if (REMOTE.test(folder)) known.push("tests/engine/", "tests/model/");
      return !known.some((start) => target.startsWith(start));
    };
    return [...reachedFrom(file, imports)].filter(isWrong).map((target) => `${file} imports ${target}`);
  });

  assertEquals(wrong, []);
});
