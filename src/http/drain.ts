/**
 * Lets requests end before a server shuts down: `Deno.HttpServer.shutdown()` cuts off request bodies that
 * are still arriving.
 *
 * @example
 * ```ts
 * import { assert } from "@std/assert";
 *
 * const drain = new Drain();
 * drain.enter();
 * const stopped = drain.stop();
 * assert(drain.stopping);
 * drain.leave();
 * await stopped;
 * ```
 */
export class Drain {
  /** Whether further requests are to be turned away. */
  stopping: boolean = false;
  #answering = 0;
  readonly #empty: PromiseWithResolvers<void> = Promise.withResolvers();

  /** Counts a request that is now being answered. */
  enter(): void {
    this.#answering++;
  }

  /** Counts off a request that was answered. */
  leave(): void {
    this.#answering--;
    this.#settle();
  }

  /** Resolves once no request is being answered. */
  stop(): Promise<void> {
    this.stopping = true;
    this.#settle();
    return this.#empty.promise;
  }

  #settle(): void {
    if (this.stopping && this.#answering === 0) this.#empty.resolve();
  }
}
