import { monotonicNow, type MonotonicTime, msBetween, msSince, PAST, plus } from "../base/mod.ts";
import {
  encodeJson,
  type KnownRow,
  KV_DEADLINE,
  type Rows,
  type Store,
  StoreUnavailable,
  type Transactions,
  Unresolved,
  type Write,
} from "../engine/mod.ts";
import { decodeState, type Holder, type Holders, type HolderState, isLater, stateKeys } from "./holder.ts";
import { firstSeen, isLeaseOf, isOfChanged, type Known, mayComeBack, seen } from "./known.ts";
import {
  type Asking,
  type Debt,
  decideRun,
  detach,
  joined,
  type Lease,
  NO_DEBT,
  owing,
  type RunOutcome,
  spent,
  withoutRefusals,
} from "./lease.ts";
import { counted, merged, strikesToBan, withRefusal } from "./strikes.ts";
import {
  type Decision,
  decisionOn,
  encodeUsage,
  fullWindow,
  giveBack,
  type Limits,
  minuteOf,
  type Refusal,
  type Returned,
  roll,
  type Usage,
  usageKey,
} from "./usage.ts";
import { dayTotalKey, pastDay } from "./usage_days.ts";

/*
 * An allowance is what one process has for one holder: the holder's rows as last seen (`known.ts`), permits, refusals
 * that are not in the row yet, and waiting requests. A run carries out one transaction on the usage row. An allowance
 * has at most one run at a time. It begins one if requests are waiting, if the lease is low or over, or if permits or
 * refusals are owed.
 *
 * A permit is in one of these states:
 *
 *     state    where          what it becomes
 *     free     the row        left, if a run leases it. Used, if a run grants it to a waiting request.
 *     left     #lease.left    spent, by decideFromMemory(). Sent, by the run that ends the lease.
 *     spent    #lease.used    sent, by the next run
 *     owed     #debt          sent, by the next run
 *     sent     #sent          used or free in the row, by the run's commit
 *     used     the row        owed, but not leased, if giveBack() takes it back. Otherwise it stays used.
 *
 * The row counts a permit as used as soon as it is no longer free. It also counts it as leased in each state from left
 * to sent. Refusals from memory are owed, then sent, then counted in the row.
 *
 * A request waits in #queue until a run takes it into its batch. How a run can end, and what happens to its batch and
 * to #sent:
 *
 *     applied       Requests get their permit or their refusal, or wait in #queue for permits of other processes. #sent
 *                   is in the row. New permits go to the lease.
 *     no commit     Nothing had to be written. A request that arrived after the run began is not refused, because the
 *                   rows might be older than the request. It returns to #queue.
 *     not applied   Requests get the error. #sent returns to #debt, and is written later.
 *     unknown       Requests get the error. #sent is forgotten.
 *     no row        The holder no longer exists. Everything is forgotten. Requests get UNDECIDED, so their holder is read
 *                   again.
 *
 * Why no permit is used twice: a permit is in one state at a time, and can be handed out only while it is left. If
 * permits are forgotten, here or in a crash, the row counts them as used until the day ends. So it may count too many
 * permits, but never too few.
 *
 * Why no other permit is lost: within two seconds, a run sends what is spent or owed, and what is left of a lease that
 * is not in use.
 *
 * Why no refusal is wrong: memory refuses a request only if neither this process nor another one might still give a
 * permit back. Otherwise the request waits for a run. No permits are leased from a full window. So three seconds after
 * this process first saw a window full, other processes have given their permits back, unless they crashed.
 */

/** Maximum age of a lease from which permits are handed out, in ms. */
export const MAX_LEASE_AGE = 2_000;
/** Other processes give their permits back within this time after a window was first seen full, in ms, or never. */
export const RETURN_TIME = MAX_LEASE_AGE + 1_000;
/** If the last run is longer ago than this multiple of a lease's life, its requests do not predict the next ones. */
const RECENT = 1.25;
/** Pause after a failure before the next run that no request is waiting for, in ms. */
const PAUSE = 2_000;

/** A request for a permit. */
export interface PermitRequest extends Asking {
  /** The credential that opens the holder, such as a password. */
  readonly credential: string;
  /** When the request arrived. */
  readonly now: number;
  /** False once the request has failed for another reason, so that it is not charged any more. */
  readonly isAwaited?: () => boolean;
}

/** The result of a run that did not decide on a request. */
export const UNDECIDED: unique symbol = Symbol("undecided");

/** What the allowances of a process share. */
export interface AllowanceContext<Of extends Holder> {
  readonly holders: Holders<Of>;
  readonly transactions: Transactions;
  readonly commits: Store["commits"];
  readonly clock: () => number;
  /** Whether all permits are being given back. */
  readonly isSettling: boolean;
  /** Called if an allowance has something to write or to wait for, to make sure that `tick()` is called. */
  keep(allowance: Allowance<Of>): void;
  /** Called when a ban of a holder has begun. */
  banned(id: string, until: number): void;
}

/** A request that is waiting for a permit. */
interface Waiting extends Omit<PromiseWithResolvers<Decision | typeof UNDECIDED>, "promise">, PermitRequest {}

/** One holder's permits in one process. */
export class Allowance<Of extends Holder> {
  readonly #context: AllowanceContext<Of>;
  #known: Known<Of>;
  #lease: Lease | undefined;
  #debt: Debt = NO_DEBT;
  /** The debt that a run is writing. */
  #sent: Debt = NO_DEBT;
  #queue: Waiting[] = [];
  #running: Promise<void> | undefined;
  /** The last run's time; the permits that it granted, and those handed out since. */
  #lately = { since: PAST, granted: 0, handedOut: 0 };
  /** Until this time, no run begins unless a request is waiting. */
  #retryAt = PAST;

  /** The state was read at `at` or later. */
  constructor(context: AllowanceContext<Of>, state: HolderState<Of>, at: MonotonicTime) {
    this.#context = context;
    this.#known = firstSeen(state, at);
  }

  /** The holder, as last seen. */
  get holder(): Of {
    return this.#known.state.holder;
  }

  /** False after a failure, or if the holder no longer exists: it must be read again. */
  get isKnown(): boolean {
    return this.#known.seenAt > PAST;
  }

  /** The rows had the known state at this time or later. */
  get readAt(): MonotonicTime {
    return this.#known.readAt;
  }

  /** Whether there is something to write or to wait for. */
  get isActive(): boolean {
    return this.#owes || this.#queue.length > 0 || this.#running !== undefined;
  }

  /** Whether there is a lease. */
  get isLeased(): boolean {
    return this.#lease !== undefined;
  }

  /** Number of permits that can be handed out. */
  get left(): number {
    return this.#lease?.left ?? 0;
  }

  /**
   * The permits that the row counts as leased by this process. Undefined during a run, because the row may already be
   * as the run leaves it.
   */
  get held(): readonly Returned[] | undefined {
    return this.#running ? undefined : this.#leased.returned;
  }

  /**
   * What `decideFromMemory()` would do at `now`, which is also `at`:
   * admit a request or refuse it, or leave it to a transaction.
   */
  outlook({ now, at }: Pick<PermitRequest, "now" | "at">): "admit" | "refuse" | undefined {
    return this.#leaseAt(now, at) ? "admit" : this.#certainRefusal(now) && "refuse";
  }

  /** Decides on a request at `at`, which is now; undefined if only a transaction can decide. */
  decideFromMemory(request: Asking, at: MonotonicTime = monotonicNow()): Decision | undefined {
    const now = this.#context.clock();
    const lease = this.#leaseAt(now, at);
    if (lease === undefined) return this.#refuse(now, request);
    lease.used++;
    lease.left--;
    this.#lately.handedOut++;
    this.#context.keep(this);
    if (lease.left < lease.low) this.#start();
    const { holder, usage } = this.#known.state;
    return this.#decision(usage, holder.limits, lease.left, undefined, now);
  }

  /** The limits as this process knows them, for a request that is not charged. */
  peek(): Decision {
    const { usage, usageRow, holder: { limits } } = this.#known.state;
    const now = this.#context.clock();
    return decisionOn(this.usageWithoutLease(usage, usageRow), limits, 0, this.#certainRefusal(now), now);
  }

  /**
   * Resolves to the next run's decision. UNDECIDED means that it made none: look the holder up, and ask again.
   *
   * @throws {StoreUnavailable}
   */
  decideInRun(request: PermitRequest): Promise<Decision | typeof UNDECIDED> {
    const isFirst = this.#queue.length === 0;
    return new Promise((resolve, reject) => {
      this.#queue.push({ ...request, resolve, reject });
      this.#context.keep(this);
      // If others already wait for permits of other processes, the next tick starts a run.
      if (isFirst) this.#start();
    });
  }

  /** Gives back a used permit, in the epoch and minute of the decision that granted it. */
  giveBack({ epoch, minute }: Decision): void {
    this.#debt = owing(this.#debt, { epoch, minute: minuteOf(minute), size: 0, unused: 1 });
    this.#context.keep(this);
    if (this.#queue.length > 0) this.#start();
  }

  /** Begins a run if one is due. Call this every few dozen ms while the allowance is active. */
  tick(): void {
    if (this.#running === undefined && this.#isDue(this.#context.clock())) this.#start();
  }

  /** Writes everything, and resolves when that is done or has failed. The lease is given back if `isSettling`. */
  async settle(): Promise<void> {
    if (this.#owes) this.#start();
    await this.#running;
  }

  /**
   * Learns rows that were read at `at` or later. If the usage row is a later one and
   * not `isOwn`, another process has written it.
   */
  learn(state: HolderState<Of>, at: MonotonicTime, isOwn: boolean = false): void {
    if (isOfChanged(state, this.#known.state)) {
      this.#debt = withoutRefusals(this.#debt);
      this.#sent = withoutRefusals(this.#sent);
    }
    this.#known = seen(this.#known, state, at, isOwn);
  }

  /** The usage in this row or a newer known one, without permits that this process holds. */
  usageWithoutLease(usage: Usage, usageRow: HolderState<Of>["usageRow"]): Usage {
    const { state } = this.#known;
    // During a run, the row might already count the permits that it takes.
    const isNews = isLater(usageRow, state.usageRow) && this.#running === undefined;
    return this.#leased.returned.reduce(giveBack, isNews ? usage : state.usage);
  }

  get #owes(): boolean {
    const { returned, refusals } = this.#debt;
    return this.#lease !== undefined || returned.length > 0 || refusals.count > 0;
  }

  /** Everything that the row does not know yet. */
  get #unwritten(): Debt {
    return joined(this.#sent, this.#debt);
  }

  /** Everything that the row would not know if the lease ended now. */
  get #leased(): Debt {
    return this.#lease ? owing(this.#unwritten, detach(this.#lease)) : this.#unwritten;
  }

  get #isShared(): boolean {
    return monotonicNow() < this.#known.sharedUntil;
  }

  /**
   * Whether a lone request takes no lease, because there was none for so long that it may be the only one. It is worth
   * it where another commit takes less time than a lease is kept.
   */
  get #isQuiet(): boolean {
    return !this.#context.commits.isFar && msSince(this.#lately.since) > MAX_LEASE_AGE;
  }

  /** How long a lease is kept, in ms. A shared row is written less often, so that fewer commits conflict. */
  get #life(): number {
    const { ms } = this.#context.commits;
    const life = this.#isShared ? Math.max(1_000, 20 * ms) : Math.max(250, 8 * ms);
    return Math.min(life, Math.max(MAX_LEASE_AGE / 2, MAX_LEASE_AGE - 4 * ms));
  }

  /** The lease if it has a permit for a request at these times. */
  #leaseAt(now: number, at: MonotonicTime): Lease | undefined {
    const lease = this.#lease;
    if (lease === undefined || lease.left === 0) return undefined;
    const isOld = msBetween(lease.takenAt, at) > MAX_LEASE_AGE;
    return isOld || !isLeaseOf(lease, this.#known.state, now) ? undefined : lease;
  }

  #refuse(now: number, { at, isSpared }: Asking): Decision | undefined {
    const refusal = this.#certainRefusal(now);
    if (refusal === undefined) return undefined;
    const { usage, holder: { limits } } = this.#known.state;
    if (refusal !== "ban" && !isSpared) {
      const debt = { ...this.#debt, refusals: withRefusal(this.#debt.refusals, usage.minute, at) };
      const isStrike = debt.refusals.strikes > this.#debt.refusals.strikes;
      const { strikes } = merged(this.#sent.refusals, debt.refusals);
      // A transaction begins the ban.
      if (isStrike && usage.strikes + strikes >= strikesToBan(limits)) return undefined;
      this.#debt = debt;
      this.#context.keep(this);
    }
    return this.#decision(usage, limits, 0, refusal, now);
  }

  /** Why a request is certain to be refused: only time or a change of the holder can change that. */
  #certainRefusal(now: number): Refusal | undefined {
    const { state: { usage, holder: { limits } }, readAt } = this.#known;
    const current = roll(usage, now);
    if (current.bannedUntil > now) return "ban";
    const holds = this.#lease !== undefined || this.#unwritten.returned.length > 0;
    if (holds || current !== usage) return undefined;
    const window = fullWindow(usage, limits);
    return window && mayComeBack(this.#known, usage, window, readAt, RETURN_TIME) ? undefined : window;
  }

  #isDue(now: number): boolean {
    if (this.#queue.length > 0) return true;
    if (monotonicNow() < this.#retryAt) return false;
    const { returned, refusals } = this.#debt;
    if (returned.length > 0) return true;
    if (refusals.count > 0 && msSince(this.#lately.since) > this.#life) return true;
    const lease = this.#lease;
    return lease !== undefined && (lease.left < lease.low || this.#isOver(lease, this.#known.state, now));
  }

  #isOver(lease: Lease, state: HolderState<Of>, now: number): boolean {
    return this.#context.isSettling || msSince(lease.takenAt) > this.#life ||
      !isLeaseOf(lease, state, now);
  }

  #start(): void {
    this.#running ??= this.#runWhileDue();
  }

  /** Runs one transaction after another until none is due. A request that comes after that can start the next one. */
  async #runWhileDue(): Promise<void> {
    try {
      let isWaiting: boolean;
      do {
        isWaiting = await this.#run();
        if (isWaiting && this.#debt.returned.length === 0 && !this.#context.isSettling) return; // Until the next tick.
      } while (this.#context.isSettling ? this.#owes : this.#isDue(this.#context.clock()));
    } finally {
      this.#running = undefined; // Nothing can happen between the last question and this.
    }
  }

  /** Runs one transaction. Resolves to whether requests wait for permits to be given back. Never rejects. */
  async #run(): Promise<boolean> {
    const { transactions } = this.#context;
    const at = monotonicNow();
    const begun = this.#queue.length;
    const batch: Waiting[] = [];
    let run: Run<Of> | undefined;
    const mayBegin = () => {
      if (msSince(at) > KV_DEADLINE) throw new StoreUnavailable("Requests do not wait any longer");
    };
    try {
      const { rows } = await transactions.run({
        reads: this.#reads(),
        decide: (rows, write, now) => run = this.#writeRun(batch, rows, write, now),
      }, mayBegin);
      if (run === undefined) this.#drop(batch);
      else this.#apply(run, rows, { batch, begun, at });
      return run !== undefined && run.waiting.length > 0;
    } catch (error) {
      const isUnknown = error instanceof Unresolved && run !== undefined;
      this.#fail(batch, error, isUnknown ? NO_DEBT : this.#sent);
      return false;
    }
  }

  /** The rows that a run reads, or their known values. */
  #reads(): readonly (Deno.KvKey | KnownRow)[] {
    const { state: { holder: { id }, holderRow, usageRow }, seenAt } = this.#known;
    const keys = stateKeys(this.#context.holders, id);
    const isOld = msSince(seenAt) > this.#context.commits.ms / 2;
    if (this.#isShared && isOld) return keys;
    const entries = keys.length > 1 ? [holderRow, usageRow] : [usageRow];
    return keys.map((key, index) => ({ key, entry: entries[index] ?? null }));
  }

  /**
   * Decides what a run writes; undefined if the holder no longer exists. This is not a pure function: it moves waiting
   * requests to `batch`, and debts to `#sent`. If a row has changed, it is called again, and then adds to both.
   */
  #writeRun(batch: Waiting[], rows: Rows, write: Write, now: number): Run<Of> | undefined {
    batch.push(...this.#queue.splice(0));
    const { holders } = this.#context;
    const { id } = this.holder;
    const entries = stateKeys(holders, id).map((key) => rows.get(key));
    const state = decodeState(holders, id, entries, this.#known.state);
    if (state === undefined) return undefined;
    this.#giveUp(state, batch.length > 0, now);
    if (isOfChanged(state, this.#known.state)) this.#sent = withoutRefusals(this.#sent);
    const { usage, holder } = state;
    // After a change of the holder, requests wait again for permits of its full windows.
    const known = seen(this.#known, state, PAST, false);
    const isOpen = ({ credential, now, isAwaited }: Waiting) =>
      holders.isOpenedBy(holder, credential, now) && (isAwaited?.() ?? true);
    const { since, granted, handedOut } = this.#lately;
    const requests = batch.filter(isOpen);
    const isWanted = this.#lease !== undefined || requests.length > (this.#isQuiet ? 1 : 0);
    const takes = isWanted && !this.#context.isSettling;
    const outcome = decideRun(usage, holder.limits, {
      debt: this.#sent,
      requests,
      served: msSince(since) > RECENT * this.#life ? 0 : granted + handedOut,
      left: takes ? this.left : undefined,
      mayWait: (usage, window) => mayComeBack(known, usage, window, monotonicNow(), RETURN_TIME),
    }, now);
    if (outcome.isChange) {
      write.set(usageKey(id), encodeUsage(outcome.usage));
      const past = pastDay(outcome.paid, outcome.usage);
      if (past) write.set(dayTotalKey(past.day, id), encodeJson(past.total));
    }
    return { ...outcome, state, unknown: batch.filter((request) => !isOpen(request)), now };
  }

  /**
   * Moves what a run writes to `#sent`: all debts, and the used permits of the lease. Ends the lease in two cases:
   * requests are waiting, so it has run out; or it is over, and either is not in use or cannot be renewed.
   */
  #giveUp(state: HolderState<Of>, isWaitedFor: boolean, now: number): void {
    this.#sent = joined(this.#sent, this.#debt);
    this.#debt = { returned: [], refusals: counted(this.#debt.refusals) };
    const lease = this.#lease;
    if (lease === undefined) return;
    const { isSettling } = this.#context;
    const isInUse = this.#lately.handedOut > 0 && isLeaseOf(lease, state, now) &&
      state.usage.noLeasesUntil <= now && !isSettling;
    if (isWaitedFor || (this.#isOver(lease, state, now) && !isInUse)) {
      this.#sent = owing(this.#sent, detach(lease));
      this.#lease = undefined;
    } else {
      this.#sent = owing(this.#sent, spent(lease));
      lease.used = 0;
    }
  }

  /** Adopts the result of a run that is done, and the rows as they are after it. */
  #apply(
    run: Run<Of>,
    rows: readonly KnownRow[],
    { batch, begun, at }: { batch: readonly Waiting[]; begun: number; at: MonotonicTime },
  ): void {
    const { now, state, usage, granted, refused, waiting, unknown, isChange } = run;
    const { limits } = state.holder;
    this.#sent = NO_DEBT;
    this.learn(state, at);
    const after = decodeState(this.#context.holders, state.holder.id, rows.map(({ entry }) => entry), state);
    if (after) this.learn(after, at, true);
    this.#debt = { ...this.#debt, refusals: merged(this.#debt.refusals, counted(run.refusals)) };
    if (usage.bannedUntil > state.usage.bannedUntil) this.#context.banned(state.holder.id, usage.bannedUntil);
    this.#extendLease(run, limits);
    this.#lately = { since: monotonicNow(), granted: granted.length, handedOut: 0 };
    const { left } = this;
    granted.forEach(({ resolve }, index) =>
      resolve(this.#decision(usage, limits, left + granted.length - 1 - index, undefined, now))
    );
    // Without a commit, the rows might be older than requests that arrived after the run began.
    const early = isChange ? undefined : new Set(batch.slice(0, begun));
    const isAnswered = (request: Waiting) => early?.has(request) ?? true;
    for (const { request, refusal } of refused.filter(({ request }) => isAnswered(request))) {
      request.resolve(this.#decision(usage, limits, 0, refusal, now));
    }
    for (const { resolve } of unknown) resolve(UNDECIDED);
    const rest = [...waiting, ...refused.map(({ request }) => request).filter((one) => !isAnswered(one))];
    this.#queue.unshift(...rest);
    // Requests that arrived in the meantime can get a permit from the lease.
    if (this.#leaseAt(now, monotonicNow())) {
      for (const { resolve } of this.#queue.splice(0)) resolve(UNDECIDED);
    }
  }

  /** Handles a run that failed. `unwritten` is what it certainly did not write. */
  #fail(batch: readonly Waiting[], error: unknown, unwritten: Debt): void {
    this.#debt = joined(unwritten, this.#debt);
    this.#sent = NO_DEBT;
    this.#known = { ...this.#known, seenAt: PAST };
    this.#retryAt = plus(monotonicNow(), PAUSE);
    for (const { reject } of [...batch, ...this.#queue.splice(0)]) reject(error);
    if (this.#context.isSettling) this.#drop([]);
  }

  /** Drops everything, because the holder no longer exists, or nothing can be written any more. */
  #drop(batch: readonly Waiting[]): void {
    this.#lease = undefined;
    this.#debt = this.#sent = NO_DEBT;
    this.#known = { ...this.#known, seenAt: PAST };
    for (const { resolve } of [...batch, ...this.#queue.splice(0)]) resolve(UNDECIDED);
  }

  /** Adds permits to the lease, or begins one. A lease that was kept is one of the state that was decided on. */
  #extendLease({ usage: { epoch, minute }, ahead, isDenied }: Run<Of>, limits: Limits): void {
    const takenAt = monotonicNow();
    if (this.#lease) {
      const left = this.#lease.left + ahead;
      // If no more can be leased, it is not renewed again before it is over.
      Object.assign(this.#lease, { left, low: isDenied ? 0 : Math.floor(left / 2), takenAt });
    } else if (ahead > 0) {
      const low = Math.floor(ahead / 2);
      this.#lease = { epoch, minute, limits, left: ahead, used: 0, low, takenAt };
    }
  }

  #decision(usage: Usage, limits: Limits, left: number, refusal: Refusal | undefined, now: number): Decision {
    // Permits about to be given back count as free for an admitted request. A refused request could not get them.
    const known = refusal ? usage : this.#unwritten.returned.reduce(giveBack, usage);
    return decisionOn(known, limits, left, refusal, now);
  }
}

/** What a run does. */
interface Run<Of extends Holder> extends RunOutcome<Waiting> {
  /** Time of the decision. */
  readonly now: number;
  /** The rows that it has decided on. */
  readonly state: HolderState<Of>;
  /** Requests whose credential does not open the holder, or that have failed. */
  readonly unknown: readonly Waiting[];
}
