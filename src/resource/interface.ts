import { ERROR_HEADERS, SERVICE_HEADERS } from "./response_headers.ts";

// What documents say about the interface as a whole. To make the service your own, change it here.

/** Prefix of the paths of clients' operations. */
export const BASE_PATH = "/v1";

/** What all OpenAPI documents have in common. The page shows the licence, too. */
export const INTERFACE = {
  version: "1.0.0",
  contact: { name: "The operator of this service" },
  license: { name: "MIT", identifier: "MIT" },
  headers: SERVICE_HEADERS,
  errorsHave: ERROR_HEADERS,
} as const;

/**
 * The first version of the interface that clients could rely on. Documents mark the operations and parameters that it
 * does not have. If it is undefined, they mark nothing.
 */
export const ORIGINAL: string | undefined = "1.0.0";

/** Names of parameters that later versions have added to its operations. */
export const ADDED_PARAMETERS: readonly string[] = [
  "If-None-Match",
  "Idempotency-Key",
  "Prefer",
  "cursor",
  "sort",
];
