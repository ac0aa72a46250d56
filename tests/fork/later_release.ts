// A later release of the service, as a fork meets it: it touches every folder but the adopter's, adds a setting, and raises
// the version.
import { rewrite } from "../process/checkout.ts";

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
  ["src/CHANGES.md", "\n## ", "\n## 9.VERSION\n\n- There is a motto.\n\n## "],
];

/** Makes a later release of a copy of the checkout. Throws if the copy lacks a text that it replaces. */
export async function makeLaterRelease(folder: string): Promise<void> {
  const { version } = JSON.parse(await Deno.readTextFile(`${folder}/deno.json`));
  for (const [path, from, to] of EDITS) {
    await rewrite(`${folder}/${path}`, (text) => {
      if (!text.includes(from)) throw new Error(`${path} lacks ${from}`);
      return text.replace(from, () => to.replace("VERSION", version));
    });
  }
  for (const top of ["src", "tests"]) await touch(`${folder}/${top}`);
}

/** Adds a comment to a file in each folder, except the adopter's. */
async function touch(folder: string): Promise<void> {
  const entries = await Array.fromAsync(Deno.readDir(folder));
  const [first] = entries.map(({ name }) => name).filter((name) => /\.(?:ts|js)$/.test(name)).sort();
  if (first !== undefined) {
    await rewrite(`${folder}/${first}`, (text) => `${text}\n// Touched by a later release.\n`);
  }
  for (const { name, isDirectory } of entries) {
    if (isDirectory && name !== "catalogue") await touch(`${folder}/${name}`);
  }
}
