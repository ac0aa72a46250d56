import type { Decision } from "../accounts/usage.ts";

/** Requests a minute from an address without a valid key. */
export const LIMIT = 60;
const MINUTE = 60_000;
/** Maximum key lookups per second for a spent address. */
export const READS = 5;
const SECOND = 1_000;
/** If the clock is set back by fewer minutes than this, the current minute continues. */
const MAX_AHEAD = 5;

/**
 * Number of sets, and of counts in each set. A full set drops its oldest count or, among equally old ones, the
 * smallest.
 */
const SETS = 2 ** 11;
const WAYS = 8;
/** Number of bits from an address's hash that are stored with its count. */
const TAG_BITS = 23;

/** An address's count. */
interface Count {
  /** Minutes since the epoch. */
  readonly minute: number;
  readonly used: number;
  /** Second of the minute in which the spent address last caused a read. */
  readonly second: number;
  /** Number of reads in that second. */
  readonly reads: number;
}

/** Creates memory for the counts of one or more {@linkcode AnonymousLimiter}s. */
export function createCounts(): SharedArrayBuffer {
  const words = new BigUint64Array(new SharedArrayBuffer(8 * (SETS * WAYS + 1)));
  // The last word seeds the hash, so that clients cannot choose an address that shares another's count.
  words[SETS * WAYS] = BigInt(Math.floor(Math.random() * 2 ** 32));
  return words.buffer;
}

/**
 * Counts requests without a valid key by client address and minute, in memory that threads can share. A count is one
 * 64-bit word, so that it changes atomically. From the highest bit down, the word contains the minute, the requests,
 * the second, the reads, and a hash of the address, so a full set can drop its smallest word.
 */
export class AnonymousLimiter {
  readonly #words: BigUint64Array;
  readonly #seed: number;

  constructor(counts: SharedArrayBuffer = createCounts()) {
    this.#words = new BigUint64Array(counts);
    this.#seed = Number(this.#words[SETS * WAYS]);
  }

  /** Counts a request, or refuses it if the address is spent. */
  take(address: string, now: number): Decision {
    const before = this.#change(
      address,
      now,
      (count) => count.used < LIMIT ? { ...count, used: count.used + 1 } : count,
    );
    return before.used < LIMIT
      ? decision({ ...before, used: before.used + 1 }, now)
      : decision(before, now, "minute");
  }

  /** Whether the address has used all its requests for the minute. */
  isSpent(address: string, now: number): boolean {
    return this.#change(address, now).used >= LIMIT;
  }

  /** Takes one of a spent address's reads; false if none is left in this second. */
  takeRead(address: string, now: number): boolean {
    const second = Math.floor(now % MINUTE / SECOND);
    const readsIn = (count: Count) => count.second === second ? count.reads : 0;
    const before = this.#change(
      address,
      now,
      (count) => readsIn(count) < READS ? { ...count, second, reads: readsIn(count) + 1 } : count,
    );
    return readsIn(before) < READS;
  }

  /** An address's limits, without counting a request. */
  peek(address: string, now: number): Decision {
    return decision(this.#change(address, now), now);
  }

  /** Changes an address's count to the result of `change`, if that differs. Returns the previous count. */
  #change(address: string, now: number, change: (count: Count) => Count = (count) => count): Count {
    const { first, tag } = placeOf(address, this.#seed);
    // Repeated if another thread has changed the same word.
    while (true) {
      const { index, word } = this.#find(first, tag, now);
      const before = currentCount(word, tag, now);
      const after = change(before);
      if (
        after === before || Atomics.compareExchange(this.#words, index, word, wordOf(after, tag)) === word
      ) {
        return before;
      }
    }
  }

  /** The word for the address with this tag, or the word to replace. */
  #find(first: number, tag: bigint, now: number): { index: number; word: bigint } {
    const ahead = wordOf(newCount(now + MAX_AHEAD * MINUTE), 0n);
    let dropped = { index: first, word: 0n, rank: ahead };
    for (let index = first; index < first + WAYS; index++) {
      const word = Atomics.load(this.#words, index);
      if (tagIn(word) === tag) return { index, word };
      const rank = word < ahead ? word : 0n;
      if (rank < dropped.rank) dropped = { index, word, rank };
    }
    return dropped;
  }
}

/** Where an address's count is: the index of the first word in its set, and the address's tag. */
function placeOf(address: string, seed: number): { first: number; tag: bigint } {
  let [one, other] = [seed, ~seed];
  for (let index = 0; index < address.length; index++) {
    const code = address.charCodeAt(index);
    // FNV-1a, twice, with different primes.
    one = Math.imul(one ^ code, 0x01000193);
    other = Math.imul(other ^ code, 0x85ebca6b);
  }
  return { first: (one >>> 8) % SETS * WAYS, tag: BigInt(other >>> (32 - TAG_BITS)) };
}

function newCount(now: number): Count {
  return { minute: Math.floor(now / MINUTE), used: 0, second: 0, reads: 0 };
}

function wordOf({ minute, used, second, reads }: Count, tag: bigint): bigint {
  return BigInt(((minute * 64 + used) * 64 + second) * 8 + reads) << BigInt(TAG_BITS) | tag;
}

function tagIn(word: bigint): bigint {
  return BigInt.asUintN(TAG_BITS, word);
}

/** The count in a word, or a new one if the word is for another address or a past minute. */
function currentCount(word: bigint, tag: bigint, now: number): Count {
  const bits = Number(word >> BigInt(TAG_BITS));
  const count = {
    minute: Math.floor(bits / (64 * 64 * 8)),
    used: Math.floor(bits / (64 * 8)) % 64,
    second: Math.floor(bits / 8) % 64,
    reads: bits % 8,
  };
  const ahead = count.minute - newCount(now).minute;
  return tagIn(word) === tag && ahead >= 0 && ahead < MAX_AHEAD ? count : newCount(now);
}

function decision({ minute, used }: Count, now: number, refusal?: "minute"): Decision {
  const window = { limit: LIMIT, remaining: LIMIT - used, reset: (minute + 1) * MINUTE };
  return { refusal, minute: window, day: undefined, now };
}
