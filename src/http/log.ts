import { Metrics } from "../metrics/metrics.ts";
import type { Counter } from "../metrics/prometheus.ts";

/** What lines are written to, such as `Deno.stdout`. */
export interface Output {
  write(bytes: Uint8Array): Promise<number>;
}

/** A line of the access log. */
export interface AccessRecord {
  /** ISO 8601, UTC. */
  readonly time: string;
  readonly id: string;
  readonly method: string;
  /** The route's pattern, not the path: it holds no client data. */
  readonly route: string;
  readonly status: number;
  /** Whole ms that it took. */
  readonly ms: number;
  readonly accountId: string;
}

/** A line of the error log. */
export interface ErrorRecord {
  /** ISO 8601, UTC. */
  readonly time: string;
  /** Request id, as the client got it; empty if it was no request. */
  readonly id: string;
  /** The route's pattern, or what else failed: `accept`, `schema` or `sweep`. */
  readonly route: string;
  /** Name of the error, and of its cause. */
  readonly error: string;
  /** Source file and line that it was thrown from, if known. */
  readonly at: string;
  /** Why, as an error tells it that has a `logReason`: a failure of KV. */
  readonly reason?: string;
}

/** A line of the log for a command that an operator sent. */
export interface CommandRecord {
  /** ISO 8601, UTC: when it came. */
  readonly time: string;
  /** Such as `accounts close acct_4kQ0…`: no name, key or other text; empty if nothing was to be done. */
  readonly command: string;
  /** Its exit code; 1 also if it was cut short. */
  readonly exit: number;
}

/** Writes what happened; never a key, a body or the message of an error without a `logReason`. */
export interface Log {
  /** One answered request. */
  readonly access?: (record: AccessRecord) => void;
  /** A failure of the service's own. */
  readonly error: (record: ErrorRecord) => void;
  /** A command that an operator sent has ended. */
  readonly command: (record: CommandRecord) => void;
  /** Resolves once every line so far is written, or dropped. */
  readonly flushed: () => Promise<void>;
}

/** What to log, and where. */
export interface LogOptions {
  /** For one line a request; undefined if requests are not logged. */
  readonly access: Output | undefined;
  /** For one line a failure and one a command. */
  readonly errors: Output;
  /** What to leave out of every line; clients put secrets in odd places. */
  readonly secrets: readonly (string | RegExp)[];
  /** The time, in ms since the epoch. */
  readonly clock: () => number;
  readonly metrics?: Metrics;
}

/** Most characters of a reason. */
const MAX_REASON = 200;
/** Most characters that wait to be written. */
const MAX_WAITING = 1_000_000;
const ENCODER = new TextEncoder();

/** Writes JSON lines. */
export function createLog(
  { access, errors, secrets, clock, metrics = new Metrics() }: LogOptions,
): Log {
  const hide = (text: string) =>
    secrets.reduce((text: string, secret) => text.replaceAll(secret, "[secret]"), text);
  const line = (record: object) => hide(JSON.stringify(record));
  const notice = (dropped: number) => line({ time: new Date(clock()).toISOString(), dropped });
  const toErrors = new LineWriter(errors, notice, metrics.logLinesDropped);
  const toAccess = access && new LineWriter(access, notice, metrics.logLinesDropped);
  return {
    error: ({ reason, ...record }) => {
      // Cut afterwards, because half a secret would not be found.
      const shown = reason === undefined ? {} : { reason: hide(reason).slice(0, MAX_REASON) };
      toErrors.write(line({ ...record, ...shown }));
    },
    command: (record) => toErrors.write(line(record)),
    ...(toAccess && { access: (record) => toAccess.write(line(record)) }),
    flushed: async () => void await Promise.all([toErrors.flushed(), toAccess?.flushed()]),
  };
}

/**
 * What the log may say of an error: names, a place, and its `logReason`. Its message may hold anything.
 *
 * @param now Ms since the epoch.
 * @param id Of the request that failed, if it was one.
 */
export function errorRecord(error: unknown, now: number, route: string, id = ""): ErrorRecord {
  return { time: new Date(now).toISOString(), id, route, ...describe(error) };
}

function describe(error: unknown): Pick<ErrorRecord, "error" | "at" | "reason"> {
  if (!(error instanceof Error)) return { error: typeof error, at: "" };
  const { cause } = error;
  const [name, stack] = cause instanceof Error ? [` (${cause.name})`, cause.stack] : ["", error.stack];
  const at = /src\/[\w/]+\.ts:\d+/.exec(stack ?? "")?.[0] ?? "";
  const reason = "logReason" in error && typeof error.logReason === "string" ? error.logReason : undefined;
  return { error: error.name + name, at, ...(reason !== undefined && { reason }) };
}

/**
 * Writes lines in the background, so that nobody waits for a reader that has stalled. A line is dropped if a million
 * characters wait already; once there is room again, a line of `notice` says how many were.
 */
export class LineWriter {
  readonly #output: Output;
  readonly #notice: (dropped: number) => string;
  readonly #lost: Counter;
  #waiting: string[] = [];
  #characters = 0;
  #dropped = 0;
  #writing: Promise<void> | undefined;

  constructor(output: Output, notice: (dropped: number) => string, lost: Counter) {
    this.#output = output;
    this.#notice = notice;
    this.#lost = lost;
  }

  /** Has the line written, after those before it. */
  write(line: string): void {
    if (this.#characters > MAX_WAITING) {
      this.#dropped++;
      this.#lost.add(1);
    } else {
      this.#waiting.push(line);
      this.#characters += line.length;
      this.#writing ??= this.#writeAll();
    }
  }

  /** Resolves once every line so far is written, or dropped. */
  async flushed(): Promise<void> {
    await this.#writing;
  }

  async #writeAll(): Promise<void> {
    // Lines of the same turn of the event loop go into one write.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      if (this.#dropped > 0) this.#waiting.push(this.#notice(this.#dropped));
      const lines = this.#waiting;
      this.#waiting = [];
      this.#characters = 0;
      this.#dropped = 0;
      await this.#send(lines);
    }
    this.#writing = undefined;
  }

  /** Never rejects: a log that nobody reads any more is no reason to fail. */
  async #send(lines: readonly string[]): Promise<void> {
    const bytes = ENCODER.encode(`${lines.join("\n")}\n`);
    try {
      for (let sent = 0; sent < bytes.length;) sent += await this.#output.write(bytes.subarray(sent));
    } catch {
      this.#lost.add(lines.length);
    }
  }
}
