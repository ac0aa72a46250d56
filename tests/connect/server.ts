import { makeLimitedV8Serializer, makeNapiBasedService, type NapiInterface } from "@deno/kv";

/** The engine of the package. Its functions read and write the bytes of the KV Connect protocol. */
interface Engine {
  readonly napi: NapiInterface;
  readonly dbId: number;
}

const [path = "", lostOneIn = "Infinity"] = Deno.args;
const kv = await makeNapiBasedService(makeLimitedV8Serializer()).openKv(path);
const { napi, dbId } = kv as unknown as Engine;
let writes = 0;
let lost = 0;

Deno.serve({
  hostname: "127.0.0.1",
  port: 0,
  onListen: ({ port }) => Deno.stdout.writeSync(new TextEncoder().encode(`http://127.0.0.1:${port}/\n`)),
}, async (request) => {
  const { origin, pathname } = new URL(request.url);
  switch (pathname) {
    case "/":
      return Response.json(metadata(`${origin}/kv`));
    case "/kv/snapshot_read":
      return reply(await napi.snapshotRead(dbId, await request.bytes(), false));
    case "/kv/atomic_write": {
      const result = await napi.atomicWrite(dbId, await request.bytes(), false);
      if (++writes % Number(lostOneIn) !== 0) return reply(result);
      lost++;
      return new Response("Lost", { status: 503 });
    }
    case "/lost":
      return Response.json(lost);
    default:
      return new Response("Not found", { status: 404 });
  }
});

function metadata(url: string): object {
  return {
    version: 3,
    databaseId: crypto.randomUUID(),
    endpoints: [{ url, consistency: "strong" }],
    token: "token",
    expiresAt: new Date(Date.now() + 3_600_000),
  };
}

function reply(bytes: Uint8Array): Response {
  return new Response(new Uint8Array(bytes), { headers: { "content-type": "application/x-protobuf" } });
}
