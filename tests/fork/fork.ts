// Makes a fork with a product by the steps of src/README.md, lets it take a later release with the commands there, and
// checks it before and after. Then lets a fork take it whose declarations are as old as those in `frozen/`. With --all, also
// forks without the optional parts, and without KV servers.
import { assertEquals, assertMatch } from "@std/assert";
import { copyCheckout, leaveOut, leaveOutRemote, rewrite } from "../process/checkout.ts";
import { BLOCK, GENERATED } from "../tables.ts";
import { addRemovedFiles, makeLaterRelease } from "./later_release.ts";

/** Folders of the optional parts. */
const OF_PARTS = ["src/messages", "src/page", "tests/messages", "tests/page", "tests/browser"];
const OF_REMOTE = ["src/engine/remote", "tests/engine/remote"];
/** Folders of tests of the service, but not of its libraries, which know no part. */
const OF_SERVICE = ["accounts", "app", "operator", "process", "security", "web"];
/** Folders of tests of what uses the store. */
const OF_STORE = ["resource", "limits", "accounts", "messages", "app", "process"];
/** The product's declarations. */
const DECLARED = [
  ...["catalogue", "rooms", "bookings", "invoices", "payments", "plans"],
  ...["parts/cancellations", "parts/payments"],
];
/** Declarations of a product that began with an early 1.1.0. They are never edited. */
const FROZEN = ["catalogue", "rooms", "bookings", "plans", "identity", "parts", "parts/cancellations"];
/** The edits that releases since then ask for in CHANGES, and no others. */
const FROZEN_EDITS = `${import.meta.dirname}/frozen.patch`;
/** What is an adopter's. */
const OWN = ["README.md", "src/catalogue", "tests/catalogue"];
const PROSE = "Rooms and bookings of them, for an office.";

/** The author of commits. */
const IDENTITY = Object.fromEntries(
  ["AUTHOR", "COMMITTER"].flatMap((
    who,
  ) => [[`GIT_${who}_NAME`, "fork"], [`GIT_${who}_EMAIL`, "fork@localhost"]]),
);
/** The folder of this Deno, which commands of the guide call. */
const DENO = Deno.execPath().replace(/\/[^/]*$/, "");

/** A copy of the checkout with releases, and a fork of it. */
interface Copies {
  readonly upstream: string;
  readonly fork: string;
}

await inCopies(async ({ upstream, fork }) => {
  await makeProduct(fork);
  await check(fork, ["task", "test"]);
  await commit(fork, "A product");
  await release(upstream);
  await take({ upstream, fork });
  assertEquals((await Deno.readTextFile(`${fork}/README.md`)).match(PROSE)?.length, 1);
  await check(fork, ["task", "test"]);
});
await inCopies(async ({ upstream, fork }) => {
  await declareFrozen(fork);
  await commit(fork, "A product of an early 1.1.0");
  await release(upstream);
  await take({ upstream, fork }, { edits: FROZEN_EDITS });
  await check(fork, testing(["catalogue", "app", "operator", "resource"]));
});
if (Deno.args.includes("--all")) {
  await inCopies(async ({ upstream, fork }) => {
    for (const part of ["messages", "page"]) await leaveOut(fork, part);
    await rewrite(
      `${fork}/deno.json`,
      (text) =>
        text.replace(/^ +"messages": \{[^}]*\},\n/m, "")
          .replace(/ && deno check [^&]*tests\/browser(?=[" ])/, ""),
    );
    await leaveOutFolders(fork, OF_PARTS);
    await release(upstream);
    await take({ upstream, fork }, { left: OF_PARTS });
    await check(fork, testing(OF_SERVICE));
  });
  await inCopies(async ({ upstream, fork }) => {
    await leaveOutRemote(fork);
    await leaveOutFolders(fork, OF_REMOTE);
    await release(upstream);
    await take({ upstream, fork }, { left: OF_REMOTE });
    await check(fork, testing(OF_STORE));
  });
}

/** Puts rooms and bookings in place of animals. Throws if that changes other files than an adopter's and generated ones. */
async function makeProduct(folder: string): Promise<void> {
  const [from, to] = [import.meta.dirname, `${folder}/src/catalogue`];
  await declare(folder, `${from}/catalogue`, DECLARED);
  for (const name of ["bookings", "invoices"]) {
    await Deno.copyFile(`${from}/${name}.ts`, `${folder}/tests/catalogue/${name}_test.ts`);
  }
  await Deno.copyFile(`${from}/operations.ts`, `${folder}/tests/catalogue/operations.ts`);
  await rewrite(
    `${to}/parts.ts`,
    (text) =>
      text.replace(
        /^import type/m,
        'import { CANCELLATIONS } from "./parts/cancellations.ts";\nimport { PAYING } from "./parts/payments.ts";\n$&',
      ).replace(/(?<=PARTS: .* = \[)/, "CANCELLATIONS, PAYING, "),
  );
  await rewrite(`${folder}/README.md`, (text) => text.replace(/^A finished [^]*?(?=^## )/m, `${PROSE}\n\n`));
  await rewrite(`${to}/removed.md`, (text) => `${text}\nChanged by the product.\n`);
  await deno(folder, "fmt", "--quiet");
  await deno(folder, "task", "docs");
  const changed = (await git(folder, "status", "--porcelain", "-uall")).split("\n").map((line) =>
    line.slice(3)
  );
  const others = changed.filter((path) => path !== "" && !isOwn(path) && !GENERATED.includes(path));
  assertEquals(others, [], "changed by the product");
}

/** Puts the declarations of an early 1.1.0, and their tests, in place of animals. */
async function declareFrozen(folder: string): Promise<void> {
  const from = `${import.meta.dirname}/frozen`;
  await declare(folder, from, FROZEN);
  for (const name of ["bookings_test", "operations"]) {
    const text = await Deno.readTextFile(`${from}/${name}.ts`);
    await Deno.writeTextFile(`${folder}/tests/catalogue/${name}.ts`, text.replaceAll('"../../', '"../'));
  }
  await deno(folder, "fmt", "--quiet");
}

/** Puts declarations in place of animals. */
async function declare(folder: string, from: string, names: readonly string[]): Promise<void> {
  const to = `${folder}/src/catalogue`;
  await Deno.remove(`${to}/pets.ts`);
  await Deno.remove(`${folder}/tests/catalogue/pets_test.ts`);
  await Deno.mkdir(`${to}/parts`);
  for (const name of names) {
    const text = await Deno.readTextFile(`${from}/${name}.ts`);
    await Deno.writeTextFile(`${to}/${name}.ts`, text.replaceAll(/\.\.\/\.\.\/src\//g, ""));
  }
  await rewrite(
    `${to}/identity.ts`,
    (text) =>
      text.replace(/(?<=keyPrefix: ").*(?=")/, "desk")
        .replace(/(?<=tagline: ").*(?=")/, "rooms for everyone")
        .replace(/(?<=SUMMARY =\s+").*(?=")/, "Meeting rooms and their bookings over HTTP."),
  );
}

/** Leaves folders out of a fork. */
async function leaveOutFolders(folder: string, left: readonly string[]): Promise<void> {
  for (const name of left) await Deno.remove(`${folder}/${name}`, { recursive: true }).catch(() => {});
  await deno(folder, "task", "docs");
  await commit(folder, "Less");
}

/** Commits a later release. */
async function release(folder: string): Promise<void> {
  await makeLaterRelease(folder);
  await deno(folder, "task", "docs");
  await commit(folder, "A later release");
}

/** What a fork does when it takes a release, in addition to the commands. */
interface TakeOptions {
  /** Folders that it has left out, and removes again. */
  readonly left?: readonly string[];
  /** File of a patch of its own files, which may be empty. */
  readonly edits?: string;
}

/**
 * Takes a release with the commands of the guide, and commits it. Throws if the fork then lacks something of the release,
 * or has something of it in its own files, except for the edits, or in folders that it has left out.
 */
async function take(
  { upstream, fork }: Copies,
  { left = [], edits = "/dev/null" }: TakeOptions = {},
): Promise<void> {
  const guide = await Deno.readTextFile(`${fork}/src/README.md`);
  const section = /^### Later releases\n[^]*?(?=^##)/m.exec(guide)?.[0] ?? "";
  const [usual = "", leavingOut = ""] = section.matchAll(/^```sh\n([^]*?)^```$/gm).map(([, text]) => text);
  const lines = usual.trim().replace("URL", upstream).split("\n");
  const again = leavingOut.replace(/(?<=--ignore-unmatch ).*/, left.join(" "));
  const further = [...(left.length > 0 ? [again] : []), `git apply --allow-empty --index ${edits}`];
  const script = lines.toSpliced(-1, 0, ...further).join("\n");
  const env = { ...IDENTITY, GIT_EDITOR: "true", PATH: `${DENO}:${Deno.env.get("PATH")}` };
  const { success } = await new Deno.Command("bash", { args: ["-c", script], cwd: fork, env }).spawn().status;
  assertEquals(success, true, script);

  assertEquals(await git(fork, "status", "--porcelain"), "", "not committed");
  const edited = await git(fork, "diff", "--name-only", "HEAD^1", "HEAD", "--", ...OWN.slice(1), ...left);
  const patched = (await Deno.readTextFile(edits)).matchAll(/^\+\+\+ b\/(.*)$/gm);
  assertEquals(edited.split("\n").filter(Boolean), [...patched].map(([, path]) => path));
  const [before, after] = await Promise.all(
    ["HEAD^1", "HEAD"].map((commit) => git(fork, "show", `${commit}:README.md`)),
  );
  assertEquals(proseOf(after ?? ""), proseOf(before ?? ""));
  assertMatch(after ?? "", /Check a motto/);
  // What differs from the release is what the fork had changed before, or generated.
  const base = (await git(fork, "merge-base", "HEAD^1", "HEAD^2")).trim();
  const changed = (await git(fork, "diff", "--name-only", base, "HEAD^1")).split("\n");
  const differing = (await git(fork, "diff", "--name-only", "HEAD^2", "HEAD")).split("\n");
  const isExpected = (path: string) =>
    changed.includes(path) || isOwn(path) || GENERATED.includes(path) ||
    left.some((name) => path.startsWith(`${name}/`));
  assertEquals(differing.filter((path) => !isExpected(path)), []);
}

/** What a README says outside of the blocks that `deno task docs` writes. */
function proseOf(text: string): string {
  return text.replaceAll(BLOCK, "");
}

/** Whether a file is an adopter's. */
function isOwn(path: string): boolean {
  return OWN.some((own) => path === own || path.startsWith(`${own}/`));
}

/** Arguments of `deno` that run the tests in these folders, and those of the whole. */
function testing(names: readonly string[]): readonly string[] {
  const folders = names.map((name) => `tests/${name}`);
  const whole = ["documents", "layering"].map((name) => `tests/${name}_test.ts`);
  return ["test", "--config", "tests/deno.json", "-P", "--parallel", ...folders, ...whole];
}

/** Does some work in a temporary copy of the checkout, with a commit of its own, and in a clone of that. */
async function inCopies(work: (copies: Copies) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "fork_" });
  const [upstream, fork] = [`${folder}/upstream`, `${folder}/fork`];
  try {
    await Deno.mkdir(upstream);
    await copyCheckout(upstream);
    await addRemovedFiles(upstream);
    await git(upstream, "init", "-q", "-b", "main");
    await commit(upstream, "A release");
    await git(folder, "clone", "-q", upstream, fork);
    await work({ upstream, fork });
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
  const { success, stdout, stderr } = await new Deno.Command("git", { args, cwd, env: IDENTITY }).output();
  if (!success) throw new Error(`git ${args.join(" ")} failed: ${new TextDecoder().decode(stderr)}`);
  return new TextDecoder().decode(stdout);
}

async function commit(folder: string, message: string): Promise<void> {
  await git(folder, "add", "-A");
  await git(folder, "commit", "-q", "-m", message);
}
