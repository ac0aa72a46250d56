import type { Counter } from "../base/mod.ts";
import type { Changed, LimitOf } from "../service/mod.ts";
import { Metrics } from "./metrics.ts";

/** A destination of log lines, such as `Deno.stdout`. */
export interface Output {
  write(bytes: Uint8Array): Promise<number>;
}

/** A line of the access log. Each line has the time of the request or the event (ISO 8601, UTC). */
export interface AccessRecord {
  readonly time: string;
  readonly id: string;
  /** The client's address. */
  readonly address: string;
  /** A known method, or `other`. */
  readonly method: string;
  /** The route's pattern. Unlike the path, it has no data from the client. */
  readonly route: string;
  readonly status: number;
  /** Code of the error; empty if there is none. */
  readonly code: string;
  /** Duration in whole ms. */
  readonly ms: number;
  /** The account that was charged or, for a 401 or a refusal, the account of the key, if this process knows it. */
  readonly accountId: string;
  /** ID of the added key that the account was charged with. The first key has none. */
  readonly keyId?: string;
  /** Whose limit refused the request, if one did: a key's account can be known although the address was charged. */
  readonly limitOf?: LimitOf;
}

/** A line of the error log. */
export interface ErrorRecord extends Pick<AccessRecord, "time" | "id" | "route"> {
  /** Name of the error and of its cause. */
  readonly error: string;
  /** Source file and line, if known. */
  readonly at: string;
  /** Code of the response, if the error is an ApiError. */
  readonly code?: string;
  /** Why: the error's `logReason`, which failures of KV have, or what a handler has not done. */
  readonly reason?: string;
  /** Where an error that nobody handles arose: its stack, without the message. */
  readonly stack?: string;
  /** The error's message and stack, and those of its causes. Only in staging, because they may show data of clients. */
  readonly detail?: string;
}

/** A line of the log for an operator's request. */
export interface OperatorRecord extends Pick<AccessRecord, "time" | "id" | "address" | "status"> {
  /** The name of the operator, if the token has one. */
  readonly operator?: string;
  readonly operation: string;
  /** IDs of the accounts, keys, messages or items that it is about. */
  readonly ids: readonly string[];
  /** What was changed. */
  readonly changed?: Changed;
}

/** A line of the log for a ban, which ends at the time `until`. */
export interface BanRecord extends Pick<AccessRecord, "time" | "accountId"> {
  readonly event: "ban";
  readonly until: string;
}

/** A line of the log for wrong operator tokens since the line before. The address is that of the last one. */
export interface WrongTokenRecord extends Pick<AccessRecord, "time" | "address"> {
  readonly event: "wrong_token";
  readonly count: number;
}

/** A line of the log when the service begins to stop. */
export interface StopRecord extends Pick<AccessRecord, "time"> {
  readonly event: "stop";
  /** The signal, or the `route` of the error for which it stops. */
  readonly reason: string;
}

/** A line of the log for something that is no request. */
export type EventRecord = BanRecord | WrongTokenRecord | StopRecord;

/** The service's log. It never has a key or, in production, a body or the message of an error without `logReason`. */
export interface Log {
  /** Logs a request with its response; undefined if the access log is off. */
  readonly access?: (record: AccessRecord) => void;
  readonly error: (record: ErrorRecord) => void;
  readonly operator: (record: OperatorRecord) => void;
  readonly event: (record: EventRecord) => void;
  /** Resolves once every line so far has been written or dropped. */
  readonly flushed: () => Promise<void>;
}

/** Options of {@linkcode createLog}. */
export interface LogOptions {
  /** Destination of the access log; undefined if it is off. */
  readonly access: Output | undefined;
  /** Destination of failures, operators' requests and events. */
  readonly errors: Output;
  /** Text replaced with `[secret]` in every line, because clients may put secrets anywhere. */
  readonly secrets: readonly (string | RegExp)[];
  /** The time, in ms since the epoch. */
  readonly clock: () => number;
  readonly metrics?: Metrics;
}

const MAX_REASON = 200;
const MAX_DETAIL = 4_000;
/** Maximum number of buffered characters. */
const MAX_WAITING = 1_000_000;
const ENCODER = new TextEncoder();
/** URL of the folder `src`. */
const SOURCES = new URL("../", import.meta.url).href;

/** Creates a log of JSON lines. */
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
    error: ({ reason, stack, detail, ...record }) => {
      // Truncated last, because a truncated secret would not be found.
      const cut = (text: string | undefined, length: number) => text && hide(text).slice(0, length);
      toErrors.write(line({
        ...{ ...record, reason: cut(reason, MAX_REASON) },
        ...{ stack: cut(stack, MAX_DETAIL), detail: cut(detail, MAX_DETAIL) },
      }));
    },
    operator: (record) => toErrors.write(line(record)),
    event: (record) => toErrors.write(line(record)),
    ...(toAccess && { access: (record) => toAccess.write(line(record)) }),
    flushed: async () => void await Promise.all([toErrors.flushed(), toAccess?.flushed()]),
  };
}

/**
 * The log line of an error: its name, place and `logReason`. Its message is left out, because it may contain secrets.
 *
 * `route` is the route's pattern, or another task that failed: `accept`, `accounts`, `items`, `schema`, `store` or
 * `sweep`. `id` is that of the request that failed, if any.
 */
export function errorRecord(error: unknown, now: number, route: string, id = ""): ErrorRecord {
  const common = { time: new Date(now).toISOString(), id, route };
  if (!(error instanceof Error)) return { ...common, error: typeof error, at: "" };
  const { cause } = error;
  const [name, stack] = cause instanceof Error ? [` (${cause.name})`, cause.stack] : ["", error.stack];
  const at = placeIn(stack ?? "");
  const reason = "logReason" in error && typeof error.logReason === "string" ? error.logReason : undefined;
  return { ...common, error: error.name + name, at, ...(reason !== undefined && { reason }) };
}

/** The log line of an error that nobody handles, which also has its stack. See {@linkcode errorRecord}. */
export function unhandledRecord(error: unknown, now: number, route: string): ErrorRecord {
  const stack = error instanceof Error ? error.stack ?? "" : "";
  // The lines before these are the message.
  const frames = stack.split("\n").filter((line) => /^ {4}at /.test(line));
  return { ...errorRecord(error, now, route), stack: frames.join("\n") };
}

/** The first source file and line in a stack, such as `src/app.ts:1`; empty if there is none. */
function placeIn(stack: string): string {
  for (const frame of stack.split(SOURCES).slice(1)) {
    const [place] = /^[\w/]+\.ts:\d+/.exec(frame) ?? [];
    if (place !== undefined) return `src/${place}`;
  }
  return "";
}

/**
 * Writes lines in the background, so that no request waits for a slow reader. Once a million characters are buffered,
 * it drops further lines. When there is room again, it writes a line from `notice` with the number of dropped lines.
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

  /** Adds a line to the buffer. */
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

  /** Resolves once every line so far has been written or dropped. */
  async flushed(): Promise<void> {
    await this.#writing;
  }

  async #writeAll(): Promise<void> {
    // Lines of the same turn of the event loop share a write.
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

  /** Never rejects. Lines that cannot be written are counted as dropped. */
  async #send(lines: readonly string[]): Promise<void> {
    const bytes = ENCODER.encode(`${lines.join("\n")}\n`);
    try {
      for (let sent = 0; sent < bytes.length;) sent += await this.#output.write(bytes.subarray(sent));
    } catch {
      this.#lost.add(lines.length);
    }
  }
}
