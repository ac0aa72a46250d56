import { KeyStore } from "./access/key_store.ts";
import type { Store } from "./kv/store.ts";
import { print } from "./terminal.ts";

/** On a store without any key: prints the commands that make one and use it. */
export async function printFirstSteps(store: Store, port: number): Promise<void> {
  const { done } = await new KeyStore(store).list().next();
  if (!done) return;
  print(`
There is no API key yet. In another terminal, make one and list the animals:

  KEY=$(deno task keys create --account me --plan free)
  curl -H "Authorization: Bearer $KEY" http://localhost:${port}/v1/pets
`);
}
