import { Permits, sweepDayTotals } from "../limits/mod.ts";
import type { Operation } from "../service/mod.ts";
import {
  type Generations,
  itemOperations,
  type Items,
  sweepGenerations,
  sweepReplies,
} from "../resource/mod.ts";
import { type Account, ACCOUNTS } from "../accounts/account.ts";
import { accountOperations } from "../accounts/account_operations.ts";
import type { AccountStore } from "../accounts/account_store.ts";
import { clientSchemas } from "../accounts/account_view.ts";
import { createKeySweep } from "../accounts/key_sweep.ts";
import { changeOperations } from "../changes/change_operations.ts";
import type { ChangeStore } from "../changes/change_store.ts";
import { signUpOperation, sweepCounts, sweepSignUps } from "../accounts/sign_up.ts";
import { metricsOperation, type MetricsOptions } from "../operator/metrics_route.ts";
import { servedOperations } from "../operator/operations.ts";
import type { PartOptions } from "../operator/part.ts";
import { grantsOf, type OperatorTokens } from "../operator/token.ts";
import { PARTS } from "../catalogue/parts.ts";
import { Admissions } from "./admission.ts";
import { type App, type AppOptions, createApp } from "./app.ts";
import { documentOperations } from "./document_operations.ts";
import { healthOperations } from "./health.ts";
import { errorRecord } from "./log.ts";
import { requireValidOperations } from "./operations.ts";
import { createStores, type Stores } from "./stores.ts";
import type { Sweep } from "./sweeper.ts";
import { VERSION } from "./version.ts";
import { WrongTokens } from "./wrong_tokens.ts";

/** Options of {@linkcode createService}. */
export interface ServiceOptions extends
  Omit<
    AppOptions,
    "operations" | "admissions" | "transactions" | "grants" | "wrongTokens" | "realm" | "keys"
  >,
  OperatorTokens,
  Pick<PartOptions, "catalogue" | "store" | "signUpIsOpen" | "securityContact"> {
  /** By default, no collection was ever rebuilt. */
  readonly generations?: Generations;
  /** Maximum age of cached accounts and items, in ms. */
  readonly maxStalenessMs: number;
  /** Undefined if timers do not run between requests. */
  readonly eventLoopDelay?: MetricsOptions["eventLoopDelay"];
}

/** The service. */
export interface Service {
  readonly operations: readonly Operation[];
  readonly fetch: App;
  /** The accounts' permits in this process. */
  readonly permits: Permits<Account>;
  /** Gives unused permits and IDs back to the store, and ends the log. Call it before the store is closed. */
  readonly close: () => Promise<void>;
  /** Removal of expired rows. */
  readonly sweeps: readonly Sweep[];
}

/** Maximum memory of the responses that all collections cache, in bytes. */
const PAGE_BYTES = 32 * 1024 * 1024;

/**
 * Creates the service on a store.
 *
 * @throws {ResourceError} if the declaration of an operation is wrong, or two share a path or a schema.
 */
export function createService(options: ServiceOptions): Service {
  const { catalogue, generations = new Map(), store, environment, publicUrl, maxStalenessMs, onDeploy } =
    options;
  const { allowedOrigins, clock, clientAddress, log, metrics, inFlight } = options;
  const realm = slugOf(catalogue.title, "-");
  const stores = createStores({
    ...{ store, catalogue, environment, clock, generations, maxStalenessMs },
    metrics: metrics.items,
    usageOf: (state) => permits.usageOf(state),
    report: (fault, from) => log.error(errorRecord(fault, clock(), from)),
  });
  const { versions, accountsRow, transactions, keys, accounts, items, changes } = stores;
  const permits: Permits<Account> = new Permits({
    ...{ store, transactions, clock },
    holders: ACCOUNTS,
    metrics: metrics.limits,
    banned(accountId, until) {
      const time = new Date(clock()).toISOString();
      log.event({ time, event: "ban", accountId, until: new Date(until).toISOString() });
    },
  });
  const wrongTokens = new WrongTokens(log, clock);
  const { operations, idsOfParts } = operationsOf(options, { accounts, items, changes, permits });
  const collections = catalogue.resources.map(({ name }) => name);
  requireValidOperations(operations, { ofParts: idsOfParts, collections });
  return {
    operations,
    permits,
    fetch: createApp({
      ...{ operations, publicUrl, clock, clientAddress, transactions, onDeploy, realm, environment, keys },
      ...{ log, metrics, inFlight, allowedOrigins },
      admissions: new Admissions({ store, environment, keys, versions, accounts: accountsRow, permits }),
      grants: grantsOf(options),
      wrongTokens,
    }),
    async close() {
      wrongTokens.flush();
      await Promise.all([permits.settle(), stores.close()]);
    },
    sweeps: sweepsOf(options, stores),
  };
}

function sweepsOf(
  { store, catalogue, generations = new Map() }: ServiceOptions,
  { accounts, changes, transactions }: Pick<Stores, "accounts" | "changes" | "transactions">,
): readonly Sweep[] {
  return [
    (now) => sweepReplies(store, now),
    (now) =>
      sweepSignUps(
        store,
        (id, condition, row) => transactions.run(accounts.removing({ id }, condition, row)),
        catalogue.plans,
        now,
      ),
    (now) => sweepCounts(store, now),
    createKeySweep(store, (removal) => transactions.run(removal)),
    (now) => sweepDayTotals(store, now),
    (now) => changes.sweep(now),
    (now) => sweepGenerations(store, catalogue.resources, generations, now),
    () => store.sweep(),
  ];
}

/** What the operations of the service need, in addition to its options. */
interface Served {
  readonly accounts: AccountStore;
  readonly items: readonly Items[];
  readonly changes: ChangeStore;
  readonly permits: Permits<Account>;
}

/**
 * All operations, in the order in which documents list them, and the ids of those of parts. Only access checks get the
 * tokens themselves.
 */
function operationsOf(
  options: ServiceOptions,
  { accounts, items, changes, permits }: Served,
): { readonly operations: readonly Operation[]; readonly idsOfParts: ReadonlySet<string> } {
  const { catalogue, store, environment, publicUrl, securityContact, signUpIsOpen, clock } = options;
  const { metrics, inFlight, eventLoopDelay, operatorTokens, operatorReadTokens, metricsTokens } = options;
  const hasOperators = [...operatorTokens, ...operatorReadTokens].length > 0;
  const { title } = catalogue;
  const [realm, prefix] = [slugOf(title, "-"), `${slugOf(title, "_")}_`];
  const described = { catalogue, publicUrl, securityContact, operations: () => operations };
  const ofPart = { ...described, store, items, environment, signUpIsOpen, hasOperators, version: VERSION };
  const scraped = {
    prefix,
    version: VERSION,
    store,
    changes,
    metrics,
    parts: PARTS,
    inFlight,
    eventLoopDelay,
    permits,
  };
  const schemas = clientSchemas(catalogue);
  const ofParts = PARTS.flatMap((part) => part.operations(ofPart));
  const forOperators = PARTS.flatMap(({ operatorOperations }) => operatorOperations?.(store) ?? []);
  const operations: readonly Operation[] = [
    ...items.flatMap((own) => itemOperations(own, { publicUrl, maxBytes: PAGE_BYTES / items.length })),
    ...changeOperations(changes),
    ...ofParts,
    signUpOperation(accounts, { plans: catalogue.plans, schemas, isOpen: signUpIsOpen }),
    ...accountOperations(accounts, schemas, realm),
    ...documentOperations(described, clock),
    ...healthOperations(store, inFlight),
    ...(hasOperators
      ? servedOperations({ store, accounts, catalogue, items, changes, parts: PARTS }, publicUrl)
      : []),
    ...(hasOperators || metricsTokens.length > 0 ? [metricsOperation(scraped)] : []),
  ];
  return { operations, idsOfParts: new Set([...ofParts, ...forOperators].map(({ id }) => id)) };
}

/** A title in lower case, with this text in place of spaces. */
export function slugOf(title: string, space: string): string {
  return title.toLowerCase().replaceAll(/\W+/g, space);
}
