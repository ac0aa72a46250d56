// Preloaded into the service of any checkout: takes its handler in place of the server, and then takes turns with other
// processes. It imports nothing of the checkout.
import { type Kind, type Orders, prepare } from "./requests.ts";

/** Runs what it is given, and resolves to figures about it. `count` is the number of requests. */
export type Measure = (run: () => Promise<void>, count: number) => Promise<Record<string, number>>;

/** What one turn sends: requests of a kind, 64 at a time or one at a time. */
export interface Turn {
  readonly kind: string;
  readonly together: boolean;
}

/** A handler of `Deno.serve`. */
export type Handler = (request: Request, info: Deno.ServeHandlerInfo) => Response | Promise<Response>;

const TOGETHER = 64;
/** Number of requests in a turn. One with writes takes longer. */
const COUNTS = { reads: { together: 512, alone: 128 }, writes: { together: 64, alone: 8 } };

/**
 * Replaces `Deno.serve`. Once the service serves, reads orders and then turns from standard input, one a line, and writes
 * figures to standard output, one line a turn. Exits at the end of standard input.
 */
export function takeTurns(measure: Measure): void {
  function serve(_options: unknown, handler: Handler): unknown {
    run(handler, measure).catch((error) => {
      Deno.stderr.writeSync(new TextEncoder().encode(`${Deno.inspect(error)}\n`));
      Deno.exit(1);
    });
    const addr = { transport: "tcp", hostname: "127.0.0.1", port: 8_000 };
    return { addr, finished: new Promise(() => {}), shutdown: () => Promise.resolve() };
  }
  Object.assign(Deno, { serve });
}

async function run(handler: Handler, measure: Measure): Promise<void> {
  const lines = linesOfInput();
  const first = await lines.next();
  const orders: Orders = JSON.parse(first.value ?? "{}");
  const kinds = await prepare(handler, orders);
  write({ kinds: [...kinds.keys()] });
  for await (const line of lines) {
    const { kind, together }: Turn = JSON.parse(line);
    const found = kinds.get(kind);
    if (found === undefined) throw new Error(`There is no ${kind}`);
    const count = COUNTS[found.isWrite ? "writes" : "reads"][together ? "together" : "alone"];
    const requests = Array.from({ length: count }, () => found.next());
    const send = () => sendAll(handler, found, requests, together ? TOGETHER : 1);
    write(await measure(send, count));
  }
  Deno.exit(0);
}

/** Calls the handler with so many requests at a time. Throws if a response has another status. */
async function sendAll(
  handler: Handler,
  { status, info }: Kind,
  requests: readonly Request[],
  atATime: number,
): Promise<void> {
  for (let begun = 0; begun < requests.length; begun += atATime) {
    const responses: (Response | Promise<Response>)[] = [];
    for (let next = begun; next < begun + atATime; next++) {
      const request = requests[next];
      if (request) responses.push(handler(request, info()));
    }
    // Not Promise.all, which is not part of what is measured.
    for (const response of responses) {
      const answer = await response;
      if (answer.status !== status) {
        throw new Error(`A response has the status ${answer.status}: ${await answer.text()}`);
      }
    }
  }
}

async function* linesOfInput(): AsyncGenerator<string, undefined> {
  let rest = "";
  for await (const text of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
  return undefined;
}

function write(value: unknown): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${JSON.stringify(value)}\n`));
}
