// A later release of the service, as a fork meets it. It edits a file of each folder, also of the adopter's, and adds one;
// it removes some of the adopter's, edits prose and what is derived in README.md, adds a setting, and raises the version.
import { rewrite } from "../process/checkout.ts";

/** Files that a release has and the later one has not. */
const REMOVED = ["src/catalogue/removed.md", "src/catalogue/also_removed.md", "tests/catalogue/removed.md"];

/** What changes in which file: a text that it has, and what takes its place. */
const EDITS: readonly (readonly [path: string, from: string, to: string])[] = [
  [
    "src/process/config.ts",
    "securityContact: optional(",
    `motto: optional("MOTTO", "words for nobody", text().parse),\n  securityContact: optional(`,
  ],
  ["deno.json", '"SECURITY_CONTACT",', '"SECURITY_CONTACT",\n        "MOTTO",'],
  [
    "tests/process/config_unit_test.ts",
    "securityContact: undefined,",
    "motto: undefined,\n    securityContact: undefined,",
  ],
  ["deno.json", `"version": "`, `"version": "9.`],
  ["README.md", "A finished", "A really finished"],
  ["README.md", "## Guides", "## More guides"],
  ["src/app/health.ts", 'summary: "Check liveness"', 'summary: "Check a motto"'],
  ["src/catalogue/pets.ts", "The catalogue of animals", "The catalogue of the animals"],
  ["src/catalogue/plans.ts", "The plans", "All plans"],
  ["src/catalogue/identity.ts", "an API whose", "the API whose"],
  ["src/CHANGES.md", "\n## ", "\n## 9.VERSION\n\n- There is a motto.\n\n## "],
];

/** Adds the files to a copy of the checkout that the later release removes. */
export async function addRemovedFiles(folder: string): Promise<void> {
  for (const path of REMOVED) await Deno.writeTextFile(`${folder}/${path}`, "A file of a release.\n");
}

/** Makes a later release of a copy of the checkout. Throws if the copy lacks a text that it replaces. */
export async function makeLaterRelease(folder: string): Promise<void> {
  const { version } = JSON.parse(await Deno.readTextFile(`${folder}/deno.json`));
  for (const [path, from, to] of EDITS) {
    await rewrite(`${folder}/${path}`, (text) => {
      if (!text.includes(from)) throw new Error(`${path} lacks ${from}`);
      return text.replace(from, () => to.replace("VERSION", version));
    });
  }
  for (const path of REMOVED) await Deno.remove(`${folder}/${path}`);
  for (const top of ["src", "tests"]) await touch(`${folder}/${top}`);
}

/** Adds a file to each folder, and a comment to a file there. */
async function touch(folder: string): Promise<void> {
  const entries = await Array.fromAsync(Deno.readDir(folder));
  const [first] = entries.map(({ name }) => name).filter((name) => /\.(?:ts|js)$/.test(name)).sort();
  if (first !== undefined) {
    await rewrite(`${folder}/${first}`, (text) => `${text}\n// Touched by a later release.\n`);
  }
  await Deno.writeTextFile(`${folder}/added.md`, "Added by a later release.\n");
  for (const { name, isDirectory } of entries) {
    if (isDirectory) await touch(`${folder}/${name}`);
  }
}
