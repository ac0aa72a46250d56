// Plants one fault in a copy of the checkout, and runs tests there until one fails: those of the fault's folder, then
// the rest. Exits with 0 if a test found the fault, 1 if the fault survived, and 2 if it does not apply: its text is not
// in the file exactly once, the file cannot be parsed, or the run was interrupted.
//
//     deno task fault src/limits/lease.ts 'lease.used++' 'lease.used'
//
// Types are not checked: a fault stands for any mistake that types allow. A test that does not end finds its fault.
import { print, printOutput } from "../src/process/process.ts";
import { copyCheckout, rewrite } from "./process/checkout.ts";

const USAGE = "Usage: deno task fault PATH 'from' 'to', with a path such as src/limits/lease.ts";
const TEST = ["test", "--config", "tests/deno.json", "-P", "--no-check", "--parallel", "--fail-fast"];
/** Time in ms without a result after which a test counts as endless. The slowest takes 15 s alone. */
const SILENCE = 180_000;
/** A line of a summary: a test or step that failed, or a file that could not be run. */
const FAILURE = /^(?:.+ => \S+:\d+:\d+|\S+ \(uncaught error\))$/gm;

const folder = await Deno.makeTempDir({ prefix: "fault_" });
const interruption = new AbortController();
const interrupt = () => interruption.abort();
for (const signal of ["SIGINT", "SIGTERM"] as const) Deno.addSignalListener(signal, interrupt);
try {
  const found = await plant(Deno.args);
  await printOutput(found === undefined ? "Survived" : `Found by\n${found}`);
  Deno.exitCode = found === undefined ? 1 : 0;
} catch (error) {
  print(`${error}`);
  Deno.exitCode = 2;
} finally {
  await Deno.remove(folder, { recursive: true });
}

/** Resolves to the tests that found a fault; undefined if none did. */
async function plant([path = "", from = "", to, ...rest]: readonly string[]): Promise<string | undefined> {
  if (to === undefined || from === to || rest.length > 0) throw new Error(USAGE);
  await copyCheckout(`${folder}/checkout`);
  await rewrite(`${folder}/checkout/${path}`, (text) => {
    const parts = text.split(from);
    if (parts.length !== 2) throw new Error(`${path} has this text ${parts.length - 1} times, not once`);
    return parts.join(to);
  });
  for (const name of ["temporary", "cache"]) await Deno.mkdir(`${folder}/${name}`);
  const { stdout } = await new Deno.Command(Deno.execPath(), { args: ["info", "--json"] }).output();
  await Deno.symlink(`${JSON.parse(new TextDecoder().decode(stdout)).denoDir}/npm`, `${folder}/cache/npm`);
  const nearest = `tests/${path.split("/")[1]}`;
  const hasNearest = await Deno.stat(nearest).then(({ isDirectory }) => isDirectory, () => false);
  return (hasNearest ? await findBy(nearest) : undefined) ??
    await findBy("--doc", "main.ts", "src", "tests", ...hasNearest ? [`--ignore=${nearest}`] : []);
}

/** Runs tests of the copy until one fails, with progress on standard error. Resolves to those that failed. */
async function findBy(...tests: readonly string[]): Promise<string | undefined> {
  interruption.signal.throwIfAborted();
  const env = { NO_COLOR: "1", DENO_DIR: `${folder}/cache`, TMPDIR: `${folder}/temporary` };
  const options = { args: [...TEST, ...tests], cwd: `${folder}/checkout`, env, detached: true };
  const child = new Deno.Command(Deno.execPath(), { ...options, stdout: "piped" }).spawn();
  const kill = () => {
    try {
      Deno.kill(-child.pid, "SIGKILL"); // With the processes that tests started.
    } catch { /* None is left. */ }
  };
  interruption.signal.addEventListener("abort", kill);
  let [output, timer] = ["", setTimeout(kill, SILENCE)];
  for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
    clearTimeout(timer);
    timer = setTimeout(kill, SILENCE);
    await Deno.stderr.write(new TextEncoder().encode(text));
    output += text;
  }
  const { success, signal } = await child.status;
  clearTimeout(timer);
  kill();
  interruption.signal.throwIfAborted();
  if (success) return;
  if (signal !== null) return "a test that does not end, or breaks the process";
  const failures = new Set(output.slice(output.lastIndexOf("\n FAILURES")).match(FAILURE));
  if (failures.size > 0) return [...failures].join("\n");
  throw new Error("The tests could not be run");
}
