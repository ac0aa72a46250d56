// Makes a copy of the checkout by the steps of src/README.md, with toys in place of animals, and checks all of it.
import { putToysInPlace } from "./toy_shop.ts";

const ROOT = `${import.meta.dirname}/../..`;
/** Folders of tests that are about animals. */
const OF_ANIMALS = ["tests/pets", "tests/releases"];
/** Arguments of `deno`. */
const STEPS = [
  ["task", "docs"],
  ["fmt", "--check"],
  ["lint"],
  ["task", "check"],
  ["task", "test"],
  ["task", "--config", "tests/client/deno.json", "test"],
] as const;

const folder = await Deno.makeTempDir({ prefix: "fork_" });
try {
  await copyCheckout();
  for (const name of OF_ANIMALS) await Deno.remove(`${folder}/${name}`, { recursive: true });
  await putToysInPlace(folder);
  for (const step of STEPS) await run(...step);
} finally {
  await Deno.remove(folder, { recursive: true });
}

/** Copies the files that Git knows, and those that it could add. */
async function copyCheckout(): Promise<void> {
  const args = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"];
  const { stdout } = await new Deno.Command("git", { args, cwd: ROOT }).output();
  for (const path of new TextDecoder().decode(stdout).split("\0").slice(0, -1)) {
    await Deno.mkdir(`${folder}/${path}`.replace(/\/[^/]*$/, ""), { recursive: true });
    await Deno.copyFile(`${ROOT}/${path}`, `${folder}/${path}`);
  }
}

/** Runs `deno` in the copy. Ends this program if it fails. */
async function run(...args: readonly string[]): Promise<void> {
  const { success } = await new Deno.Command(Deno.execPath(), { args: [...args], cwd: folder }).spawn()
    .status;
  if (!success) throw new Error(`In a copy with toys, deno ${args.join(" ")} failed`);
}
