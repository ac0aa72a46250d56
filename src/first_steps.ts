import { KeyStore } from "./access/key_store.ts";
import { type Config, DEFAULT_KV_PATH } from "./config.ts";
import { MEMORY } from "./kv/open.ts";
import type { Store } from "./kv/store.ts";
import { print } from "./terminal.ts";

/** On a store without any key, outside production: prints the commands that make one and use it. */
export async function printFirstSteps(
  store: Store,
  { kvPath, environment }: Config,
  port: number,
): Promise<void> {
  if (environment === "production" || kvPath === undefined || kvPath === MEMORY) return;
  const { done } = await new KeyStore(store).list().next();
  if (!done) return;
  const variable = kvPath === DEFAULT_KV_PATH ? "" : `KV_PATH='${kvPath}' `;
  print(`
There is no API key yet. In another terminal, make one and list the animals:

  KEY=$(${variable}deno task keys create --account me --plan free)
  curl -H "Authorization: Bearer $KEY" http://localhost:${port}/v1/pets
`);
}
