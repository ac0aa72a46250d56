import type { Decided, Transaction } from "../engine/mod.ts";
import type { Call as WebCall, Operation as WebOperation } from "../web/mod.ts";

/** What a request has changed: members with their new values, or the names of fields alone. */
export type Changed = Readonly<Record<string, unknown>> | readonly string[];

/** Who changes items, and when. */
export interface Acting {
  /**
   * `account`: a client, with its own items. `operator`: an operator, with those of all accounts. `service`: a part that
   * does what the account itself may not. `removal`: the deletion of an account. `rebuild`: a rebuild of a collection.
   */
  readonly by: "account" | "operator" | "service" | "removal" | "rebuild";
  /** ID of the account; empty if there is none. */
  readonly accountId: string;
  /** When the request arrived, in ms since the epoch. */
  readonly now: number;
}

/** The context of a request, for its handler. */
export interface Call extends WebCall {
  /** ID of the account; empty if the operation needs no API key. */
  readonly accountId: string;
  /** The collections that its API key is restricted to; undefined if it is not. */
  readonly collections?: readonly string[] | undefined;
  /** Who acts in it. */
  readonly acting: Acting;
  /** Adds the id of an account, message or item to the log line of an operator's request. */
  readonly note: (id: string) => void;
  /** Says in that line what was changed. It must have nothing secret. */
  readonly noteChange: (changed: Changed) => void;
  /**
   * Waits until something has happened, without being in flight. Resolves to whether it has, as `wait` does, which should
   * then resolve at once if the signal aborts: when the service stops, the client has gone, or another sender gets the
   * place of the request. After a second, the key must still be valid.
   *
   * @throws {ApiError} `overloaded` if too many requests wait; or that of a request whose key is not valid any more.
   */
  readonly idle: (wait: (signal: AbortSignal) => Promise<boolean>) => Promise<boolean>;
  /** The time, in ms since the epoch. */
  readonly clock: () => number;
  /**
   * Runs a transaction. This is a handler's only way to write.
   *
   * @throws the error that the transaction throws.
   * @throws {OutOfTime} if the request has timed out.
   * @throws {StoreUnavailable}
   */
  readonly transact: <Result extends Decided>(transaction: Transaction<Result>) => Promise<Result>;
}

/** An operation of this service. */
export type Operation = WebOperation<Call>;
