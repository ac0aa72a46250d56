/** What wrk is to send, and for how long. */
export interface Traffic {
  readonly origin: string;
  readonly method: string;
  /** Requested in turn. */
  readonly paths: readonly string[];
  /** Empty for none. */
  readonly body: string;
  /** Sent in turn, one with each request. */
  readonly keys: readonly string[];
  readonly connections: number;
  readonly seconds: number;
}

/** What wrk saw. Latencies are milliseconds. */
export interface Measurement {
  readonly requests: number;
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
  /** Answers with a status of 400 or more. */
  readonly failures: number;
  /** Connections that broke, and requests without an answer. */
  readonly broken: number;
}

interface WrkReport {
  requests: number;
  microseconds: number;
  failures: number;
  broken: number;
  p50: number;
  p99: number;
}

const SCRIPT = `${import.meta.dirname}/traffic.lua`;
const GRACE_SECONDS = 30;

/** Whether wrk can be run. */
export async function isWrkInstalled(): Promise<boolean> {
  try {
    await new Deno.Command("wrk", { args: ["-v"], stdout: "null", stderr: "null" }).output();
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/** Loads a server with one thread of wrk. */
export async function measure(traffic: Traffic, signal: AbortSignal): Promise<Measurement> {
  const { origin, method, paths, body, keys, connections, seconds } = traffic;
  const script = ["--timeout", `${GRACE_SECONDS}s`, "--script", SCRIPT, origin];
  const load = ["--threads", "1", "--connections", `${connections}`, "--duration", `${seconds}s`];
  const deadline = AbortSignal.timeout((seconds + GRACE_SECONDS) * 1000);
  const { success, stdout, stderr } = await new Deno.Command("wrk", {
    args: [...load, ...script, "--", method, body, paths.join(" "), ...keys],
    stdout: "piped",
    stderr: "piped",
    signal: AbortSignal.any([signal, deadline]),
  }).output();
  signal.throwIfAborted();

  const text = new TextDecoder().decode(stdout);
  const line = text.trimEnd().split("\n").at(-1) ?? "";
  if (!success || !line.startsWith("{")) {
    throw new Error(`wrk failed: ${new TextDecoder().decode(stderr)}${text}`);
  }
  const { requests, microseconds, failures, broken, p50, p99 } = JSON.parse(line) as WrkReport;
  const perSecond = requests / (microseconds / 1_000_000);
  return { requests, perSecond, p50: p50 / 1000, p99: p99 / 1000, failures, broken };
}
