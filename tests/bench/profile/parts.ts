/** A function as V8's profiler names it. */
export interface CallFrame {
  readonly functionName: string;
  readonly url: string;
}

/** Parts of the JavaScript that a server runs, in the order of the report. */
export const PARTS = {
  request: "reading the request",
  response: "making and sending the response",
  kv: "KV",
  gc: "garbage collection",
  other: "the rest of the runtime",
  own: "the service's own code",
} as const;

type Part = typeof PARTS[keyof typeof PARTS];

/** Deno's functions and files, by what they are for; the first that fits counts. */
const RUNTIME: readonly (readonly [pattern: RegExp, part: Part])[] = [
  [/^op_http_(set|new|drop)_response|23_response|20_headers|00_webidl|deno_web\/00_infra/, PARTS.response],
  [/^op_http|23_request|00_serve/, PARTS.request],
  [/^op_kv|01_db|serialize/, PARTS.kv],
];

/** The part that the function's own time belongs to; undefined while no JavaScript runs. */
export function partOf({ functionName, url }: CallFrame): Part | undefined {
  if (functionName === "(idle)") return undefined;
  if (functionName === "(garbage collector)") return PARTS.gc;
  if (url.startsWith("file:")) return PARTS.own;
  return RUNTIME.find(([pattern]) => pattern.test(`${functionName} ${url}`))?.[1] ?? PARTS.other;
}
