// What documents say about the interface as a whole. To make the service your own, change it here.

/** Prefix of the paths of clients' operations. */
export const BASE_PATH = "/v1";

/** Version, contact and licence in the OpenAPI documents. The page shows the licence, too. */
export const INTERFACE = {
  version: "1.0.0",
  contact: { name: "The operator of this service" },
  license: { name: "MIT", identifier: "MIT" },
} as const;

/**
 * The first version of the interface that clients could rely on. Documents mark the operations and parameters that it
 * does not have. If it is undefined, they mark nothing.
 */
export const ORIGINAL: string | undefined = "1.0.0";
