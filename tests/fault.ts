// Plants one fault in a copy of the checkout, and runs tests there: those of the fault's folder, then the rest. Exits
// with 0 if tests found the fault, 1 if it survived, and 2 if it does not apply: its text is not in the file exactly
// once, the file cannot be parsed, or the run was interrupted. Failed tests run again, alone, because a test can fail on
// a busy machine. A test that does not end finds its fault. Types are not checked.
//
//     deno task fault src/limits/lease.ts 'lease.used++' 'lease.used'
import { print, printOutput } from "../src/process/process.ts";
import { copyCheckout, rewrite } from "./process/checkout.ts";

/** Time in ms without a result after which a test counts as endless. The slowest takes 15 s alone. */
const SILENCE = 180_000;
/** A line of a summary, with a file: a test that failed, or all of the file. */
const FAILURE = /^(?:.+ => )?(\.\/[^\s:#]+).*$/gm;

const folder = await Deno.makeTempDir({ prefix: "fault_" });
const interruption = new AbortController();
const interrupt = () => interruption.abort();
for (const signal of ["SIGINT", "SIGTERM"] as const) Deno.addSignalListener(signal, interrupt);
try {
  const found = await plant(Deno.args);
  await printOutput(found.length === 0 ? "Survived" : `Found by\n${found.join("\n")}`);
  Deno.exitCode = found.length === 0 ? 1 : 0;
} catch (error) {
  print(`${error}`);
  Deno.exitCode = 2;
} finally {
  await Deno.remove(folder, { recursive: true });
}

/** Resolves to the tests that found a fault. */
async function plant([path = "", from = "", to, ...rest]: readonly string[]): Promise<readonly string[]> {
  if (to === undefined || from === to || rest.length > 0) throw new Error("Usage: PATH 'from' 'to'");
  await copyCheckout(`${folder}/checkout`);
  await rewrite(`${folder}/checkout/${path}`, (text) => {
    const parts = text.split(from);
    if (parts.length !== 2) throw new Error(`${path} has this text ${parts.length - 1} times, not once`);
    return parts.join(to);
  });
  await Deno.mkdir(`${folder}/cache`);
  const { stdout } = await new Deno.Command(Deno.execPath(), { args: ["info", "--json"] }).output();
  await Deno.symlink(`${JSON.parse(new TextDecoder().decode(stdout)).denoDir}/npm`, `${folder}/cache/npm`);
  const nearest = `tests/${path.split("/")[1]}`;
  const { isDirectory } = await Deno.stat(nearest).catch(() => ({ isDirectory: false }));
  const found = isDirectory ? await failures(nearest) : [];
  return found.length > 0 ? found : await failures("main.ts", "src", "tests", `--ignore=${nearest}`);
}

/** Runs tests of the copy, with progress on standard error. Resolves to those that fail twice. */
async function failures(...tests: readonly string[]): Promise<readonly string[]> {
  const failed = await run("--parallel", ...tests);
  const files = new Set([...failed.join("\n").matchAll(FAILURE)].map(([, file = ""]) => file));
  return files.size > 0 ? await run(...files) : failed;
}

/** Runs tests. Resolves to those that failed. */
async function run(...tests: readonly string[]): Promise<readonly string[]> {
  const args = ["test", "--config", "tests/deno.json", "-P", "--no-check", "--doc", ...tests];
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
  if (success) return [];
  if (signal !== null) return ["a test that does not end, or breaks the process"];
  const failed = output.split("\n FAILURES \n").at(1)?.match(FAILURE);
  if (failed) return failed;
  throw new Error("The tests could not be run");
}
