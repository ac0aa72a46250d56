/** A possible state of an item: the number that it has, or ABSENT. */
export type Outcome = number;

/** The item does not exist. */
export const ABSENT: Outcome = -1;

/** An item as it is stored. */
export interface Stored {
  readonly name: string;
  readonly value: number;
  /** Only items of the collection have one. */
  readonly id?: number;
}

/** Records writes of items with unique names, and compares them with what is stored. */
export class Ledger {
  /** Number of acknowledged writes. */
  acknowledged = 0;
  /** Number of items whose stored state no write explains. */
  lost = 0;
  /** Number of items that are stored more than once. */
  doubled = 0;
  /** Number of IDs that were used again. */
  wrongIds = 0;
  readonly #possible: Map<string, Set<Outcome>> = new Map();
  readonly #names: Map<number, string> = new Map();

  /** Records that a write is being sent. From now on, it may have been applied. */
  send(name: string, outcome: Outcome): void {
    const possible = this.#possible.get(name) ?? new Set([ABSENT]);
    this.#possible.set(name, possible.add(outcome));
  }

  /** Records that a write was acknowledged. */
  acknowledge(name: string, outcome: Outcome): void {
    this.acknowledged++;
    this.#possible.set(name, new Set([outcome]));
  }

  /** Records the ID of an item. No other item may ever have it. */
  noteId(name: string, id: number): void {
    if ((this.#names.get(id) ?? name) !== name) this.wrongIds++;
    this.#names.set(id, name);
  }

  /** Compares all items with the stored ones. Call it while no client writes. Then the stored state is certain. */
  check(stored: readonly Stored[]): void {
    const found = new Map<string, number>();
    for (const { name, value, id } of stored) {
      if (found.has(name)) this.doubled++;
      found.set(name, value);
      if (id !== undefined) this.noteId(name, id);
      if (!this.#possible.has(name)) this.lost++;
    }
    for (const [name, possible] of this.#possible) {
      const outcome = found.get(name) ?? ABSENT;
      if (!possible.has(outcome)) this.lost++;
      if (outcome === ABSENT) this.#possible.delete(name);
      else this.#possible.set(name, new Set([outcome]));
    }
  }
}
