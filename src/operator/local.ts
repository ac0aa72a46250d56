import type { Transactions } from "../engine/mod.ts";
import { ApiError, apiErrorOf, createMatcher, errorResponse, ERRORS, readJsonObject } from "../web/mod.ts";
import type { Operation } from "../service/mod.ts";
import type { Fetch } from "./client.ts";

/** Options of {@linkcode localFetch}. */
export interface LocalOptions {
  readonly transactions: Transactions;
  /** The time, in ms since the epoch. */
  readonly clock: () => number;
}

const BASE = "http://localhost";

/**
 * Returns a function that sends requests to operations in this process. They need no token, because nobody else can
 * call them. The function throws errors other than ApiErrors, such as StoreUnavailable with the KV's own message.
 */
export function localFetch(operations: readonly Operation[], { transactions, clock }: LocalOptions): Fetch {
  const match = createMatcher(operations);
  return async (target, init) => {
    const request = new Request(BASE + target, init);
    const { pathname, search: query } = new URL(request.url);
    const matched = match(request.method, pathname);
    const now = clock();
    try {
      if (matched.kind !== "found") throw new ApiError(ERRORS.not_found, "There is no such operation.");
      return await matched.endpoint.respond({
        request,
        params: matched.params,
        query,
        base: BASE,
        now,
        accountId: "",
        acting: { by: "operator", accountId: "", now },
        transact: async (transaction) => (await transactions.run(transaction)).result,
        address: () => "",
        readBody: (rules) => readJsonObject(request, rules),
        note: () => {},
        noteChange: () => {},
        idle: () => Promise.resolve(false),
        clock,
      });
    } catch (error) {
      const shown = apiErrorOf(error);
      if (shown) return errorResponse(shown);
      throw error;
    }
  };
}
