// Whether the service can start with its catalogue, on an empty store. As a program, it prints why not.
import { openAccounts } from "../src/accounts/plans.ts";
import { CATALOGUE } from "../src/catalogue/catalogue.ts";
import { openStore } from "../src/engine/mod.ts";
import { openCollections, ResourceError } from "../src/resource/mod.ts";
import { print } from "../src/process/process.ts";
import { Harness } from "./support/harness.ts";
import { ALL } from "./support/operations.ts";

/** Exits with 1 and the line of the start if the service would not start. */
export async function requireStartable(): Promise<void> {
  try {
    const store = await openStore(":memory:", { clock: Date.now, create: true });
    await openCollections(store, CATALOGUE, { create: true });
    await openAccounts(store, CATALOGUE);
    await store.close();
    await using _ = await Harness.open({ ...ALL, catalogue: CATALOGUE });
  } catch (error) {
    if (!(error instanceof ResourceError)) throw error;
    print(error.message);
    Deno.exit(1);
  }
}

if (import.meta.main) await requireStartable();
