import type { Decided, Transaction } from "../engine/mod.ts";
import type { Call as WebCall, Operation as WebOperation } from "../web/mod.ts";

/** The context of a request, for its handler. */
export interface Call extends WebCall {
  /**
   * Runs a transaction. This is a handler's only way to write, except that it can draw ids.
   *
   * @throws the error that the transaction throws.
   * @throws {OutOfTime} if the request has timed out.
   * @throws {StoreUnavailable}
   */
  readonly transact: <Result extends Decided>(transaction: Transaction<Result>) => Promise<Result>;
}

/** An operation of this service. */
export type Operation = WebOperation<Call>;
