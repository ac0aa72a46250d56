import { assert } from "@std/assert";
import type { Limits } from "../../src/accounts/account.ts";

const MINUTE = 60_000;
const DAY = 86_400_000;

/** A stretch of time, both ends included, by the world's clock. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** An API key, and what is known of it from outside. */
export interface Key {
  readonly text: string;
  /** While it was issued. */
  readonly issued: Span;
  /** While it was ended, if it was; `to` is Infinity where it is not known whether it was. */
  ended: Span | undefined;
  /** When it opens the account no more nevertheless, by the clock of the process that is asked. */
  grace: Span | undefined;
}

/** What a response says of the limits. */
export interface Charge {
  /** Status, and error code if there is one. */
  readonly told: string;
  /** Seconds until the windows end; undefined where the address was charged, or nobody. */
  readonly untilReset: Limits | undefined;
}

/** What the model knows of the request that was answered. */
export interface Asked extends Span {
  readonly key: Key;
  /** The process's clock when it came. */
  readonly clockThen: number;
  /** What the process's clock showed between arrival and answer. */
  readonly clock: Span;
}

/** What recent charges are compared with. */
export interface Doubts {
  /** A process crashed, or was not heard of for long: places may be lost. */
  readonly isFaulty: boolean;
  /** Commits were refused, and so requests may be. */
  readonly mayRefuse: boolean;
}

const REFUSALS = ["429 rate_limit_minute", "429 rate_limit_day", "429 key_banned"];

/** Reads what a response says of the limits. */
export async function chargeOf(response: Response): Promise<Charge> {
  const problem = response.status < 400 ? undefined : await response.clone().json();
  const told = problem === undefined ? `${response.status}` : `${response.status} ${problem.code}`;
  const [, minute, day] = /"minute";r=\d+;t=(\d+), "day";r=\d+;t=(\d+)/
    .exec(response.headers.get("ratelimit") ?? "") ?? [];
  const untilReset = minute && day ? { minute: Number(minute), day: Number(day) } : undefined;
  return { told, untilReset };
}

/** Whether the account was charged and let in. */
function isAdmitted({ told, untilReset }: Charge): boolean {
  return untilReset !== undefined && !REFUSALS.includes(told);
}

/** An account, and what is known of it from outside. */
export class Customer {
  readonly id: string;
  readonly keys: Key[] = [];
  /** Limits, and when each came into force. */
  readonly limits: { readonly from: number; readonly limits: Limits }[];
  /** Requests that were under way during a reset, so that they may count before or after it. */
  slack = 0;
  wasReset = false;
  /** Requests that were not answered yet. */
  unanswered = 0;
  /** Requests that were answered with a failure, so that they may have been charged. */
  failed = 0;
  /** While it was closed; `to` is Infinity where that is not known. */
  closed: Span | undefined;
  isRemoved = false;
  /** Whether a client is about to change its own account. */
  isChanging = false;
  /** While it was suspended, and while it was resumed; the last may not be yet. */
  readonly suspensions: { begun: Span; ended: Span | undefined }[] = [];
  /** Since when, and until when by the processes' clocks, it is banned for certain, as it was told. */
  ban: Span | undefined;
  /** Admitted requests by window, and refused ones by minute. */
  readonly #admitted: Map<string, number> = new Map();
  readonly #refused: Map<number, number> = new Map();
  #unbannedAt = -Infinity;
  #resetAt = -Infinity;

  constructor(id: string, key: string, limits: Limits, made: Span) {
    this.id = id;
    this.limits = [{ from: -Infinity, limits }];
    this.issue(key, made);
  }

  /** The key that a client uses by rights. */
  get key(): Key {
    const key = this.keys.at(-1);
    assert(key);
    return key;
  }

  /** How many were admitted in a window. */
  count(window: string): number {
    return this.#admitted.get(window) ?? 0;
  }

  /** A new key takes the place of those before; one of them may stay valid for a while. */
  issue(text: string, issued: Span, grace?: { readonly key: Key; readonly until: Span }): void {
    for (const key of this.keys) {
      const isOver = key.ended !== undefined && key.ended.to < Infinity && key.grace === undefined;
      if (isOver) continue;
      key.ended = { from: Math.min(issued.from, key.ended?.from ?? Infinity), to: issued.to };
      key.grace = key === grace?.key ? grace.until : undefined;
    }
    this.keys.push({ text, issued, ended: undefined, grace: undefined });
  }

  /** A new key may be issued from now on. What it returns tells that it was not. */
  doubtKeys(from: number): () => void {
    const before = this.keys.map((key) => ({ key, ended: key.ended }));
    for (const key of this.keys) {
      key.ended = { from: Math.min(from, key.ended?.from ?? Infinity), to: Infinity };
    }
    return () => before.forEach(({ key, ended }) => key.ended = ended);
  }

  /** It may be closed from now on. What it returns tells when it was or, without a time, that it was not. */
  beginClosing(from: number): (to?: number) => void {
    const before = this.closed;
    const begun = { from: Math.min(from, before?.from ?? Infinity), to: before?.to ?? Infinity };
    this.closed = begun;
    return (to) => {
      if (to !== undefined) this.closed = { ...begun, to: Math.min(to, this.closed?.to ?? Infinity) };
      else if (this.closed === begun) this.closed = before;
    };
  }

  /** It is suspended from now on, at the latest when what it returns is called. */
  beginSuspension(from: number): (to: number) => void {
    const suspension = { begun: { from, to: Infinity }, ended: undefined };
    this.suspensions.push(suspension);
    return (to) => void (suspension.begun = { from, to });
  }

  /** Whatever suspensions there were end from now on, at the latest when what it returns is called. */
  endSuspensions(from: number): (to: number) => void {
    const open = this.suspensions.filter(({ ended }) => ended === undefined);
    for (const suspension of open) suspension.ended = { from, to: Infinity };
    return (to) => open.forEach((suspension) => suspension.ended = { from, to });
  }

  /** Whatever was used does not count any more. */
  reset(now: number): void {
    this.wasReset = true;
    this.#resetAt = now;
    this.#admitted.clear();
    this.#refused.clear();
    this.slack += this.unanswered + this.failed;
  }

  /** A ban that was told before does not count any more. */
  unban(now: number): void {
    this.ban = undefined;
    this.#unbannedAt = now;
  }

  /** Holds an answer against what is known, and takes note of it. */
  check(charge: Charge, asked: Asked, staleness: number, doubts: Doubts): void {
    const since = asked.from - staleness;
    const span = { from: since, to: asked.to };
    if (charge.untilReset === undefined) return this.#checkUncharged(charge, asked, span);
    if (isAdmitted(charge)) {
      assert(this.#mayOpen(asked, span), "Admitted with a key that was not valid at any time since it came");
      assert(this.#mayBeActive(span), "Admitted though the account was suspended all the time");
    }
    this.#checkLimits(charge, charge.untilReset, asked, span, doubts);
  }

  #checkUncharged({ told }: Charge, asked: Asked, span: Span): void {
    if (told === "401 invalid_api_key") {
      assert(!this.#isOpening(asked, span), "Refused with a key that was valid all the time since it came");
    }
    if (told === "403 account_suspended") {
      const maySuspend = this.suspensions.some(({ begun, ended }) =>
        begun.from <= span.to && (ended?.to ?? Infinity) >= span.from
      );
      assert(maySuspend, "Refused as suspended, which the account was not at any time since it came");
    }
  }

  #checkLimits(
    { told }: Charge,
    untilReset: Limits,
    { clock, from: arrived, clockThen }: Asked,
    span: Span,
    { isFaulty, mayRefuse }: Doubts,
  ): void {
    const inForce = this.#limitsIn(span);
    // By a view as old as it may be, it may count before the reset.
    const isStale = span.from < arrived;
    if (isStale && span.from <= this.#resetAt && this.#resetAt <= arrived) this.slack++;
    for (const unit of ["minute", "day"] as const) {
      const length = unit === "minute" ? MINUTE : DAY;
      const isFull = told === `429 rate_limit_${unit}`;
      const isRefused = told.startsWith("429") && REFUSALS.includes(told);
      if (isRefused && !isFull) continue;
      const window = `${unit} ${windowOf(untilReset[unit], clock, length)}`;
      if (!isRefused) {
        const count = this.count(window) + 1;
        this.#admitted.set(window, count);
        const most = Math.max(...inForce.map((limits) => limits[unit])) + this.slack;
        assert(count <= most, `${count} of ${most} in ${window}`);
      } else {
        // Whatever is full, a minute's refusals count together toward a ban.
        const minute = windowOf(untilReset.minute, clock, MINUTE);
        this.#refused.set(minute, (this.#refused.get(minute) ?? 0) + 1);
        if (isFaulty || mayRefuse || this.wasReset) continue;
        const least = Math.min(...inForce.map((limits) => limits[unit]));
        const known = this.count(window) + this.unanswered + this.failed;
        assert(known >= least, `Refused with ${known} of ${least} in ${window}`);
      }
    }
    if (told === "429 key_banned") {
      const refused = Math.max(0, ...this.#refused.values()) + this.unanswered + this.failed + this.slack + 1;
      const least = Math.min(...this.limits.map(({ limits }) => limits.minute));
      assert(this.ban || refused > least || this.wasReset, `Banned after ${refused} refusals of ${least}`);
      const to = clock.from + (untilReset.minute - 1) * 1_000;
      if (span.from > this.#unbannedAt) this.ban ??= { from: span.to, to };
    } else if (this.ban && !told.startsWith("429") && !isFaulty && !mayRefuse) {
      // What other processes have leased is theirs for two seconds more.
      const isOver = clockThen >= this.ban.to || arrived <= this.ban.from + 5_000;
      assert(
        isOver,
        `Admitted at ${arrived} though it was banned at ${this.ban.from} until ${this.ban.to}, at ${clockThen}`,
      );
    }
  }

  /** The limits in force at some time in between. */
  #limitsIn({ from, to }: Span): Limits[] {
    // Two entries of one time: either may have been.
    return this.limits.filter((entry, index) =>
      entry.from <= to && (this.limits[index + 1]?.from ?? Infinity) >= from
    ).map(({ limits }) => limits);
  }

  /** Whether the key may have opened the account at some time. */
  #mayOpen({ key, clockThen }: Asked, { from, to }: Span): boolean {
    const isInTime = key.ended === undefined || key.ended.to >= from || clockThen < (key.grace?.to ?? 0);
    return isInTime && key.issued.from <= to && (this.closed === undefined || this.closed.to >= from);
  }

  /** Whether the key certainly opened the account all the time. */
  #isOpening({ key, clockThen }: Asked, { from, to }: Span): boolean {
    const isInTime = key.ended === undefined || key.ended.from > to ||
      (key.ended.to < Infinity && clockThen < (key.grace?.from ?? 0));
    return isInTime && key.issued.to <= from && (this.closed === undefined || this.closed.from > to);
  }

  /** Whether it may have been active at some time. */
  #mayBeActive({ from, to }: Span): boolean {
    return !this.suspensions.some(({ begun, ended }) => begun.to < from && (ended?.from ?? Infinity) > to);
  }
}

/** The start of the window that ends in `seconds` by a clock that showed these times; windows have this length. */
function windowOf(seconds: number, clock: Span, length: number): number {
  const end = Math.floor((clock.to + seconds * 1_000) / length) * length;
  assert(
    end >= clock.from + (seconds - 1) * 1_000,
    `A window of ${length} ms ends in ${seconds} s from ${clock.from} to ${clock.to}`,
  );
  return end - length;
}
