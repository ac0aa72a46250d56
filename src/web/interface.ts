// What documents say about the interface as a whole. To make the service your own, change it here.

/** Version, contact and licence in the OpenAPI documents. The page shows the licence, too. */
export const INTERFACE = {
  version: "1.0.0",
  contact: { name: "The operator of this service" },
  license: { name: "MIT", identifier: "MIT" },
} as const;

/**
 * The version that clients have relied on so far. Documents mark what it does not have: operations with `isExtension`,
 * and parameters. If it is undefined, they mark nothing.
 */
export const ORIGINAL: string | undefined = "1.0.0";

/** What documents say about an extension, after its description and `space`. */
export function asExtension(description: string, space: string = " "): string {
  if (ORIGINAL === undefined) return description;
  return `${description}${space}An extension: not part of the original interface, version ${ORIGINAL}.`;
}
