import { operatorTokenCheck } from "./access/bearer.ts";
import { Gate } from "./access/gate.ts";
import { ACCOUNTS_VERSION } from "./accounts/account.ts";
import { AccountStore } from "./accounts/account_store.ts";
import { sweepDayTotals } from "./accounts/day_totals.ts";
import { type App, type AppOptions, createApp } from "./app.ts";
import { Versions } from "./batching/versions.ts";
import { healthRoutes } from "./health.ts";
import type { Route } from "./http/router.ts";
import { ReplyStore } from "./idempotency/reply_store.ts";
import type { Store } from "./kv/store.ts";
import { Leases } from "./leases/leases.ts";
import { messageRoutes } from "./messages/message_routes.ts";
import { MessageStore } from "./messages/message_store.ts";
import { metricsRoute } from "./operator/metrics_route.ts";
import { operatorRoutes } from "./operator/operator_routes.ts";
import { pageRoutes } from "./page/page_route.ts";
import { petRoutes } from "./pets/pet_routes.ts";
import { CATALOGUE_VERSION, PetStore } from "./pets/pet_store.ts";
import { accountRoutes } from "./portal/account_routes.ts";
import { OPERATIONS } from "./portal/openapi/document.ts";
import { serviceRoutes } from "./portal/service_routes.ts";
import { signUpRoute, sweepCounts, sweepSignUps } from "./portal/sign_up.ts";
import type { Sweep } from "./sweeper.ts";
import { VERSION } from "./version.ts";

/** What the service stands on. */
export interface ServiceOptions extends Omit<AppOptions, "routes" | "gate" | "isOperator"> {
  readonly store: Store;
  /** How old what is known of accounts and the catalogue may be, in ms. */
  readonly maxStalenessMs: number;
  /** Whether anybody may make an account. */
  readonly signUpIsOpen: boolean;
  /** Where to report a security problem, as a URI; undefined where there is nobody to ask. */
  readonly securityContact: string | undefined;
  /** What an operator has to send; undefined where none may. */
  readonly operatorToken: string | undefined;
}

/** The service. */
export interface Service {
  /** What it answers. */
  readonly routes: readonly Route[];
  /** Answers a request. */
  readonly fetch: App;
  /** Writes what is not in the store yet. */
  readonly settle: () => Promise<void>;
  /** Remove what has expired. */
  readonly sweeps: readonly Sweep[];
}

/** Puts the service together. */
export function createService(options: ServiceOptions): Service {
  const { store, environment, publicUrl, signUpIsOpen, operatorToken } = options;
  const versions = new Versions(store, options.maxStalenessMs);
  const accountsRow = versions.watch(ACCOUNTS_VERSION);
  const catalogue = versions.watch(CATALOGUE_VERSION);
  const leases = new Leases(options);
  const gate = new Gate({ ...options, versions, accounts: accountsRow, leases });
  const replies = new ReplyStore(store);
  const accounts = new AccountStore(store, accountsRow, environment);
  const pets = new PetStore(store, catalogue);
  const messages = new MessageStore(store);
  const stores = { accounts, pets, messages };
  const metrics = metricsRoute({
    version: VERSION,
    requestsInFlight: () => options.inFlight.size,
    leases: () => leases.count(),
    messages,
  });
  const routes = [
    ...petRoutes({ pets, catalogue, replies, publicUrl }),
    ...messageRoutes(messages, replies),
    ...accountRoutes(store, accounts, gate),
    signUpRoute({ store, accounts, isOpen: signUpIsOpen }),
    ...serviceRoutes(options),
    ...pageRoutes({ ...options, operations: () => OPERATIONS }),
    ...healthRoutes(store),
    ...(operatorToken === undefined
      ? []
      : [...operatorRoutes({ ...options, stores, isStopping: () => options.inFlight.isStopping }), metrics]),
  ];
  return {
    routes,
    fetch: createApp({
      ...options,
      routes,
      gate,
      isOperator: operatorToken === undefined ? () => false : operatorTokenCheck(operatorToken),
    }),
    settle: () => leases.settle(),
    sweeps: [
      (now) => replies.sweep(now),
      (now) => sweepSignUps(store, accounts, now),
      (now) => sweepCounts(store, now),
      (now) => sweepDayTotals(store, now),
      () => store.sweep(),
    ],
  };
}
