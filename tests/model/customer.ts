import type { Limits } from "../../src/limits/usage.ts";
import { assert } from "@std/assert";

const MINUTE = 60_000;
const DAY = 86_400_000;
/** A request that arrives within this time after the first refusal of a minute does not count toward a ban, in ms. */
const UNAWARE = 5_000;
/** A ban needs this many times as many strikes in a minute as the limit per minute. */
const STRIKES = 5;

/** A period of time, including both ends. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** An API key, and what responses have said about it. */
export interface Key {
  readonly text: string;
  /** When it was issued, at the earliest and the latest. */
  readonly issued: Span;
  /** When it was replaced, at the earliest and the latest; `to` is Infinity if that is not certain. */
  ended: Span | undefined;
  /** When it expires if it stays valid after that, by the clock of the process that gets the request. */
  grace: Span | undefined;
}

/** The outcome of a request, and what its response says about the limits. */
export interface Charge {
  /** Status, and error code if there is one. */
  readonly outcome: string;
  /** Seconds until the windows end; undefined if the response describes no windows of the account. */
  readonly untilReset: Limits | undefined;
}

/** A request: when it was sent and got its response, and what the clocks showed. */
export interface Exchange extends Span {
  readonly key: Key;
  /** If it was admitted, its key opened its account at this time or later. */
  readonly openFrom: number;
  /** The process's clock when the request arrived. */
  readonly clockThen: number;
  /** The range of the process's clock between the request and its response. */
  readonly clock: Span;
  /** Whether limits and bans may let it pass without a charge, because it rotates a key. */
  readonly maySpare: boolean;
}

/** Faults so far that explain unexpected refusals. */
export interface Faults {
  /** A process crashed or lost contact with KV for long, so permits may be lost. */
  readonly losePermits: boolean;
  /** Commits failed, so requests may be refused. */
  readonly mayRefuse: boolean;
}

const REFUSALS = ["429 rate_limit_minute", "429 rate_limit_day", "429 key_banned"];

/** Reads the outcome and the limits from a response. */
export async function chargeOf(response: Response): Promise<Charge> {
  const problem = response.status < 400 ? undefined : await response.clone().json();
  const outcome = problem === undefined ? `${response.status}` : `${response.status} ${problem.code}`;
  const [, minute, day] = /"minute";r=\d+;t=(\d+), "day";r=\d+;t=(\d+)/
    .exec(response.headers.get("ratelimit") ?? "") ?? [];
  const untilReset = minute && day ? { minute: Number(minute), day: Number(day) } : undefined;
  return { outcome, untilReset };
}

/** Whether the account was charged, and the request admitted. */
function isAdmitted({ outcome, untilReset }: Charge): boolean {
  return untilReset !== undefined && !REFUSALS.includes(outcome);
}

/** An account, and what responses have said about it. */
export class Customer {
  readonly id: string;
  readonly keys: Key[] = [];
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
  closed: Span | undefined;
  isRemoved = false;
  /** Whether a client is rotating its key or closing it. */
  isChanging = false;
  /** When it was suspended and resumed, at the earliest and the latest. */
  readonly suspensions: { begun: Span; ended: Span | undefined }[] = [];
  /** A ban that a response confirmed: `from` in virtual time, `to` by the processes' clocks. */
  ban: Span | undefined;
  /** Number of admitted requests by window, and of refused ones that may count toward a ban by minute. */
  readonly #admitted: Map<string, number> = new Map();
  readonly #strikes: Map<number, number> = new Map();
  /** When the first refused request of each minute arrived. */
  readonly #firstRefused: Map<number, number> = new Map();
  #unbannedAt = -Infinity;
  #resetAt = -Infinity;

  constructor(id: string, key: string, limits: Limits, created: Span) {
    this.id = id;
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

  /** Records a new key. It replaces the earlier ones, one of which may stay valid for a grace period. */
  issue(text: string, issued: Span, grace?: { readonly key: Key; readonly until: Span }): void {
    for (const key of this.keys) {
      const isOver = key.ended !== undefined && key.ended.to < Infinity && key.grace === undefined;
      if (isOver) continue;
      key.ended = { from: Math.min(issued.from, key.ended?.from ?? Infinity), to: issued.to };
      key.grace = key === grace?.key ? grace.until : undefined;
    }
    this.keys.push({ text, issued, ended: undefined, grace: undefined });
  }

  /** Records that a new key may be issued from now on. The returned function takes that back. */
  beginRotation(from: number): () => void {
    const before = this.keys.map((key) => ({ key, ended: key.ended }));
    for (const key of this.keys) {
      key.ended = { from: Math.min(from, key.ended?.from ?? Infinity), to: Infinity };
    }
    return () => before.forEach(({ key, ended }) => key.ended = ended);
  }

  /** Records that it is being closed. Call the returned function with the time of success, or with none on failure. */
  beginClosing(from: number): (to?: number) => void {
    const before = this.closed;
    const begun = { from: Math.min(from, before?.from ?? Infinity), to: before?.to ?? Infinity };
    this.closed = begun;
    return (to) => {
      if (to !== undefined) this.closed = { ...begun, to: Math.min(to, this.closed?.to ?? Infinity) };
      else if (this.closed === begun) this.closed = before;
    };
  }

  /** Records that it is being suspended. Call the returned function with the time of the reply. */
  beginSuspension(from: number): (to: number) => void {
    const suspension = { begun: { from, to: Infinity }, ended: undefined };
    this.suspensions.push(suspension);
    return (to) => void (suspension.begun = { from, to });
  }

  /** Records that it is being resumed. Call the returned function with the time of the reply. */
  endSuspensions(from: number): (to: number) => void {
    const open = this.suspensions.filter(({ ended }) => ended === undefined);
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
  check(charge: Charge, exchange: Exchange, staleness: number, faults: Faults): void {
    const since = exchange.from - staleness;
    const span = { from: since, to: exchange.to };
    if (charge.untilReset === undefined) return this.#checkUncharged(charge, exchange, span);
    if (isAdmitted(charge)) {
      const open = { from: exchange.openFrom, to: exchange.to };
      assert(this.#mayBeValid(exchange, open), "Admitted with a key that was invalid all the time");
      assert(this.#mayBeActive(open), "Admitted although the account was suspended all the time");
      if (exchange.maySpare) return void this.failed++;
    }
    this.#checkLimits(charge, charge.untilReset, exchange, span, faults);
  }

  #checkUncharged({ outcome }: Charge, exchange: Exchange, span: Span): void {
    if (outcome === "429 rotation_limit") this.failed++; // It was charged, but its headers describe another limit.
    if (outcome === "401 invalid_api_key") {
      assert(!this.#isValid(exchange, span), "Refused with a key that was valid all the time");
    }
    if (outcome === "403 account_suspended") {
      const maySuspend = this.suspensions.some(({ begun, ended }) =>
        begun.from <= span.to && (ended?.to ?? Infinity) >= span.from
      );
      assert(maySuspend, "Refused as suspended although the account was active all the time");
    }
  }

  #checkLimits(
    { outcome }: Charge,
    untilReset: Limits,
    { clock, from: arrived, clockThen }: Exchange,
    span: Span,
    { losePermits, mayRefuse }: Faults,
  ): void {
    const inForce = this.#limitsIn(span);
    // A process with stale data may count it before the reset.
    const isStale = span.from < arrived;
    if (isStale && span.from <= this.#resetAt && this.#resetAt <= arrived) this.slack++;
    for (const unit of ["minute", "day"] as const) {
      const length = unit === "minute" ? MINUTE : DAY;
      const isFull = outcome === `429 rate_limit_${unit}`;
      const isRefused = outcome.startsWith("429") && REFUSALS.includes(outcome);
      if (isRefused && !isFull) continue;
      const window = `${unit} ${windowOf(untilReset[unit], clock, length)}`;
      if (!isRefused) {
        const count = this.count(window) + 1;
        this.#admitted.set(window, count);
        const most = Math.max(...inForce.map((limits) => limits[unit])) + this.slack;
        assert(count <= most, `Admitted ${count} of ${most} in ${window}`);
      } else {
        // Refusals of the minute count toward a ban, whichever window was full, if a client could already know of one.
        const minute = windowOf(untilReset.minute, clock, MINUTE);
        const first = Math.min(arrived, this.#firstRefused.get(minute) ?? Infinity);
        this.#firstRefused.set(minute, first);
        if (arrived > first + UNAWARE) this.#strikes.set(minute, (this.#strikes.get(minute) ?? 0) + 1);
        if (losePermits || mayRefuse || this.wasReset) continue;
        const least = Math.min(...inForce.map((limits) => limits[unit]));
        const known = this.count(window) + this.unanswered + this.failed;
        assert(known >= least, `Refused with ${known} of ${least} in ${window}`);
      }
    }
    if (outcome === "429 key_banned") {
      const strikes = Math.max(0, ...this.#strikes.values()) + this.unanswered + this.slack + 1;
      const least = STRIKES * Math.min(...this.limits.map(({ limits }) => limits.minute));
      // The first refusal may have been that of a request that got 503.
      const isAllowed = this.ban || strikes >= least || this.wasReset || this.failed > 0;
      assert(isAllowed, `Banned after ${strikes} strikes of ${least}`);
      const to = clock.from + (untilReset.minute - 1) * 1_000;
      if (span.from > this.#unbannedAt) this.ban ??= { from: span.to, to };
    } else if (this.ban && !outcome.startsWith("429") && !losePermits && !mayRefuse) {
      // Other processes may use their leases for two more seconds.
      const isOver = clockThen >= this.ban.to || arrived <= this.ban.from + 5_000;
      assert(
        isOver,
        `Admitted at ${arrived} (${clockThen}) although banned at ${this.ban.from} until ${this.ban.to}`,
      );
    }
  }

  /** The limits in force at some time of the span. */
  #limitsIn({ from, to }: Span): Limits[] {
    // Of two entries with the same time, either may have been in force.
    return this.limits.filter((entry, index) =>
      entry.from <= to && (this.limits[index + 1]?.from ?? Infinity) >= from
    ).map(({ limits }) => limits);
  }

  /** Whether the key may have been valid at some time of the span. */
  #mayBeValid({ key, clockThen }: Exchange, { from, to }: Span): boolean {
    const isInTime = key.ended === undefined || key.ended.to >= from || clockThen < (key.grace?.to ?? 0);
    return isInTime && key.issued.from <= to && (this.closed === undefined || this.closed.to >= from);
  }

  /** Whether the key was certainly valid during the whole span. */
  #isValid({ key, clockThen }: Exchange, { from, to }: Span): boolean {
    const isInTime = key.ended === undefined || key.ended.from > to ||
      (key.ended.to < Infinity && clockThen < (key.grace?.from ?? 0));
    return isInTime && key.issued.to <= from && (this.closed === undefined || this.closed.from > to);
  }

  /** Whether the account may have been active at some time of the span. */
  #mayBeActive({ from, to }: Span): boolean {
    return !this.suspensions.some(({ begun, ended }) => begun.to < from && (ended?.from ?? Infinity) > to);
  }
}

/** The start of the window of this length that ends in `seconds` by a clock in this range. */
function windowOf(seconds: number, clock: Span, length: number): number {
  const end = Math.floor((clock.to + seconds * 1_000) / length) * length;
  assert(
    end >= clock.from + (seconds - 1) * 1_000,
    `A window of ${length} ms ends in ${seconds} s from ${clock.from} to ${clock.to}`,
  );
  return end - length;
}
