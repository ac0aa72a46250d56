import type { ErrorCode } from "../../http/error.ts";
import type { Access, Route } from "../../http/router.ts";
import type { Success } from "./responses.ts";
import type { Schema } from "./schema.ts";

/** What an operation is told in its URL or in a header. */
export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required?: true;
  readonly description: string;
  readonly schema: Schema;
  readonly example?: number;
}

/** An operation as it is described. */
export interface Operation {
  readonly id: string;
  readonly method: Route["method"];
  /** With parameters in braces. */
  readonly path: string;
  readonly tag: "Animals" | "Messages" | "Account" | "Service";
  readonly summary: string;
  readonly description?: string;
  readonly deprecated?: true;
  /** Not part of interface 1.0.0. */
  readonly isExtension?: true;
  /** Who may call it, and is charged. */
  readonly access: Exclude<Access, "operator">;
  readonly parameters?: readonly Parameter[];
  /** Name of the schema of its body. */
  readonly body?: string;
  /** Whether it may be left out. */
  readonly bodyIsOptional?: true;
  /** Another type that the body may have. */
  readonly bodyType?: string;
  readonly successes: readonly Success[];
  /** Errors of its own. */
  readonly errors?: readonly ErrorCode[];
}

/** The condition that lets a client keep what it has (RFC 9110 section 13.1.2). */
export const IF_NONE_MATCH: Parameter = {
  name: "If-None-Match",
  in: "header",
  description: "An ETag; 304 if the content still has it.",
  schema: { type: "string" },
};

/** The answer where the client has it already. */
export const NOT_MODIFIED: Success = {
  status: 304,
  description: "The client has it already",
  headers: ["ETag", "Cache-Control"],
};
