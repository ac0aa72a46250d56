import { type Store, Transactions, type VersionRow, Versions } from "../engine/mod.ts";
import type { Environment } from "../service/mod.ts";
import { type Catalogue, type Generations, type ItemMetrics, type Items, itemsOf } from "../resource/mod.ts";
import { ACCOUNTS_VERSION } from "../accounts/account.ts";
import { AccountStore, type AccountStoreOptions } from "../accounts/account_store.ts";
import { KeyForm } from "../accounts/api_key.ts";
import { ChangeStore } from "../changes/change_store.ts";

/** Options of {@linkcode createStores}. */
export interface StoresOptions extends Pick<AccountStoreOptions, "usageOf"> {
  readonly store: Store;
  readonly catalogue: Catalogue;
  readonly environment: Environment;
  /** The time, in ms since the epoch. */
  readonly clock: () => number;
  /** By default, no collection was ever rebuilt. */
  readonly generations?: Generations | undefined;
  /** Maximum age of cached accounts and items, in ms; by default 0. */
  readonly maxStalenessMs?: number | undefined;
  readonly metrics?: ItemMetrics | undefined;
  /** Called with each account or item that a page leaves out, and with what hooks throw while an account is deleted. */
  readonly report: (fault: Error, from: "accounts" | "items") => void;
}

/** What is on a store: accounts, items and their changes, and what reads and writes them. */
export interface Stores {
  readonly versions: Versions;
  /** The row whose version changes when an account does. */
  readonly accountsRow: VersionRow;
  readonly transactions: Transactions;
  readonly keys: KeyForm;
  readonly accounts: AccountStore;
  /** All collections, in the order of the catalogue. */
  readonly items: readonly Items[];
  readonly changes: ChangeStore;
  /** Gives unused ids back. Call it before the store is closed. */
  readonly close: () => Promise<void>;
}

/** Creates accounts and items on a store, for the service or for commands without it. */
export function createStores(options: StoresOptions): Stores {
  const { store, catalogue, environment, clock, generations, maxStalenessMs, metrics, usageOf, report } =
    options;
  const versions = new Versions(store, maxStalenessMs);
  const accountsRow = versions.watch(ACCOUNTS_VERSION);
  const transactions = new Transactions(store, clock);
  const keys = new KeyForm(catalogue);
  const accounts = new AccountStore(store, accountsRow, {
    ...{ environment, keys, usageOf },
    report: (fault) => report(fault, "accounts"),
  });
  const items = itemsOf(catalogue, {
    ...{ store, transactions, versions, generations, metrics },
    report: (fault) => report(fault, "items"),
  });
  const changes = new ChangeStore(store, { resources: catalogue.resources, maxStalenessMs });
  return {
    ...{ versions, accountsRow, transactions, keys, accounts, items, changes },
    async close() {
      await Promise.all(items.map(({ ids }) => ids.close()));
    },
  };
}
