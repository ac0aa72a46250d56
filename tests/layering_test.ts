import { assert, assertEquals } from "@std/assert";

/** What each file imports, as it is written there. */
type Imports = Readonly<Record<string, readonly string[]>>;

/** Folders of src from top to bottom, below main.ts and src/*.ts; those of one row know nothing of each other. */
const FOLDERS: readonly (readonly string[])[] = [
  ["page"],
  ["portal", "operator"],
  ["pets", "messages"],
  ["idempotency"],
  ["access"],
  ["leases"],
  ["accounts"],
  ["batching"],
  ["caching"],
  ["http", "kv"],
  ["metrics"],
];
const ROOT = `${import.meta.dirname}/..`;
const MAX_LINES = 215;
const STATIC = /^(?:import|export)\b[^;"]*?\bfrom\s*"([^"]+)"/gm;
const SIDE_EFFECT = /^import\s*"([^"]+)"/gm;
const DYNAMIC = /\bimport\(\s*"?([^)]*?)"?\s*\)/g;

/** The modules that a source text imports. */
function importsOf(source: string): string[] {
  const code = source.replaceAll(/^\s*(?:\/\*\*|\*).*$/gm, "");
  return [STATIC, SIDE_EFFECT, DYNAMIC].flatMap((pattern) =>
    [...code.matchAll(pattern)].map(([, specifier = ""]) => specifier)
  );
}

/** The file that a relative specifier leads to from another file. */
function resolve(specifier: string, from: string): string {
  return new URL(specifier, `file:///${from}`).pathname.slice(1);
}

/** The folder a file is layered by, and its row; lower rows have higher numbers. */
function placeOf(file: string): { folder: string; row: number } {
  const [top = "", folder = "", ...rest] = file.split("/");
  if (top === "main.ts") return { folder: top, row: -2 };
  if (rest.length === 0) return { folder: top, row: top === "src" ? -1 : NaN };
  const row = FOLDERS.findIndex((folders) => folders.includes(folder));
  return { folder, row: top === "src" && row !== -1 ? row : NaN };
}

/** Everything about these imports that breaks a rule, in words. */
function violations(imports: Imports): string[] {
  return Object.entries(imports).flatMap(([file, specifiers]) =>
    specifiers.flatMap((specifier) => {
      if (/^(?:@std|node:)/.test(specifier) || specifier === "../deno.json") return [];
      if (!/^\.\.?\//.test(specifier)) {
        return [`${file} imports the foreign ${specifier}`];
      }
      const target = resolve(specifier, file);
      if (!Object.hasOwn(imports, target)) {
        return [`${file} imports ${target}, which is not of the service`];
      }
      const [from, to] = [placeOf(file), placeOf(target)];
      return from.folder === to.folder || to.row > from.row ? [] : [`${file} imports upward from ${target}`];
    })
  );
}

/** A way through the imports that leads back to where it starts, if there is one. */
function findCycle(imports: Imports): readonly string[] | undefined {
  const done = new Set<string>();
  function walk(path: readonly string[]): readonly string[] | undefined {
    const file = path.at(-1) ?? "";
    if (path.indexOf(file) < path.length - 1) return path;
    if (done.has(file)) return undefined;
    for (const specifier of imports[file] ?? []) {
      const cycle = specifier.startsWith(".") && walk([...path, resolve(specifier, file)]);
      if (cycle) return cycle;
    }
    done.add(file);
    return undefined;
  }
  return Object.keys(imports).map((file) => walk([file])).find((cycle) => cycle !== undefined);
}

/** The source files of the service, by path from the root of the repository. */
async function readSources(folder: string = "src"): Promise<Map<string, string>> {
  const sources = new Map<string, string>();
  for await (const { name, isDirectory } of Deno.readDir(`${ROOT}/${folder}`)) {
    const path = `${folder}/${name}`;
    if (isDirectory) {
      for (const [file, source] of await readSources(path)) sources.set(file, source);
    } else if (/(?<!\.d)\.(?:ts|js)$/.test(name)) {
      sources.set(path, await Deno.readTextFile(`${ROOT}/${path}`));
    }
  }
  return sources;
}

async function readImports(): Promise<Imports> {
  const sources = await readSources();
  sources.set("main.ts", await Deno.readTextFile(`${ROOT}/main.ts`));
  return Object.fromEntries([...sources].map(([file, source]) => [file, importsOf(source)]));
}

Deno.test("src imports only downward, from itself, @std and node:", async () => {
  const imports = await readImports();

  assert(imports["main.ts"]?.includes("./src/service.ts"));
  assert(imports["src/app.ts"]?.includes("./http/response.ts"));
  assertEquals(violations(imports), []);
});

Deno.test("src has no cycle of imports", async () => {
  assertEquals(findCycle(await readImports()), undefined);
});

Deno.test(`src has no file of more than ${MAX_LINES} lines`, async () => {
  const sources = await readSources();

  const long = [...sources].filter(([file, source]) =>
    file.endsWith(".ts") && source.trimEnd().split("\n").length > MAX_LINES
  );

  assert(sources.size > 0);
  assertEquals(long.map(([file]) => file), []);
});

Deno.test("violations() notices imports that are upward, between neighbours, or of something foreign", () => {
  const files: Imports = Object.fromEntries(
    ["main.ts", "src/app.ts", "src/http/json.ts", "src/kv/store.ts", "src/access/gate.ts", "src/pets/pet.ts"]
      .concat("src/messages/message.ts", "src/operator/pets.ts", "src/elsewhere/new.ts")
      .map((file) => [file, []]),
  );
  const wrong = [
    "src/http/json.ts ../kv/store.ts",
    "src/kv/store.ts ../http/json.ts",
    "src/kv/store.ts ../access/gate.ts",
    "src/pets/pet.ts ../messages/message.ts",
    "src/messages/message.ts ../pets/pet.ts",
    "src/operator/pets.ts ../app.ts",
    "src/app.ts ../main.ts",
    "src/app.ts ./elsewhere/new.ts",
    "src/elsewhere/new.ts ../http/json.ts",
    "src/app.ts ../tests/harness.ts",
    "src/app.ts ./gone.ts",
    "src/app.ts npm:hono",
    "src/app.ts hono",
    "src/app.ts https://deno.land/std/assert/mod.ts",
    "src/app.ts `./${name}.ts`",
  ];
  const right = [
    ...["main.ts ./src/app.ts", "main.ts ./src/kv/store.ts", "src/app.ts ./pets/pet.ts"],
    ...[
      "src/operator/pets.ts ../access/gate.ts",
      "src/pets/pet.ts ../http/json.ts",
      "src/pets/pet.ts ./pet.ts",
    ],
    ...["src/kv/store.ts @std/http/etag", "src/kv/store.ts node:crypto"],
  ];
  const isWrong = (line: string) => {
    const [file = "", specifier = ""] = line.split(" ");
    return violations({ ...files, [file]: [specifier] }).length === 1;
  };
  assertEquals([...wrong, ...right].filter(isWrong), wrong);
});

Deno.test("findCycle() gives the way round a cycle, and nothing when there is none", () => {
  const straight = { "src/a.ts": ["./b.ts", "./c.ts"], "src/b.ts": ["./c.ts", "node:util"], "src/c.ts": [] };

  assertEquals(findCycle(straight), undefined);
  const around = ["src/a.ts", "src/b.ts", "src/c.ts", "src/b.ts"];
  assertEquals(findCycle({ ...straight, "src/c.ts": ["./b.ts"] }), around);
  assertEquals(findCycle({ "src/a.ts": ["./a.ts"] }), ["src/a.ts", "src/a.ts"]);
});

Deno.test("importsOf() finds every form of import, and none in a documentation comment", () => {
  const source = `import { a } from "./a.ts";
import type { B } from "./b.ts";
import {
  c,
} from "./c.ts";
export * from "./d.ts";
export { e } from "./e.ts";
import "./f.ts";
/**
 * import { no } from "./no.ts";
 */
export const text = "from";
const g = await import("./g.ts");`;

  assertEquals(
    importsOf(source).sort(),
    [..."abcdefg"].map((name) => `./${name}.ts`),
  );
});
