// A KV server in place of the file that tests use by default.
import type { BackendOptions } from "../../../src/engine/backend.ts";
import { RemoteBackend } from "../../../src/engine/remote/remote.ts";

/** A backend on a server, with one handle. After a missed deadline, it opens the same handle again. */
export function onServer(kv: Deno.Kv, options: BackendOptions): RemoteBackend {
  const get = (kv: Deno.Kv, name: string) => name === "close" ? () => {} : Reflect.get(kv, name).bind(kv);
  const handle: Deno.Kv = new Proxy(kv, { get });
  return new RemoteBackend([handle], { ...options, reopen: () => Promise.resolve([handle]) });
}
