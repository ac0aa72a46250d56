import type { Store } from "../engine/mod.ts";
import type { Environment, Operation } from "../service/mod.ts";
import type { Catalogue, Items } from "../resource/mod.ts";
import type { Removal } from "../accounts/account_store.ts";
import type { Client } from "./client.ts";
import type { CommandGroup } from "./command_line.ts";

/** What an optional part needs to know about the service. */
export interface PartOptions {
  readonly store: Store;
  readonly catalogue: Catalogue;
  /** The collections. A handler writes with `call.transact`, alone or by `Items.change()`. */
  readonly items: readonly Items[];
  readonly environment: Environment;
  /** Prefix of the service's URLs; undefined for relative ones. */
  readonly publicUrl: string | undefined;
  /** Version of the service. */
  readonly version: string;
  /** Whether clients may create accounts. */
  readonly signUpIsOpen: boolean;
  /** Whether the service has tokens for operators, and so operations for them. */
  readonly hasOperators: boolean;
  /** URI of the security contact; undefined if there is none. */
  readonly securityContact: string | undefined;
  /** Returns all operations of the service. */
  readonly operations: () => readonly Operation[];
}

/** An optional part of the service. Everything about it is in one folder. */
export interface Part {
  /** Operations for clients. */
  readonly operations: (options: PartOptions) => Operation[];
  /** Operations for operators. */
  readonly operatorOperations?: (store: Store) => Operation[];
  /** Commands, which call the operations for operators. */
  readonly commands?: CommandGroup<Client>;
  /** Metrics at `now` (ms since the epoch), in the Prometheus text format. Their names begin with `prefix`. */
  readonly gauges?: (store: Store, prefix: string, now: number) => Promise<string[]>;
  readonly removal?: Removal;
}
