import { BoundedMap, monotonicNow, type MonotonicTime, msBetween } from "../base/mod.ts";
import { AGAIN, batched, retried, type Store, type Transactions } from "../engine/mod.ts";
import { Allowance, type AllowanceContext, type PermitRequest, UNDECIDED } from "./allowance.ts";
import { decodeState, type Holder, type Holders, type HolderState, stateKeys } from "./holder.ts";
import type { LimitMetrics } from "./metrics.ts";
import type { Decision, Usage } from "./usage.ts";

/** How often to check for allowances that have something to do, in ms. */
const TICK = 50;
const MAX_KNOWN = 20_000;
/** A refusal from memory is certain if the holder's rows were read within this time, in ms. */
const CERTAIN_FOR = 2_000;

/** Options of {@linkcode Permits}. */
export interface PermitsOptions<Of extends Holder> {
  readonly store: Store;
  readonly transactions: Transactions;
  readonly holders: Holders<Of>;
  /** The time, in ms since the epoch. */
  readonly clock: () => number;
  readonly metrics?: LimitMetrics;
  /** Called when a ban has begun. */
  readonly banned?: (id: string, until: number) => void;
}

/** The allowances of a process: one for each holder that it knows. */
export class Permits<Of extends Holder> {
  readonly #context: AllowanceContext<Of> & { isSettling: boolean };
  /** The most recently used, by holder ID. */
  readonly #known: BoundedMap<string, Allowance<Of>> = new BoundedMap(MAX_KNOWN);
  /** Those with something to write or to wait for, by holder ID. */
  readonly #active: Map<string, Allowance<Of>> = new Map();
  readonly #load: (id: string) => Promise<Allowance<Of> | undefined>;
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor({ store, transactions, holders, clock, metrics, banned }: PermitsOptions<Of>) {
    const { commits } = store;
    this.#context = {
      ...{ holders, transactions, commits, clock },
      isSettling: false,
      keep: (allowance) => this.#keep(allowance),
      banned(id, until) {
        metrics?.bans.add(1);
        banned?.(id, until);
      },
    };
    this.#load = batched(async (ids) => {
      const at = monotonicNow();
      const states = await Promise.allSettled(ids.map(async (id) => {
        return decodeState(holders, id, await store.getMany(stateKeys(holders, id)));
      }));
      return (index) => {
        const read = states[index];
        if (read?.status === "rejected") throw read.reason;
        return read?.value && this.learn(read.value, at);
      };
    });
  }

  /** A holder's allowance, if it is in memory. */
  of(id: string): Allowance<Of> | undefined {
    return this.#known.get(id) ?? this.#active.get(id);
  }

  /** Learns rows that were read at `at` or later. Returns the allowance. */
  learn(state: HolderState<Of>, at: MonotonicTime): Allowance<Of> {
    const { id } = state.holder;
    const known = this.of(id);
    known?.learn(state, at);
    const allowance = known ?? new Allowance(this.#context, state, at);
    this.#known.set(id, allowance);
    return allowance;
  }

  /**
   * Decides on a request that arrives now; undefined if there is no such holder, or if the credential does not open it.
   * Reads the holder if this process does not know it. Another process's change of the holder or its usage is noticed
   * within two seconds, or at once with `learn()`.
   *
   * @throws {StoreUnavailable}
   * @throws {CorruptRow}
   */
  admit(id: string, credential: string = ""): Promise<Decision | undefined> {
    const { clock, holders } = this.#context;
    const request = { credential, now: clock(), at: monotonicNow() };
    return retried(async () => {
      const known = this.of(id);
      const allowance = known && this.#isUsable(known, request) ? known : await this.#load(id);
      if (!allowance || !holders.isOpenedBy(allowance.holder, credential, request.now)) return undefined;
      const decision = allowance.decideFromMemory(request) ?? await allowance.decideInRun(request);
      return decision === UNDECIDED ? AGAIN : decision;
    });
  }

  /** Whether what is known is enough to decide on a request. A refusal needs rows that were read recently. */
  #isUsable(known: Allowance<Of>, request: PermitRequest): boolean {
    const { credential, now, at } = request;
    if (!known.isKnown) return false;
    if (msBetween(known.readAt, at) < CERTAIN_FOR) return true;
    return this.#context.holders.isOpenedBy(known.holder, credential, now) &&
      known.outlook(request) !== "refuse";
  }

  /** The usage in these rows, or in newer ones that are known, without permits that this process holds. */
  usageOf({ holder: { id }, usage, usageRow }: HolderState<Of>): Usage {
    return this.of(id)?.usageWithoutLease(usage, usageRow) ?? usage;
  }

  /** How many leases this process has, and how many permits are left in them. */
  count(): { leases: number; permits: number } {
    const leased = [...this.#active.values()].filter(({ isLeased }) => isLeased);
    return { leases: leased.length, permits: leased.reduce((sum, { left }) => sum + left, 0) };
  }

  /**
   * Gives every lease back, and writes refusals that are not in their rows yet. Requests that are waiting for permits of
   * other processes keep waiting.
   */
  async settle(): Promise<void> {
    this.#context.isSettling = true;
    await Promise.all([...this.#active.values()].map((allowance) => allowance.settle()));
    this.#context.isSettling = false;
    this.#forgetIdle();
  }

  /** Keeps an allowance until everything is in its row. */
  #keep(allowance: Allowance<Of>): void {
    this.#active.set(allowance.holder.id, allowance);
    this.#timer ??= setInterval(() => this.#tick(), TICK);
  }

  #tick(): void {
    for (const allowance of this.#active.values()) allowance.tick();
    this.#forgetIdle();
  }

  #forgetIdle(): void {
    for (const [id, { isActive }] of this.#active) if (!isActive) this.#active.delete(id);
    if (this.#active.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
