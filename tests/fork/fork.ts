// Makes a fork with a product by the steps of src/README.md, lets it take a later release, and checks it before and after.
// With --all, also makes forks without the optional parts, and without KV servers.
import { copyCheckout, leaveOut, leaveOutRemote, rewrite } from "../process/checkout.ts";
import { GENERATED } from "../tables.ts";
import { makeLaterRelease } from "./later_release.ts";

/** Folders of tests that are about optional parts, and files of them. */
const OF_PARTS = ["tests/messages", "tests/page", "tests/browser"];
/** Folders of tests of the service, but not of its libraries, which know no part. */
const OF_SERVICE = ["accounts", "app", "operator", "process", "security", "web"];
/** Folders of tests of what uses the store. */
const OF_STORE = ["resource", "limits", "accounts", "messages", "app", "process"];
/** The folders of an adopter. */
const OWN = /^(?:src|tests)\/catalogue\//;

await inCopy(async (folder) => {
  await git(folder, "init", "-q", "-b", "releases");
  await commit(folder, "A release");
  await git(folder, "switch", "-q", "-c", "product");
  await makeProduct(folder);
  await check(folder, ["task", "test"]);
  await commit(folder, "A product");
  await git(folder, "switch", "-q", "releases");
  await makeLaterRelease(folder);
  await deno(folder, "task", "docs");
  await commit(folder, "A later release");
  await git(folder, "switch", "-q", "product");
  await take(folder, "releases");
  await check(folder, ["task", "test"]);
});
if (Deno.args.includes("--all")) {
  await inCopy(async (folder) => {
    for (const part of ["messages", "page"]) await leaveOut(folder, part);
    for (const name of OF_PARTS) await Deno.remove(`${folder}/${name}`, { recursive: true });
    await rewrite(
      `${folder}/deno.json`,
      (text) =>
        text.replace(/^ +"messages": \{[^}]*\},\n/m, "")
          .replace(/ && deno check [^&]*tests\/browser(?=[" ])/, ""),
    );
    await deno(folder, "task", "docs");
    await check(folder, testing(OF_SERVICE));
  });
  await inCopy(async (folder) => {
    await leaveOutRemote(folder);
    await Deno.remove(`${folder}/tests/engine/remote`, { recursive: true });
    await check(folder, testing(OF_STORE));
  });
}

/** Puts rooms and bookings in place of animals. Throws if that changes other files than an adopter's and generated ones. */
async function makeProduct(folder: string): Promise<void> {
  const [from, to] = [import.meta.dirname, `${folder}/src/catalogue`];
  await Deno.remove(`${to}/pets.ts`);
  await Deno.mkdir(`${to}/parts`);
  for (const name of ["catalogue", "rooms", "bookings", "plans", "parts/cancellations"]) {
    const text = await Deno.readTextFile(`${from}/catalogue/${name}.ts`);
    await Deno.writeTextFile(`${to}/${name}.ts`, text.replaceAll(/\.\.\/\.\.\/src\//g, ""));
  }
  await Deno.copyFile(`${from}/bookings.ts`, `${folder}/tests/catalogue/bookings_test.ts`);
  await rewrite(
    `${to}/parts.ts`,
    (text) =>
      text.replace(/^import type/m, 'import { CANCELLATIONS } from "./parts/cancellations.ts";\n$&')
        .replace(/(?<=PARTS: .* = \[)/, "CANCELLATIONS, "),
  );
  await rewrite(
    `${to}/identity.ts`,
    (text) =>
      text.replace(/(?<=keyPrefix: ").*(?=")/, "desk")
        .replace(/(?<=tagline: ").*(?=")/, "rooms for everyone")
        .replace(/(?<=SUMMARY =\s+").*(?=")/, "Meeting rooms and their bookings over HTTP."),
  );
  await deno(folder, "fmt", "--quiet");
  await deno(folder, "task", "docs");
  const changed = (await git(folder, "status", "--porcelain", "-uall")).split("\n").map((line) =>
    line.slice(3)
  );
  const others = changed.filter((path) => path !== "" && !OWN.test(path) && !GENERATED.includes(path));
  if (others.length > 0) throw new Error(`The product changes ${others.join(", ")}`);
}

/** Merges a release as the guide says. Throws if there are conflicts in other files than generated ones. */
async function take(folder: string, release: string): Promise<void> {
  const merge = new Deno.Command("git", { args: ["merge", "-q", "--no-commit", release], cwd: folder });
  await merge.output();
  const conflicts = (await git(folder, "diff", "--name-only", "--diff-filter=U")).split("\n").filter(Boolean);
  const others = conflicts.filter((path) => !GENERATED.includes(path));
  if (others.length > 0) throw new Error(`A release conflicts in ${others.join(", ")}`);
  if (conflicts.length > 0) await git(folder, "checkout", "-q", "--theirs", ...conflicts);
  await deno(folder, "task", "docs");
  await commit(folder, "The later release is taken");
}

/** Arguments of `deno` that run the tests in these folders, and those of the whole. */
function testing(names: readonly string[]): readonly string[] {
  const folders = names.map((name) => `tests/${name}`);
  const whole = ["documents", "layering"].map((name) => `tests/${name}_test.ts`);
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

/** Checks format, lint and types, and runs tests. */
async function check(folder: string, tests: readonly string[]): Promise<void> {
  for (const args of [["fmt", "--check"], ["lint"], ["task", "check"], tests]) await deno(folder, ...args);
}

async function deno(cwd: string, ...args: string[]): Promise<void> {
  const { success } = await new Deno.Command(Deno.execPath(), { args, cwd }).spawn().status;
  if (!success) throw new Error(`In a fork, deno ${args.join(" ")} failed`);
}

/** Runs Git. Resolves to its output. */
async function git(cwd: string, ...args: string[]): Promise<string> {
  const config = ["-c", "user.name=fork", "-c", "user.email=fork@localhost"];
  const { success, stdout, stderr } = await new Deno.Command("git", { args: [...config, ...args], cwd })
    .output();
  if (!success) throw new Error(`git ${args.join(" ")} failed: ${new TextDecoder().decode(stderr)}`);
  return new TextDecoder().decode(stdout);
}

async function commit(folder: string, message: string): Promise<void> {
  await git(folder, "add", "-A");
  await git(folder, "commit", "-q", "-m", message);
}
