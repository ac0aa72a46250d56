/** What may have become of something: the number it holds, or ABSENT. */
export type Outcome = number;

/** It is not there. */
export const ABSENT: Outcome = -1;

/** Something as it is stored. */
export interface Stored {
  readonly name: string;
  readonly value: number;
  /** Of an animal. */
  readonly id?: number;
}

/** What clients were told about things with unique names, held against what is stored. */
export class Ledger {
  /** Writes that were acknowledged. */
  acknowledged = 0;
  /** Things that differ from what clients were told. */
  lost = 0;
  /** Things that are there more than once. */
  doubled = 0;
  /** Ids that do not ascend, or came back. */
  wrongIds = 0;
  readonly #possible: Map<string, Set<Outcome>> = new Map();
  readonly #names: Map<number, string> = new Map();

  /** A write is sent: from now on, it may have been carried out. */
  send(name: string, outcome: Outcome): void {
    const possible = this.#possible.get(name) ?? new Set([ABSENT]);
    this.#possible.set(name, possible.add(outcome));
  }

  /** A write was acknowledged. */
  acknowledge(name: string, outcome: Outcome): void {
    this.acknowledged++;
    this.#possible.set(name, new Set([outcome]));
  }

  /** An animal has an id, for ever. */
  noteId(name: string, id: number): void {
    if ((this.#names.get(id) ?? name) !== name) this.wrongIds++;
    this.#names.set(id, name);
  }

  /** Holds everything against what is stored; what is stored now while nobody writes is certain. */
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
