import { tokenCheck } from "../accounts/bearer.ts";
import { Admissions } from "./admission.ts";
import { ACCOUNTS, ACCOUNTS_VERSION } from "../accounts/account.ts";
import { type AccountState, AccountStore } from "../accounts/account_store.ts";
import { accountOperations } from "../accounts/account_operations.ts";
import { Permits, sweepDayTotals } from "../limits/mod.ts";
import { signUpOperation, sweepCounts, sweepSignUps } from "../accounts/sign_up.ts";
import { type App, type AppOptions, createApp } from "./app.ts";
import type { Operation } from "../resource/call.ts";
import { healthOperations } from "./health.ts";
import { sweepReplies } from "../resource/reply_store.ts";
import type { Store } from "../engine/store.ts";
import { messageOperations } from "../messages/message_operations.ts";
import { MessageStore } from "../messages/message_store.ts";
import { metricsOperation } from "../operator/metrics_route.ts";
import { servedOperations } from "../operator/operations.ts";
import { petOperations } from "../pets/pet_operations.ts";
import { CATALOGUE_VERSION, PetStore } from "../pets/pet_store.ts";
import { serviceOperations } from "../page/service_operations.ts";
import { Transactions } from "../engine/transactions.ts";
import { Versions } from "../engine/versions.ts";
import type { Sweep } from "./sweeper.ts";
import { VERSION } from "./version.ts";

/** Options of {@linkcode createService}. */
export interface ServiceOptions
  extends Omit<AppOptions, "operations" | "admissions" | "transactions" | "hasToken"> {
  readonly store: Store;
  /** Maximum age of cached accounts and animals, in ms. */
  readonly maxStalenessMs: number;
  /** Whether clients may create accounts. */
  readonly signUpIsOpen: boolean;
  /** URI of the security contact; undefined if there is none. */
  readonly securityContact: string | undefined;
  /** Bearer tokens for commands and metrics. Without one, there are no commands over HTTP. */
  readonly operatorTokens: readonly string[];
  /** Bearer tokens for metrics only. */
  readonly metricsTokens: readonly string[];
}

/** The service. */
export interface Service {
  readonly operations: readonly Operation[];
  readonly fetch: App;
  /** Gives unused permits and IDs back to the store. Call it before the store is closed. */
  readonly settle: () => Promise<void>;
  /** Removal of expired rows. */
  readonly sweeps: readonly Sweep[];
}

/** Creates the service on a store. */
export function createService(options: ServiceOptions): Service {
  const { store, environment, publicUrl, signUpIsOpen, operatorTokens } = options;
  const metricsTokens = [...operatorTokens, ...options.metricsTokens];
  const versions = new Versions(store, options);
  const accountsRow = versions.watch(ACCOUNTS_VERSION);
  const catalogue = versions.watch(CATALOGUE_VERSION);
  const transactions = new Transactions(store, options);
  const permits = new Permits({ ...options, transactions, holders: ACCOUNTS });
  const admissions = new Admissions({ ...options, versions, accounts: accountsRow, permits });
  const accounts = new AccountStore(store, accountsRow, environment);
  const pets = new PetStore(store, transactions, catalogue);
  const messages = new MessageStore(store);
  const usedBy = (state: AccountState) => admissions.usedBy(state);
  const isStopping = () => options.inFlight.isStopping;
  const operations: readonly Operation[] = [
    ...petOperations({ pets, catalogue, publicUrl }),
    ...messageOperations(messages),
    signUpOperation({ accounts, isOpen: signUpIsOpen }),
    ...accountOperations({ store, accounts, usedBy }),
    ...serviceOperations({ ...options, version: VERSION, operations: () => operations }),
    ...healthOperations(store),
    ...(operatorTokens.length === 0
      ? []
      : servedOperations({ accounts, pets, messages, usedBy, isStopping }, publicUrl)),
    ...(metricsTokens.length === 0
      ? []
      : [metricsOperation({ ...options, version: VERSION, messages, permits })]),
  ];
  return {
    operations,
    fetch: createApp({
      ...options,
      operations,
      admissions,
      transactions,
      hasToken: { operator: tokenCheck(operatorTokens), metrics: tokenCheck(metricsTokens) },
    }),
    async settle() {
      await Promise.all([permits.settle(), pets.ids.settle()]);
    },
    sweeps: [
      (now) => sweepReplies(store, now),
      (now) =>
        sweepSignUps(store, (id, condition) => transactions.run(accounts.removing(id, condition)), now),
      (now) => sweepCounts(store, now),
      (now) => sweepDayTotals(store, now),
      () => store.sweep(),
    ],
  };
}
