import { Outdated, type VersionCheck, type Versions } from "../store/versions.ts";
import { ApiError } from "../http/error.ts";
import type { ProvisionalDecision } from "../leases/leases.ts";

/** An admission by what is in memory, without a look: a commit or a look has to confirm it. */
export class Provisional {
  /** For the commits that are made for the request. */
  readonly check: VersionCheck;
  /** What was decided: kept or taken back, once. */
  readonly place: ProvisionalDecision;
  readonly #versions: Versions;

  constructor(check: VersionCheck, versions: Versions, place: ProvisionalDecision) {
    this.check = check;
    this.place = place;
    this.#versions = versions;
  }

  /**
   * What the work for a request comes to that arrived at `since`, by `performance.now()`, if no account has changed.
   *
   * @throws {Outdated} where one has; then nothing was changed.
   * @throws {StoreUnavailable}
   */
  async confirmed<Result>(work: () => Result | Promise<Result>, since: number): Promise<Result> {
    try {
      const result = await work();
      await this.#confirm(since);
      return result;
    } catch (error) {
      // A refusal may be owed to what is no longer so; of other failures it is not known what they left behind.
      if (error instanceof ApiError) await this.#confirm(since);
      throw error;
    }
  }

  async #confirm(since: number): Promise<void> {
    if (this.check.heldSince(since)) return;
    await this.#versions.check();
    if (!this.check.holds) throw new Outdated();
  }
}
