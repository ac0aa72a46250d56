import { basename, resolve } from "node:path";
import { CATALOGUE } from "../../../src/catalogue/catalogue.ts";
import { print } from "../../../src/process/process.ts";
import { Output } from "../../process/process.ts";
import { ITEM, PATH, SERVING, textField } from "../../process/shipped.ts";
import { makeDataFolder, OPERATOR_TOKEN, V8_FLAGS } from "../contenders.ts";
import { figure, median, table } from "../measure.ts";
import { nameOf, type Orders, type Scene } from "./requests.ts";
import type { Turn } from "./turns.ts";

/** Options of {@linkcode compareInProcess}. */
export interface Comparison {
  /** Folders of other checkouts. */
  readonly against: readonly string[];
  /** Words, one of which the name of a row must contain. */
  readonly only: readonly string[];
  /** Number of turns that count, for each row and process. */
  readonly rounds: number;
}

type Figures = Readonly<Record<string, number>>;

const OWN = "This service";
const SECOND = "A/A";
const ROOT = resolve(`${import.meta.dirname}/../../..`);
/** So many turns of each row do not count: compilers are still at work, and permits not in stock. */
const WARM_UP = 20;
/** Turns of each row in which calls are counted. */
const COUNTED_TURNS = 9;
/** Also with more accounts than a process knows, and with twice as many. */
const SCENES: readonly Scene[] = ["usual", "private", 5_000, 10_000, 12_000, 20_000];
const MODES = [{ name: "64 at a time", together: true }, { name: "alone", together: false }] as const;
/** What is shown of the turns of a row. */
const SHOWN:
  readonly (readonly [name: string, of: string, summary: (values: readonly number[]) => number])[] = [
    ["lowest, µs", "time", (values) => Math.min(...values)],
    ["median, µs", "time", median],
    ["CPU, µs", "cpu", median],
    ["allocated, bytes", "bytes", median],
  ];

/** Measures requests within processes of checkouts that take turns, and counts what they call. Resolves to tables. */
export async function compareInProcess({ against, only, rounds }: Comparison): Promise<string> {
  const folders = new Map([
    [OWN, ROOT],
    ...against.map((path) => [basename(resolve(path)), resolve(path)] as const),
  ]);
  const contenders = new Map([[OWN, ROOT], [SECOND, ROOT], ...[...folders].slice(1)]);
  const isWanted = (row: string) => only.some((word) => row.includes(word));
  const turns = { isWanted, rounds, warmUp: WARM_UP };
  const timed = await takeTurns("timed", contenders, turns);
  const counted = await takeTurns("counted", folders, { ...turns, rounds: COUNTED_TURNS });
  return [...SHOWN.map((shown) => tableOf(shown, timed, [...contenders.keys()])), tableOfCounts(counted)]
    .join("\n\n");
}

interface Turns {
  readonly isWanted: (row: string) => boolean;
  readonly rounds: number;
  readonly warmUp: number;
}

/** The figures of all turns, by row and process. */
type Results = ReadonlyMap<string, ReadonlyMap<string, readonly Figures[]>>;

/** Starts a process for each checkout and scene, and lets those of a scene take turns. */
async function takeTurns(
  script: string,
  folders: ReadonlyMap<string, string>,
  turns: Turns,
): Promise<Results> {
  const results = new Map<string, Map<string, Figures[]>>();
  const isWanted = (kind: string) => MODES.some(({ name }) => turns.isWanted(`${kind}, ${name}`));
  for (const scene of SCENES) {
    if (typeof scene === "number" && !isWanted(nameOf(scene))) continue;
    await using cleanup = new AsyncDisposableStack();
    const started = [...folders].map(async ([name, folder]) => {
      const process = await Preloaded.start(script, folder, scene, cleanup);
      return [name, process] as const;
    });
    const processes = await Promise.all(started);
    for (const kind of new Set(processes.flatMap(([, { kinds }]) => kinds))) {
      for (const { name: mode, together } of MODES) {
        const row = `${kind}, ${mode}`;
        if (!turns.isWanted(row)) continue;
        const ready = processes.filter(([, { kinds }]) => kinds.includes(kind));
        results.set(row, await takeTurnsOf({ kind, together }, ready, turns));
        print(`${script}: ${row}`);
      }
    }
  }
  return results;
}

/** Lets processes take turns. In each round another is the first. */
async function takeTurnsOf(
  turn: Turn,
  processes: readonly (readonly [name: string, process: Preloaded])[],
  { rounds, warmUp }: Turns,
): Promise<Map<string, Figures[]>> {
  const found = new Map<string, Figures[]>(processes.map(([name]) => [name, []]));
  for (let round = 0; round < warmUp + rounds; round++) {
    for (let place = 0; place < processes.length; place++) {
      const [name, process] = processes[(round + place) % processes.length] ?? [];
      const figures = await process?.take(turn);
      if (round >= warmUp && name !== undefined && figures) found.get(name)?.push(figures);
    }
  }
  return found;
}

/** The service of a checkout as a process, without a server, into which a script was loaded. */
class Preloaded implements AsyncDisposable {
  kinds: readonly string[] = [];
  readonly #child: Deno.ChildProcess;
  readonly #input: WritableStreamDefaultWriter<Uint8Array>;
  readonly #lines: AsyncIterator<string>;
  readonly #errors: Output;

  private constructor(args: readonly string[], cwd: string, kvPath: string) {
    const { PATH = "", HOME = "", DENO_DIR } = Deno.env.toObject();
    this.#child = new Deno.Command(Deno.execPath(), {
      args: [...args],
      cwd,
      clearEnv: true,
      env: { PATH, HOME, ...(DENO_DIR && { DENO_DIR }), KV_PATH: kvPath, OPERATOR_TOKEN },
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    this.#input = this.#child.stdin.getWriter();
    this.#lines = linesOf(this.#child.stdout);
    this.#errors = new Output(this.#child.stderr);
  }

  /** Starts the service of a folder, and waits until accounts and items are created. It knows no kinds if it cannot. */
  static async start(
    script: string,
    folder: string,
    scene: Scene,
    cleanup: AsyncDisposableStack,
  ): Promise<Preloaded> {
    const scripts = [...(scene === "private" ? ["private"] : []), script];
    const preloads = scripts.flatMap((name) => ["--preload", `${import.meta.dirname}/${name}.ts`]);
    const args = ["run", ...SERVING, "-P", "--no-check", ...V8_FLAGS, ...preloads, "main.ts"];
    const process = cleanup.use(new Preloaded(args, folder, `${await makeDataFolder(cleanup)}/store.kv`));
    const orders: Orders = {
      token: OPERATOR_TOKEN,
      path: PATH,
      item: JSON.parse(ITEM),
      field: textField("Bench 1"),
      plan: CATALOGUE.plans.own,
      scene,
    };
    ({ kinds: process.kinds } = await process.#ask<Pick<Preloaded, "kinds">>(orders));
    return process;
  }

  /** Takes a turn. Resolves to its figures. */
  take(turn: Turn): Promise<Figures> {
    return this.#ask(turn);
  }

  async #ask<Answer>(question: object): Promise<Answer> {
    await this.#input.write(new TextEncoder().encode(`${JSON.stringify(question)}\n`));
    const { value, done } = await this.#lines.next();
    if (!done) return JSON.parse(value);
    await this.#errors.ended;
    throw new Error(`A process ended:\n${this.#errors.text}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#input.close().catch(() => {});
    await this.#child.status;
    await this.#errors.ended;
  }
}

async function* linesOf(stream: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<string> {
  let rest = "";
  for await (const text of stream.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}

/** A table of a figure; in brackets, the service's figure over the other's. */
function tableOf(
  [name, of, summary]: typeof SHOWN[number],
  results: Results,
  names: readonly string[],
): string {
  const rows = [...results].map(([row, found]) => {
    const values = names.map((name) => {
      const turns = found.get(name) ?? [];
      // If garbage was collected during a turn, nothing is known about what it allocated.
      const seen = turns.flatMap(({ [of]: value }) => value === undefined || value <= 0 ? [] : [value]);
      return seen.length > 0 ? summary(seen) : undefined;
    });
    const [own = NaN, ...others] = values;
    const cells = others.map((value) =>
      value === undefined ? "" : `${figure(value)} (${(own / value).toFixed(2)}×)`
    );
    return [row, figure(own), ...cells];
  });
  return table([name, ...names], rows);
}

/** A table of how often a request makes each call, in each checkout. */
function tableOfCounts(results: Results): string {
  const names = [...new Set([...results.values()].flatMap((found) => [...found.keys()]))];
  const turns = [...results.values()].flatMap((found) => [...found.values()].flat());
  const calls = Object.keys(turns[0] ?? {});
  const rows = [...results].map(([row, found]) => [
    row,
    ...calls.map((call) =>
      names.map((name) => {
        const counted = found.get(name);
        return counted ? figure(median(counted.map(({ [call]: count = 0 }) => count))) : "";
      }).join(" / ")
    ),
  ]);
  return table([`calls: ${names.join(" / ")}`, ...calls], rows);
}
