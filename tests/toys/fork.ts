// Makes three copies of the checkout by the steps of src/README.md, and checks them: one with toys in place of animals,
// one without the optional parts, and one that cannot use a KV server.
import { copyCheckout, leaveOut, leaveOutRemote, rewrite } from "../process/checkout.ts";
import { putToysInPlace } from "./toy_shop.ts";

/** Folders of tests that are about animals. */
const OF_ANIMALS = ["tests/pets", "tests/releases", "tests/client/languages"];
/** Folders of tests that are about optional parts. */
const OF_PARTS = ["tests/messages", "tests/page", "tests/browser"];
/** Folders of tests of the service, but not of its libraries, which know no part. */
const OF_SERVICE = ["accounts", "app", "operator", "process", "security", "web"];
/** Folders of tests of what uses the store. */
const OF_STORE = ["resource", "limits", "accounts", "messages", "app", "process"];
/** Arguments of `deno`, before and after those that run the tests. */
const BEFORE = [["task", "docs"], ["fmt", "--check"], ["lint"], ["task", "check"]] as const;
const AFTER = [["task", "clients", "--filter", "TypeScript"]] as const;

await inCopy(async (folder) => {
  for (const name of OF_ANIMALS) await Deno.remove(`${folder}/${name}`, { recursive: true });
  await putToysInPlace(folder);
  const [, line = "exit 1"] = /^ +(perl .+)$/m.exec(await Deno.readTextFile(`${folder}/src/README.md`)) ?? [];
  await run(["sh", "-c", line], folder);
  await check(folder, ["task", "test"]);
});
await inCopy(async (folder) => {
  for (const part of ["messages", "page"]) await leaveOut(folder, part);
  for (const name of OF_PARTS) await Deno.remove(`${folder}/${name}`, { recursive: true });
  await rewrite(
    `${folder}/deno.json`,
    (text) =>
      text.replace(/^ +"messages": \{[^}]*\},\n/m, "").replace(
        / && deno check [^&]*tests\/browser(?=[" ])/,
        "",
      ),
  );
  await check(folder, testing(OF_SERVICE));
});
await inCopy(async (folder) => {
  await leaveOutRemote(folder);
  await Deno.remove(`${folder}/tests/engine/remote`, { recursive: true });
  await check(folder, testing(OF_STORE));
});

/** Arguments of `deno` that run the tests in these folders, and those of the whole. */
function testing(names: readonly string[]): readonly string[] {
  const folders = names.map((name) => `tests/${name}`);
  const whole = ["numbers", "tables", "layering"].map((name) => `tests/${name}_test.ts`);
  return ["test", "--config", "tests/deno.json", "-P", "--parallel", ...folders, ...whole];
}

/** Does some work in a temporary copy of the checkout. */
async function inCopy(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "fork_" });
  try {
    await copyCheckout(folder);
    await work(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Runs all steps in a copy. Throws if one fails. */
async function check(cwd: string, tests: readonly string[]): Promise<void> {
  for (const args of [...BEFORE, tests, ...AFTER]) await run([Deno.execPath(), ...args], cwd);
}

async function run([program = "", ...args]: readonly string[], cwd: string): Promise<void> {
  const { success } = await new Deno.Command(program, { args, cwd }).spawn().status;
  if (!success) throw new Error(`In a fork, ${program} ${args.join(" ")} failed`);
}
