// What documents say about the interface as a whole. To make the service your own, change it here.

/** Version, contact and licence in the OpenAPI documents. The page shows the licence, too. */
export const INTERFACE = {
  version: "1.0.0",
  contact: { name: "The operator of this service" },
  license: { name: "MIT", identifier: "MIT" },
} as const;

/**
 * The first version of the interface that clients could rely on. Documents mark the operations and parameters that it
 * does not have, as {@linkcode asExtension} does. If it is undefined, they mark nothing.
 */
export const ORIGINAL: string | undefined = "1.0.0";

/** The description of an extension, followed by `space` and a note that the original interface does not have it. */
export function asExtension(description: string, space: string = " "): string {
  if (ORIGINAL === undefined) return description;
  return `${description}${space}An extension: not part of the original interface, version ${ORIGINAL}.`;
}
