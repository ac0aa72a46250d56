import manifest from "../../deno.json" with { type: "json" };

/** Version of this service (Semantic Versioning). */
export const VERSION: string = manifest.version;
