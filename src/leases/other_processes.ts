import type { FullWindow, Usage } from "../accounts/usage.ts";
import { LONGEST_LIFE } from "./held_leases.ts";

/** After so long, in ms, others have given back what they held, or never will. */
export const PATIENCE = LONGEST_LIFE + 1_000;
/** How long after another process wrote it a row counts as shared, in ms. */
const SHARED = 10_000;

/** What this process can tell of others that call on the same account. */
export class OtherProcesses {
  /** When the row was seen last, and until when it counts as written by others too. */
  #seenAt = 0;
  #sharedUntil = 0;
  /** When those are refused who wait for places that others hold; 0 when nobody does. */
  #waitsUntil = 0;
  /** End of the window that they wait for places of. */
  #awaitedWindow = 0;
  /** Until when (ms since the epoch) what others hold counts as used, for they did not give it back in time. */
  #lostUntil = 0;

  /** Whether requests wait for places that others hold. */
  get areAwaited(): boolean {
    return this.#waitsUntil > 0;
  }

  /** Takes note of the row, and whether another has written it. */
  seeRow(isTheirs: boolean): void {
    this.#seenAt = performance.now();
    if (isTheirs) this.#sharedUntil = this.#seenAt + SHARED;
  }

  /** Whether they have written the row recently. */
  get areActive(): boolean {
    return performance.now() < this.#sharedUntil;
  }

  /** Whether one of them is likely to have written the row since it was seen, `ms` or more ago. */
  mayHaveWritten(ms: number): boolean {
    return (this.areAwaited || this.areActive) && performance.now() - this.#seenAt > ms;
  }

  /** Whether at `now` (ms since the epoch) they still may give back places of a window. This process may hold none. */
  mayGiveBack({ leased, leasedToday }: Usage, window: FullWindow, now: number): boolean {
    return now >= this.#lostUntil && (window === "day" ? leasedToday : leased) > 0;
  }

  /** Waits, or goes on, for what they hold in a window that ends at `windowEnd`; false once that took too long. */
  awaitPlacesUntil(windowEnd: number): boolean {
    const time = performance.now();
    if (!this.areAwaited || windowEnd > this.#awaitedWindow) {
      this.#waitsUntil = time + PATIENCE;
      this.#awaitedWindow = windowEnd;
    }
    if (time < this.#waitsUntil) return true;
    this.#lostUntil = windowEnd;
    return false;
  }

  /** Nobody waits any more. */
  stopAwaiting(): void {
    this.#waitsUntil = 0;
  }
}
