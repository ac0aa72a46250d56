import { AnonymousLimiter } from "./anonymous.ts";
import { Authenticator } from "./authenticator.ts";
import { KeyStore } from "./key_store.ts";
import { Limiter, type LimiterOptions } from "./limiter.ts";
import type { Environment } from "./secret.ts";
import type { Verdict } from "./usage.ts";

/** Who called, and what the limits say of it. */
export interface Admission {
  /** Id of the valid key that was charged; undefined when the client address was. */
  readonly keyId: string | undefined;
  readonly verdict: Verdict;
}

/** What a gate stands on. */
export interface GateOptions extends LimiterOptions {
  readonly environment: Environment;
}

/** Charges every request to its API key or, without a valid one, to its client address. */
export class Gate {
  readonly #authenticator: Authenticator;
  readonly #limiter: Limiter;
  readonly #anonymous: AnonymousLimiter = new AnonymousLimiter();

  constructor(options: GateOptions) {
    this.#authenticator = new Authenticator(new KeyStore(options.store), options.environment);
    this.#limiter = new Limiter(options);
  }

  /**
   * Charges the request.
   *
   * @throws {StoreUnavailable}
   */
  async admit(authorization: string | null, address: () => string, now: number): Promise<Admission> {
    const claim = await this.#authenticator.identify(authorization);
    const verdict = claim && await this.#limiter.admit(claim);
    if (verdict) return { keyId: claim.keyId, verdict };
    return { keyId: undefined, verdict: this.#anonymous.take(address(), now) };
  }

  /** What the address has left without a key; charges nothing. */
  peek(address: string, now: number): Verdict {
    return this.#anonymous.peek(address, now);
  }
}
