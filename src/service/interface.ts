import { ERROR_HEADERS, SERVICE_HEADERS } from "./response_headers.ts";

/** Prefix of the paths of clients' operations. */
export const BASE_PATH = "/v1";

/** What all OpenAPI documents have in common. */
export const INTERFACE = { headers: SERVICE_HEADERS, errorsHave: ERROR_HEADERS } as const;

/** Names of parameters that later versions than the original one have added to its operations, each new one at the end. */
export const ADDED_PARAMETERS: readonly string[] = [
  "cursor",
  "If-None-Match",
  "Idempotency-Key",
  "Prefer",
  "sort",
  "from",
  "to",
];

/** An account's id in examples. */
export const EXAMPLE_ACCOUNT_ID = "acct_7f3kQ2mZ8xVb1LpR";
