// Plants faults in a copy of the checkout, one after the other, and runs tests there: those of the fault's folder, or that
// it names, then the rest. Exits with 0 if tests found each fault, 1 if one survived, and 2 if one does not apply: its
// text is not in the file exactly once, the file cannot be parsed, or the run was interrupted. Failed tests run again,
// alone, because a test can fail on a busy machine. A test that does not end finds its fault. Types are not checked.
//
//     deno task fault src/limits/lease.ts 'lease.used++' 'lease.used'
//     deno task faults          # ten of those in faults.txt, at random
//     deno task faults --all
import { print, printOutput } from "../src/process/process.ts";
import { type Fault, lineOf, readFaults, withFault } from "./faults.ts";
import { copyCheckout } from "./process/checkout.ts";

/** Time in ms without a result after which the tests are killed. Before that, a test that does not end has failed. */
const SILENCE = 240_000;
const SAMPLE = 10;
/** A line of a summary: a test that failed, or all of a file. */
const FAILURE = /^(?:.+ => )?\.\/.*$/gm;
/** The file with a test that fails, or with any. A helper may have registered the test, so a summary may lack the file. */
const FAILING =
  /^(?:Uncaught error from )?(\.\/[^\s#]+)\S* (?:=> .+ \.\.\. )?FAILED|^running .+ from (\S+)/gm;

const folder = await Deno.makeTempDir({ prefix: "fault_" });
const interruption = new AbortController();
const interrupt = () => interruption.abort();
for (const signal of ["SIGINT", "SIGTERM"] as const) Deno.addSignalListener(signal, interrupt);
try {
  const faults = await chosen(Deno.args);
  await copyCheckout(`${folder}/checkout`);
  // For tests that copy the checkout.
  await new Deno.Command("git", { args: ["init", "-q", `${folder}/checkout`] }).output();
  await shareCache();
  for (const fault of faults) {
    const found = await plant(fault);
    const outcome = found.length === 0 ? "Survived" : `Found by\n${found.join("\n")}`;
    await printOutput(`${fault.path}: ${fault.from} -> ${fault.to}\n${outcome}`);
    if (found.length === 0) Deno.exitCode = 1;
  }
} catch (error) {
  print(`${error}`);
  Deno.exitCode = 2;
} finally {
  await Deno.remove(folder, { recursive: true });
}

/** The fault in the arguments, all faults of the file, or some of these. */
async function chosen([path, from, to, ...rest]: readonly string[]): Promise<readonly Fault[]> {
  const usage = new Error("Usage: PATH 'from' 'to', --all, or nothing");
  if (rest.length > 0) throw usage;
  if (path !== undefined && from !== undefined && to !== undefined) return [{ path, from, to }];
  if (from !== undefined || (path ?? "--all") !== "--all") throw usage;
  const faults = await readFaults();
  if (path === "--all") return faults;
  const drawn = faults.map((fault) => ({ fault, at: Math.random() })).sort((one, other) => one.at - other.at);
  return drawn.slice(0, SAMPLE).map(({ fault }) => fault);
}

/** Creates a cache of its own, with the packages of the usual one. */
async function shareCache(): Promise<void> {
  await Deno.mkdir(`${folder}/cache`);
  const { stdout } = await new Deno.Command(Deno.execPath(), { args: ["info", "--json"] }).output();
  await Deno.symlink(`${JSON.parse(new TextDecoder().decode(stdout)).denoDir}/npm`, `${folder}/cache/npm`);
}

/** Resolves to the tests that found a fault. */
async function plant(fault: Fault): Promise<readonly string[]> {
  const path = `${folder}/checkout/${fault.path}`;
  const before = await Deno.readTextFile(path);
  await Deno.writeTextFile(path, withFault(before, fault));
  // Otherwise, the test that each of them can be planted finds the fault.
  const others = (await readFaults()).filter(({ path }) => path !== fault.path);
  await Deno.writeTextFile(`${folder}/checkout/tests/faults.txt`, others.map(lineOf).join(""));
  const nearest = fault.tests ?? `tests/${fault.path.split("/")[1]}`;
  const { isDirectory } = await Deno.stat(nearest).catch(() => ({ isDirectory: false }));
  const found = isDirectory ? await failures(nearest) : [];
  const all = found.length > 0 ? found : await failures("main.ts", "src", "tests", `--ignore=${nearest}`);
  await Deno.writeTextFile(path, before);
  return all;
}

/** Runs tests of the copy, with progress on standard error. Resolves to those that fail twice. */
async function failures(...tests: readonly string[]): Promise<readonly string[]> {
  const { failed, output } = await run("--parallel", ...tests);
  if (failed.length === 0 || output === "") return failed;
  const files = [...output.matchAll(FAILING)].map(([, failing, any]) => failing ?? any ?? "");
  return (await run(...new Set(files))).failed;
}

/** Runs tests. Resolves to those that failed and the output, which is empty if the tests were killed. */
async function run(
  ...tests: readonly string[]
): Promise<{ readonly failed: readonly string[]; readonly output: string }> {
  const limit = "--preload=tests/support/time_limit.ts";
  const args = [
    "test",
    "--config",
    "tests/deno.json",
    "-P",
    "--no-check",
    "--fail-fast",
    "--doc",
    limit,
    ...tests,
  ];
  const env = { NO_COLOR: "1", DENO_DIR: `${folder}/cache`, TMPDIR: folder };
  const options = { args, cwd: `${folder}/checkout`, env, detached: true, signal: interruption.signal };
  const child = new Deno.Command(Deno.execPath(), { ...options, stdout: "piped" }).spawn();
  // The whole group, because tests start processes.
  const kill = () => new Deno.Command("bash", { args: ["-c", `kill -KILL -- -${child.pid}`] }).outputSync();
  let [output, timer] = ["", setTimeout(kill, SILENCE)];
  for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
    clearTimeout(timer);
    timer = setTimeout(kill, SILENCE);
    await Deno.stderr.write(new TextEncoder().encode(text)).catch(interrupt); // Nobody reads any more.
    output += text;
  }
  const { success, signal } = await child.status;
  clearTimeout(timer);
  kill();
  interruption.signal.throwIfAborted();
  if (success) return { failed: [], output };
  if (signal !== null) return { failed: ["a test that does not end, or breaks the process"], output: "" };
  const failed = output.split("\n FAILURES \n").at(1)?.match(FAILURE);
  if (failed) return { failed, output };
  throw new Error("The tests could not be run");
}
