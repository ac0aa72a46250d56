import { assert } from "@std/assert";
import { DAY, MINUTE, SECOND } from "../../src/base/time.ts";
import type { Limits } from "../../src/limits/usage.ts";

/** A request that arrives within this time after the first refusal of a minute does not count toward a ban, in ms. */
const UNAWARE = 5_000;
/** A ban needs this many times as many strikes in a minute as the limit per minute. */
const STRIKES = 5;
/** The largest difference between the clocks of two processes, in ms. */
const SKEW = 10_000;

/** A period of time, including both ends. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** When something happens that has not happened. */
const NEVER: Span = { from: Infinity, to: Infinity };

/** An API key, and what responses have said about it. */
export interface Key {
  readonly text: string;
  /** When it was issued, at the earliest and the latest. */
  readonly issued: Span;
  /** When it was replaced, at the earliest and the latest; `to` is Infinity if that is not certain. */
  ended: Span;
  /** When it expires if it stays valid after that, by the clock of the process that gets the request. */
  grace: Span | undefined;
  /** What it allows if it is an added key. */
  readonly added?: AddedKey;
}

/** An added key: its ID, whether it can write, and when it expires by the processes' clocks. */
export interface AddedKey {
  readonly id: string;
  readonly canWrite: boolean;
  readonly expiresAt: number;
}

/** A response: the outcome of a request, and what it says about the limits. */
export interface Answer {
  /** Status, and error code if there is one. */
  readonly outcome: string;
  /** Seconds until the windows end; undefined if the response describes no windows of the account. */
  readonly untilReset: Limits | undefined;
  readonly headers: Headers;
  readonly text: string;
  /** Parses its body, whatever that is. */
  readonly json: <Body extends object>() => Body;
}

/** A request: when it was sent and got its response, and what the clocks showed. */
export interface Exchange extends Span {
  readonly key: Key;
  /** Since when what it shows may be out of date. */
  readonly since: number;
  /** If it was admitted, its key opened its account at this time or later. */
  readonly openFrom: number;
  /** The process's clock when the request arrived. */
  readonly clockThen: number;
  /** The range of the process's clock between the request and its response. */
  readonly clock: Span;
  /** Whether limits and bans may let it pass without a charge, because it rotates or revokes a key. */
  readonly maySpare: boolean;
  /** Whether its key allows its operation; undefined if that is not certain. */
  readonly isAllowed: boolean | undefined;
}

/** Faults so far that explain unexpected refusals. */
export interface Faults {
  /** A process crashed or lost contact with KV for long, so permits may be lost. */
  readonly losePermits: boolean;
  /** Commits failed, so requests may be refused. */
  readonly mayRefuse: boolean;
}

/** Reads a response. */
export async function answerOf(response: Response): Promise<Answer> {
  const { status, headers } = response;
  const text = await response.text();
  const outcome = status < 400 ? `${status}` : `${status} ${JSON.parse(text).code}`;
  const [, minute, day] =
    /"minute";r=\d+;t=(\d+), "day";r=\d+;t=(\d+)/.exec(headers.get("ratelimit") ?? "") ?? [];
  const untilReset = minute && day ? { minute: Number(minute), day: Number(day) } : undefined;
  return { outcome, untilReset, headers, text, json: () => JSON.parse(text) };
}

/** An account, and what responses have said about it. */
export class Customer {
  readonly id: string;
  /** The first keys, the current one last. */
  readonly keys: Key[] = [];
  readonly addedKeys: Key[] = [];
  /** Limits, and when they came into force. */
  readonly limits: { readonly from: number; readonly limits: Limits }[];
  /** Number of requests in flight during a reset, which may count before or after it. */
  slack = 0;
  wasReset = false;
  /** Number of requests in flight. */
  unanswered = 0;
  /** Number of requests that failed, which may have been charged. */
  failed = 0;
  /** When it was closed, at the earliest and the latest; `to` is Infinity if that is not certain. */
  closed = NEVER;
  isRemoved = false;
  /** Whether a client is changing its keys or closing it. */
  isChanging = false;
  /** When it was suspended and resumed, at the earliest and the latest. */
  readonly suspensions: { begun: Span; ended: Span }[] = [];
  /** A ban that a response confirmed: `from` in virtual time, `to` by the processes' clocks. */
  ban: Span | undefined;
  /** Number of admitted requests by window, and of refused ones that may count toward a ban by minute. */
  readonly #admitted: Map<string, number> = new Map();
  readonly #strikes: Map<string, number> = new Map();
  /** When the first refused request of each minute arrived. */
  readonly #firstRefused: Map<string, number> = new Map();
  #unbannedAt = -Infinity;
  #resetAt = -Infinity;
  readonly #faults: Faults;

  /** Faults are those so far. */
  constructor(id: string, key: string, limits: Limits, created: Span, faults: Faults) {
    this.id = id;
    this.#faults = faults;
    this.limits = [{ from: -Infinity, limits }];
    this.issue(key, created);
  }

  /** The current key. */
  get key(): Key {
    const key = this.keys.at(-1);
    assert(key);
    return key;
  }

  /** Number of requests admitted in a window. */
  count(window: string): number {
    return this.#admitted.get(window) ?? 0;
  }

  /**
   * Records a new first key. It replaces the earlier ones, one of which may stay valid for a grace period. Without one,
   * it ends the added keys, too.
   */
  issue(text: string, issued: Span, grace?: { readonly key: Key; readonly until: Span }): void {
    for (const key of this.keys) {
      if (key.ended.to < Infinity && key.grace === undefined) continue; // It is over.
      key.ended = { from: Math.min(issued.from, key.ended.from), to: issued.to };
      key.grace = key === grace?.key ? grace.until : undefined;
    }
    this.keys.push({ text, issued, ended: NEVER, grace: undefined });
    if (grace !== undefined) return;
    for (const key of this.addedKeys) {
      if (key.ended.to === Infinity) {
        key.ended = { from: Math.min(issued.from, key.ended.from), to: issued.to };
      }
    }
  }

  /** Records an added key. */
  add(text: string, issued: Span, added: AddedKey): void {
    this.addedKeys.push({ text, issued, ended: NEVER, grace: undefined, added });
  }

  /** Records that an added key is being revoked. Call the returned function with the time of success, or with none on failure. */
  beginRevocation(key: Key, from: number): (to?: number) => void {
    const before = key.ended;
    key.ended = { from: Math.min(from, before.from), to: before.to };
    return (to) =>
      void (key.ended = to === undefined ? before : { ...key.ended, to: Math.min(to, before.to) });
  }

  /** Records that a new first key may be issued from now on. The returned function takes that back. */
  beginRotation(from: number, graceSeconds: number): () => void {
    const keys = [...this.keys, ...(graceSeconds > 0 ? [] : this.addedKeys)];
    const before = keys.map((key) => ({ key, ended: key.ended }));
    for (const { key } of before) key.ended = { from: Math.min(from, key.ended.from), to: Infinity };
    return () => before.forEach(({ key, ended }) => key.ended = ended);
  }

  /** Records that it is being closed. Call the returned function with the time of success, or with none on failure. */
  beginClosing(from: number): (to?: number) => void {
    const before = this.closed;
    const begun = { from: Math.min(from, before.from), to: before.to };
    this.closed = begun;
    return (to) => {
      if (to !== undefined) this.closed = { ...begun, to: Math.min(to, this.closed.to) };
      else if (this.closed === begun) this.closed = before;
    };
  }

  /** Records that it is being suspended. Call the returned function with the time of the reply. */
  beginSuspension(from: number): (to: number) => void {
    const suspension = { begun: { from, to: Infinity }, ended: NEVER };
    this.suspensions.push(suspension);
    return (to) => void (suspension.begun = { from, to });
  }

  /** Records that it is being resumed. Call the returned function with the time of the reply. */
  endSuspensions(from: number): (to: number) => void {
    const open = this.suspensions.filter(({ ended }) => ended === NEVER);
    for (const suspension of open) suspension.ended = { from, to: Infinity };
    return (to) => open.forEach((suspension) => suspension.ended = { from, to });
  }

  /** Records a reset: earlier requests and refusals no longer count. */
  reset(now: number): void {
    this.wasReset = true;
    this.#resetAt = now;
    this.#admitted.clear();
    this.#strikes.clear();
    this.slack += this.unanswered + this.failed;
  }

  /** Records that an earlier ban no longer counts. */
  unban(now: number): void {
    this.ban = undefined;
    this.#unbannedAt = now;
  }

  /** Checks a response against earlier ones, and records it. */
  check({ outcome, untilReset }: Answer, exchange: Exchange): void {
    const { isAllowed } = exchange;
    assert(
      isAllowed !== false || !/^(2|304|409|412)/.test(outcome),
      `${outcome} although the key does not allow it`,
    );
    assert(isAllowed !== true || outcome !== "403 key_scope", "Refused although the key allows it");
    if (untilReset === undefined) return this.#checkUncharged(outcome, exchange);
    const full = /^429 rate_limit_(minute|day)$/.exec(outcome)?.[1];
    if (full === undefined && outcome !== "429 key_banned") {
      this.#checkOpen(exchange);
      if (exchange.maySpare) return void this.failed++;
    }
    const { since, from } = exchange;
    // A process with stale data may count it before the reset.
    if (since < from && since <= this.#resetAt && this.#resetAt <= from) this.slack++;
    if (outcome === "429 key_banned") return this.#checkBanned(untilReset, exchange);
    if (full === "minute" || full === "day") return this.#checkFull(full, untilReset, exchange);
    this.#checkAdmitted(untilReset, exchange);
  }

  #checkUncharged(outcome: string, { key, since, to, clock }: Exchange): void {
    if (/^429 (rotation|key_additions)_limit$/.test(outcome)) this.failed++; // It was charged, but its headers describe another limit.
    if (outcome === "401 invalid_api_key") {
      const isCurrent = key.ended.from > to ||
        (key.ended.to < Infinity && clock.to < (key.grace?.from ?? 0));
      // When it has expired by the clock of a process, that may have dropped it.
      const hasExpired = clock.to + SKEW >= (key.added?.expiresAt ?? Infinity);
      const isValid = isCurrent && !hasExpired && key.issued.to <= since && this.closed.from > to;
      assert(!isValid, "Refused with a key that was valid all the time");
    }
    if (outcome === "403 account_suspended") {
      const maySuspend = this.suspensions.some(({ begun, ended }) => begun.from <= to && ended.to >= since);
      assert(maySuspend, "Refused as suspended although the account was active all the time");
    }
  }

  /** Checks that the key may have opened the account when a request was admitted. */
  #checkOpen({ key, openFrom, to, clockThen }: Exchange): void {
    const mayBeCurrent = key.ended.to >= openFrom || clockThen < (key.grace?.to ?? 0);
    const hasExpired = clockThen >= (key.added?.expiresAt ?? Infinity);
    const mayBeValid = mayBeCurrent && !hasExpired && key.issued.from <= to && this.closed.to >= openFrom;
    assert(mayBeValid, "Admitted with a key that was invalid all the time");
    const isSuspended = this.suspensions.some(({ begun, ended }) => begun.to < openFrom && ended.from > to);
    assert(!isSuspended, "Admitted although the account was suspended all the time");
  }

  #checkAdmitted(untilReset: Limits, exchange: Exchange): void {
    const { clock, from, clockThen } = exchange;
    for (const unit of ["minute", "day"] as const) {
      const window = windowOf(unit, untilReset, clock);
      const count = this.count(window) + 1;
      this.#admitted.set(window, count);
      const most = Math.max(...this.#limitsIn(unit, exchange)) + this.slack;
      assert(count <= most, `Admitted ${count} of ${most} in ${window}`);
    }
    if (this.ban === undefined || this.#faults.losePermits || this.#faults.mayRefuse) return;
    // Other processes may use their leases for two more seconds.
    const isOver = clockThen >= this.ban.to || from <= this.ban.from + 5_000;
    assert(
      isOver,
      `Admitted at ${from} (${clockThen}) although banned from ${this.ban.from} to ${this.ban.to}`,
    );
  }

  #checkFull(unit: "minute" | "day", untilReset: Limits, exchange: Exchange): void {
    const { clock, from } = exchange;
    // Refusals of the minute count toward a ban, whichever window was full, if a client could already know of one.
    const minute = windowOf("minute", untilReset, clock);
    const first = Math.min(from, this.#firstRefused.get(minute) ?? Infinity);
    this.#firstRefused.set(minute, first);
    if (from > first + UNAWARE) this.#strikes.set(minute, (this.#strikes.get(minute) ?? 0) + 1);
    const window = windowOf(unit, untilReset, clock);
    if (this.#faults.losePermits || this.#faults.mayRefuse || this.wasReset) return;
    const least = Math.min(...this.#limitsIn(unit, exchange));
    const known = this.count(window) + this.unanswered + this.failed;
    assert(known >= least, `Refused with ${known} of ${least} in ${window}`);
  }

  #checkBanned({ minute: untilEnd }: Limits, { since, to, clock }: Exchange): void {
    const strikes = Math.max(0, ...this.#strikes.values()) + this.unanswered + this.slack + 1;
    const least = STRIKES * Math.min(...this.limits.map(({ limits }) => limits.minute));
    // The first refusal may have been that of a request that got 503.
    const isAllowed = this.ban || strikes >= least || this.wasReset || this.failed > 0;
    assert(isAllowed, `Banned after ${strikes} strikes of ${least}`);
    if (since > this.#unbannedAt) this.ban ??= { from: to, to: clock.from + (untilEnd - 1) * SECOND };
  }

  /** The limits in force at some time of an exchange. */
  #limitsIn(unit: "minute" | "day", { since, to }: Exchange): number[] {
    // Of two entries with the same time, either may have been in force.
    return this.limits.filter((entry, index) =>
      entry.from <= to && (this.limits[index + 1]?.from ?? Infinity) >= since
    ).map(({ limits }) => limits[unit]);
  }
}

/** The window that ends when a response says, by a clock in this range. */
function windowOf(unit: "minute" | "day", untilReset: Limits, clock: Span): string {
  const length = unit === "minute" ? MINUTE : DAY;
  const end = Math.floor((clock.to + untilReset[unit] * SECOND) / length) * length;
  const isPossible = end >= clock.from + (untilReset[unit] - 1) * SECOND;
  assert(isPossible, `The ${unit} ends in ${untilReset[unit]} s from ${clock.from} to ${clock.to}`);
  return `${unit} ${end - length}`;
}
