/** Refusals in the minute that an account's usage counts, gathered before they are written to its row. */
export class Strikes {
  #count = 0;
  /** How many of them a proposal writes that is on its way. */
  #proposed = 0;
  /** When the first was gathered, by `performance.now()`. */
  #since = 0;

  /** How many there are. */
  get count(): number {
    return this.#count;
  }

  /** Gathers one more. */
  add(): void {
    if (this.#count++ === 0) this.#since = performance.now();
  }

  /** Whether they are to be written: a quarter of what is `left` to a ban, or the first is `life` ms old. */
  areDue(left: number, life: number): boolean {
    return this.#count > 0 && (this.#count * 4 > left || performance.now() - this.#since > life);
  }

  /** How many a proposal is to write. */
  propose(): number {
    return this.#proposed = this.#count;
  }

  /** The proposal was carried out. */
  seeWritten(): void {
    this.#count -= this.#proposed;
    this.#proposed = 0;
  }

  /** None of them counts any more, nor does what a proposal writes of them. */
  forget(): void {
    this.#count = this.#proposed = 0;
  }
}
