/** A line of the access log. */
export interface AccessRecord {
  /** ISO 8601, UTC. */
  readonly time: string;
  readonly id: string;
  readonly method: string;
  /** The route's pattern, not the path: it holds no client data. */
  readonly route: string;
  readonly status: number;
  /** Time taken, in ms. */
  readonly ms: number;
  readonly keyId: string;
}

/** A line of the error log. */
export interface ErrorRecord {
  /** ISO 8601, UTC. */
  readonly time: string;
  /** Request id, as the client got it. */
  readonly id: string;
  readonly route: string;
  /** Name of the error, and of its cause. */
  readonly error: string;
  /** Source file and line that it was thrown from, where known. */
  readonly at: string;
}

/** Where the service writes what happened; never a key, a body or an error's message. */
export interface Log {
  /** One answered request. */
  readonly access?: (record: AccessRecord) => void;
  /** A failure of the service's own. */
  readonly error: (record: ErrorRecord) => void;
}

const ENCODER = new TextEncoder();

/** What to log. */
export interface LogOptions {
  /** Whether to log requests. */
  readonly access: boolean;
  /** What to leave out of every line; clients put secrets in odd places. */
  readonly secret: RegExp;
}

/** Writes JSON lines: errors to standard error, and requests to standard output if asked to. */
export function createLog({ access, secret }: LogOptions): Log {
  const line = (record: object) => `${JSON.stringify(record).replace(secret, "[secret]")}\n`;
  const error = (record: ErrorRecord) => write(Deno.stderr, line(record));
  return access ? { error, access: (record) => write(Deno.stdout, line(record)) } : { error };
}

/** What the log may say of an error: names and a place, for messages can hold anything. */
export function describeError(error: unknown): Pick<ErrorRecord, "error" | "at"> {
  if (!(error instanceof Error)) return { error: typeof error, at: "" };
  const { cause } = error;
  const [name, stack] = cause instanceof Error ? [` (${cause.name})`, cause.stack] : ["", error.stack];
  return { error: error.name + name, at: /src\/[\w/]+\.ts:\d+/.exec(stack ?? "")?.[0] ?? "" };
}

/** A log that nobody reads any more is no reason to fail a request. */
function write(output: { writeSync(bytes: Uint8Array): number }, line: string): void {
  try {
    output.writeSync(ENCODER.encode(line));
  } catch {
    return;
  }
}
