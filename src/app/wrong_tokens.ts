import { SECOND } from "../base/mod.ts";
import type { Log } from "./log.ts";

/** Logs wrong operator tokens: at most one line a second, with their number since the line before. */
export class WrongTokens {
  readonly #log: Pick<Log, "event">;
  readonly #clock: () => number;
  #count = 0;
  #address = "";
  /** Undefined if a line may be written. */
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `clock` returns the time in ms since the epoch. */
  constructor(log: Pick<Log, "event">, clock: () => number) {
    this.#log = log;
    this.#clock = clock;
  }

  /** Counts a wrong token from a client address. */
  count(address: string): void {
    this.#count++;
    this.#address = address;
    if (this.#timer === undefined) this.#writeAndWait();
  }

  /** Writes what has not been written yet. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#count > 0) this.#write();
  }

  #writeAndWait(): void {
    this.#write();
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (this.#count > 0) this.#writeAndWait();
    }, SECOND);
  }

  #write(): void {
    const time = new Date(this.#clock()).toISOString();
    this.#log.event({ time, event: "wrong_token", address: this.#address, count: this.#count });
    this.#count = 0;
  }
}
