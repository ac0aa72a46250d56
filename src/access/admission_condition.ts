import { ApiError } from "../http/error.ts";
import type { Condition } from "../kv/watched.ts";
import type { Versions } from "../kv/versions.ts";

/** What a request is admitted on before anybody has looked: that no account has changed since somebody did. */
export class AdmissionCondition {
  /** For the commits that are made for the request. */
  readonly check: Condition;
  /** Takes the admission back, where the condition does not hold. */
  readonly takeBack: () => void;
  readonly #versions: Versions;

  constructor(check: Condition, versions: Versions, takeBack: () => void) {
    this.check = check;
    this.#versions = versions;
    this.takeBack = takeBack;
  }

  /**
   * What the work for a request comes to, if the condition has held since this time, by `performance.now()`.
   *
   * @throws {Outdated} where it has not; then nothing was changed.
   * @throws {StoreUnavailable}
   */
  async confirmed<Result>(work: () => Result | Promise<Result>, since: number): Promise<Result> {
    try {
      const result = await work();
      await this.#versions.confirm(this.check, since);
      return result;
    } catch (error) {
      // A refusal may be owed to what is no longer so; of other failures it is not known what they left behind.
      if (error instanceof ApiError) await this.#versions.confirm(this.check, since);
      throw error;
    }
  }
}
