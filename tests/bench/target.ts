import type { ServerProcess } from "./server_process.ts";

/** A server under measurement. */
export interface Target {
  /** Its column heading. */
  readonly name: string;
  readonly server: ServerProcess;
  readonly callers: Callers;
  /** Where its data is. */
  readonly folder: string;
}

/** Keys as a server knows them. */
export interface Callers {
  /** Keys whose limits are out of reach. */
  readonly ample: readonly string[];
  /** A key whose limit is one request. */
  readonly limited: string;
  /** Of the right form, but nobody's. */
  readonly unknown: string;
}
