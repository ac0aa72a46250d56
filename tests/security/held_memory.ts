// Measures the memory that clients make the service hold without a proxy, for the table in README.md:
//     deno run --config tests/deno.json -P tests/security/held_memory.ts
import { connect } from "node:http2";
import { pause } from "../../src/base/time.ts";
import { printOutput } from "../../src/process/process.ts";
import { residentMemory, ServerProcess } from "../process/process.ts";
import { RawConnection, rawRequest } from "../process/raw_connection.ts";
import { upTo } from "../support/client.ts";

/** Connects once, and makes the service hold as much as one connection can. Resolves to what closes it. */
type Client = (server: ServerProcess) => Promise<() => void>;

const STREAMS = 200;
/** The longest header that HTTP/2 has room for beside the others: Deno refuses more than 16 KB. */
const HEADER = "a".repeat(15_000);
const JSON_TYPE = { "content-type": "application/json" };

/** An HTTP/2 connection on which no response can be sent, because its window stays closed. */
async function withoutWindow(
  server: ServerProcess,
  headers: Readonly<Record<string, string>>,
  body?: Uint8Array,
): Promise<() => void> {
  const client = connect(server.origin, { settings: { initialWindowSize: 0 } });
  client.on("error", () => {});
  await Promise.all(
    upTo(STREAMS).map((number) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      const path = { ":path": "/health", ...headers, "x-number": `${number}` };
      const stream = client.request(path, { endStream: body === undefined });
      for (const event of ["response", "error", "close"]) stream.on(event, () => resolve());
      if (body) stream.write(body);
      return promise;
    }),
  );
  return () => client.destroy();
}

/** An HTTP/1.1 connection with this request, whose end the client never sends. */
async function unfinished(server: ServerProcess, text: string, isAnswered: boolean): Promise<() => void> {
  const connection = await RawConnection.open(server.port);
  await connection.send(text);
  if (isAnswered) await connection.receive();
  return () => connection[Symbol.dispose]();
}

const POST = { ":method": "POST", ":path": "/v1/accounts", ...JSON_TYPE };
/** About as many chunks as a body may have. */
const CHUNKS = "c\r\n0123456789ab\r\n".repeat(4_700);
const SLOW = rawRequest("POST /v1/accounts", { ...JSON_TYPE, "transfer-encoding": "chunked" }, CHUNKS);
const CLIENTS: readonly (readonly [name: string, connections: number, client: Client])[] = [
  ["200 unread responses over HTTP/2", 100, (server) => withoutWindow(server, {})],
  [
    `the same, to requests with 15 kB of headers`,
    20,
    (server) => withoutWindow(server, { "x-long": HEADER }),
  ],
  [
    "the same, to requests whose body does not end",
    20,
    (server) => withoutWindow(server, POST, new Uint8Array(60_000)),
  ],
  [
    "a body in 4,700 chunks that does not end, after its 408",
    200,
    (server) => unfinished(server, SLOW, true),
  ],
  [
    "a head that does not end",
    1_000,
    (server) => unfinished(server, rawRequest("GET /", { "x-long": "a".repeat(65_000) }).slice(0, -4), false),
  ],
];
const MEGABYTE = 1_000_000;
const SETTLED_MS = 3_000;

await printOutput(
  "| each connection holds | connections | per connection | before | held | after they ended |",
);
await printOutput("| --- | --: | --: | --: | --: | --: |");
for (const [name, connections, client] of CLIENTS) {
  await using server = await ServerProcess.start({ KV_PATH: ":memory:" });
  const before = await residentMemory(server.pid);
  const closing = await Promise.all(upTo(connections).map(() => client(server)));
  await pause(SETTLED_MS);
  const held = await residentMemory(server.pid);
  for (const close of closing) close();
  await pause(SETTLED_MS);
  const after = await residentMemory(server.pid);
  const each = `${((held - before) / connections / MEGABYTE).toFixed(2)} MB`;
  const totals = [before, held, after].map((bytes) => `${Math.round(bytes / MEGABYTE)} MB`);
  await printOutput(`| ${[name, connections, each, ...totals].join(" | ")} |`);
}
