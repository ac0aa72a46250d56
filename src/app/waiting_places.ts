import { tooMany } from "../web/mod.ts";

/** How many requests may wait, and how many of one sender. */
const PLACES = { all: 1_000, ofSender: 10 } as const;

/** Places of requests that wait. If all are taken, the sender with the most gives one to a sender with fewer. */
export class WaitingPlaces {
  /** What ends each wait, and its sender, the oldest first. */
  readonly #taken: Map<AbortController, string> = new Map();

  /**
   * Waits in a place. The signal aborts if the client goes, or if the place is given to another sender.
   *
   * @throws {ApiError} `overloaded`
   */
  async run<Result>(
    sender: string,
    client: AbortSignal,
    wait: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    this.#makeRoom(sender);
    const end = new AbortController();
    this.#taken.set(end, sender);
    try {
      return await wait(AbortSignal.any([client, end.signal]));
    } finally {
      this.#taken.delete(end);
    }
  }

  #makeRoom(sender: string): void {
    const { all, ofSender } = PLACES;
    const bySender = Map.groupBy(this.#taken, ([, sender]) => sender);
    const own = bySender.get(sender)?.length ?? 0;
    if (own >= ofSender) throw tooMany(`requests of this account are waiting: ${ofSender} can at a time`);
    if (this.#taken.size < all) return;
    const [most = []] = [...bySender.values()].toSorted((one, other) => other.length - one.length);
    const [[oldest] = []] = most;
    // If one more were enough, two senders would take each other's places again and again.
    if (oldest === undefined || most.length < own + 2) throw tooMany("requests are waiting");
    this.#taken.delete(oldest);
    oldest.abort();
  }
}
