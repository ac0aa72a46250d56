import { StoreUnavailable } from "./deadline.ts";
import { pause } from "./retried.ts";
import type { Entry } from "./row.ts";

/** Puts checks and changes into an atomic operation. */
export type Build = (operation: Deno.AtomicOperation) => void;

/** What became of a commit: it applied; or a check failed and nothing did, and rows that were asked for. */
export type CommitResult =
  | { readonly ok: true; readonly versionstamp: string }
  | { readonly ok: false; readonly rows: readonly (Entry | null)[] };

/** It is not known whether a commit applied, or still will. */
export class CommitInDoubt extends StoreUnavailable {
  override readonly name = "CommitInDoubt";
  /**
   * Finds out, and sees to it that it stays so.
   *
   * @throws {StoreUnavailable}
   */
  readonly findOut: () => Promise<CommitResult>;

  constructor(findOut: () => Promise<CommitResult>, cause: unknown) {
    super("It is not known whether the commit applied", { cause });
    this.findOut = findOut;
  }
}

const PATIENCE = 10_000;
const PAUSE = 500;

/**
 * What a commit comes to, also where it is in doubt at first: for ten seconds it is tried anew to find that out.
 *
 * @throws {CommitInDoubt} when it cannot be found out.
 * @throws {StoreUnavailable} when it was not carried out.
 */
export async function certain(commit: Promise<CommitResult>): Promise<CommitResult> {
  try {
    return await commit;
  } catch (error) {
    if (!(error instanceof CommitInDoubt)) throw error;
    for (const end = performance.now() + PATIENCE; performance.now() < end;) {
      const result = await error.findOut().catch(() => undefined);
      if (result) return result;
      await pause(PAUSE);
    }
    throw error;
  }
}
