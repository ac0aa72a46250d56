import { assert, assertEquals } from "@std/assert";
import { accountKey } from "../../src/accounts/account.ts";
import { sweepAll } from "../../src/app/sweeper.ts";
import { DAY, dayOf, MINUTE, pause, SECOND } from "../../src/base/time.ts";
import { decodeJson } from "../../src/engine/row.ts";
import { decodeUsage, type Limits, usageKey } from "../../src/limits/usage.ts";
import { dayTotalKey } from "../../src/limits/usage_days.ts";
import { JSON_TYPE } from "../support/client.ts";
import { operate, type Outcome } from "../support/desk.ts";
import { FakeKv } from "../support/fake_kv.ts";
import { findFaults } from "../support/stored_rows.ts";
import { HAMMER, OF_THINGS, type Thing } from "../support/things.ts";
import { seededRandom, VirtualTime } from "../support/time.ts";
import { type Answer, answerOf, Customer, type Exchange, type Key, type Span } from "./customer.ts";
import { Expectations, type Known, textOf } from "./expectations.ts";
import { type Deployment, Process, START } from "./process.ts";
import { type Command, LIMITS, type Operation, PROCESSES, type RequestStep, type Step } from "./steps.ts";

const STATES = ["new", "used", "lost"] as const;
/** Errors that may be logged: failures of KV. */
const STORE_FAILURE = /^(StoreUnavailable|DeadlineExceeded|CommitInDoubt|Unresolved|OutOfTime)/;
const DECODER = new TextDecoder();
/** When everything has expired, in ms after the start. */
const LONG_AFTER = 100 * DAY;
/** Tables with rows that do not expire. Those of commits are the markers of the process that has swept the others. */
const KEPT = /^(account_references|accounts|api_keys|commits|ids|items|items_by|schema|usage|versions)$/;
/** If a body arrives longer than this after its headers, its account is checked again, in ms. */
const SLOW_BODY = 1_000;
const NOT_FOUND = "404 thing_not_found";
const ROTATION = "POST /v1/account/key";
const CLOSING = "DELETE /v1/account";
const ADDITION = "POST /v1/account/keys";
const REVOCATION = "DELETE /v1/account/keys/";

/** A request to send, and how its response is checked. */
interface Call {
  readonly target: string;
  readonly headers?: Record<string, string>;
  readonly json?: object;
  /** A name that only this request gives. */
  readonly only?: string;
  readonly answered?: (answer: Answer, exchange: Exchange) => void;
  /** Called if it got 503 or no response, so it may have been carried out. */
  readonly lost?: (span: Span) => void;
}

/**
 * Three processes of the service on one KV, in virtual time. Clients and an operator send them HTTP requests; every
 * response is checked against the earlier ones.
 */
export class World implements AsyncDisposable {
  readonly #time: VirtualTime = new VirtualTime();
  readonly #random = Math.random;
  readonly #kv: FakeKv = new FakeKv();
  readonly #deployment: Deployment;
  /** The processes of each index, the current one last. Those before it were stopped or killed. */
  readonly #processes: readonly Process[][];
  /** A process without faults, which operators use. */
  readonly #operator: Process;
  /** The accounts of each index of `LIMITS`; the last one replaced those before. */
  readonly #customers: Customer[][] = [];
  readonly #expectations: Expectations = new Expectations();
  readonly #pending: Set<Promise<void>> = new Set();
  readonly #failures: unknown[] = [];
  /** Unique names of requests that got 503 or no response. From then on, none may be written. */
  readonly #givenUp: Set<string> = new Set();
  readonly #faults = { losePermits: false, mayRefuse: false };
  #serial = 0;

  constructor(deployment: Deployment) {
    Math.random = seededRandom(1);
    this.#deployment = deployment;
    this.#processes = Array.from({ length: PROCESSES }, () => [this.#start(0)]);
    this.#operator = new Process(this.#kv, this.#time, { ...deployment, maxStalenessMs: 0 }, 0);
  }

  /** Takes the steps one after the other. Then checks what is stored in the end. */
  async run(steps: readonly Step[]): Promise<void> {
    for (const limits of LIMITS) this.#customers.push([await this.#createCustomer(limits)]);
    for (const step of steps) {
      await this.#take(step);
      this.#throwFailures();
      this.#assertHeld();
    }
    await this.#comeToRest();
    this.#throwFailures();
    await this.#assertAtRest();
  }

  #throwFailures(): void {
    for (const failure of this.#failures) throw failure;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#time.clear();
    await this.#time[Symbol.asyncDispose]();
    Math.random = this.#random;
  }

  async #take(step: Step): Promise<void> {
    switch (step.kind) {
      case "request":
        for (let count = 0; count < step.count; count++) this.#send(step);
        return;
      case "advance":
        return await this.#time.advance(step.ms);
      case "edge":
        // To the last millisecond of a minute, or of the day, by this process's clock.
        return await this.#time.advance(MINUTE - 1 - this.#process(step.process).clock % MINUTE);
      case "skew":
        this.#process(step.process).skews.push(step.ms);
        return;
      case "pause":
        this.#faults.losePermits = true;
        this.#process(step.process).wire.pausedUntil = this.#time.now + step.ms;
        return;
      case "refuse":
        this.#faults.mayRefuse = true;
        this.#process(step.process).wire.refusesUntil = this.#time.now + step.ms;
        return;
      case "disturb":
        this.#faults.losePermits ||= step.next.landsLate === true || step.next.breaks !== undefined;
        Object.assign(this.#process(step.process).wire.next, step.next);
        return;
      case "crash":
        this.#faults.losePermits = true;
        this.#process(step.process).wire.isCut = true;
        return this.#replaceProcess(step.process);
      case "stop": {
        const process = this.#process(step.process);
        process.wire.refusesUntil = 0;
        await this.#time.advance(3 * this.#deployment.latency);
        await this.#time.until(process.stop(), MINUTE);
        return this.#replaceProcess(step.process);
      }
      default:
        return await this.#administer(step, this.#customer(step.account));
    }
  }

  async #administer(step: Command, customer: Customer): Promise<void> {
    const { id } = customer;
    switch (step.kind) {
      case "plan":
        return await this.#changePlan(customer, step.limits);
      case "reset":
        if ((await this.#tryTo("accounts", "reset", id)).done) customer.reset(this.#time.now);
        return;
      case "unban":
        await this.#tryTo("accounts", "unban", id);
        return customer.unban(this.#time.now);
      case "rotate":
        return await this.#rotateAsOperator(customer, step.graceSeconds);
      case "add key":
        return await this.#addKeyAsOperator(customer);
      case "revoke key":
        return await this.#revokeKeyAsOperator(customer);
      case "suspend": {
        const suspended = customer.beginSuspension(this.#time.now);
        return suspended((await this.#tryTo("accounts", "suspend", id)).span.to);
      }
      case "resume": {
        const resumed = customer.endSuspensions(this.#time.now);
        return resumed((await this.#tryTo("accounts", "resume", id)).span.to);
      }
      case "close":
        return await this.#closeAsOperator(customer);
      case "replace":
        return await this.#replaceCustomer(customer, step.account);
    }
  }

  async #rotateAsOperator(customer: Customer, graceSeconds: number): Promise<void> {
    // If a client rotated the key at the same time, the current key would be uncertain.
    if (customer.isChanging) return;
    const { key } = customer;
    // If a client's rotation got 503, its new key may be the current one, and then this one gets no grace.
    const isCurrent = key.ended.from === Infinity;
    const grace = graceSeconds > 0 ? ["--grace", `${graceSeconds}s`] : [];
    const undo = customer.beginRotation(this.#time.now, graceSeconds);
    const { done, out, span } = await this.#tryTo("accounts", "rotate", customer.id, ...grace);
    undo();
    if (!done) return;
    const endOf = (at: number) => START + Math.floor(at) + graceSeconds * SECOND;
    const until = { from: isCurrent ? endOf(span.from) : 0, to: endOf(span.to) };
    customer.issue(out[0] ?? "", span, graceSeconds > 0 ? { key, until } : undefined);
  }

  async #addKeyAsOperator(customer: Customer): Promise<void> {
    // If a client rotated the key at the same time, that might end this one.
    if (customer.isChanging) return;
    const [canWrite, label] = [++this.#serial % 2 === 0, `key ${this.#serial}`];
    const scope = canWrite ? ["--scope", "read/write"] : [];
    const { done, out, err, span } = await this.#tryTo("accounts", "add-key", customer.id, label, ...scope);
    const [id = ""] = /key_\w+/.exec(err.join()) ?? [];
    if (done) customer.add(out[0] ?? "", span, { id, canWrite, expiresAt: Infinity });
  }

  async #revokeKeyAsOperator(customer: Customer): Promise<void> {
    const key = customer.addedKeys.findLast(({ ended }) => ended.to === Infinity);
    if (key?.added === undefined || customer.isChanging) return;
    const revoked = customer.beginRevocation(key, this.#time.now);
    const { done, span } = await this.#tryTo("accounts", "revoke-key", customer.id, key.added.id);
    revoked(done ? span.to : undefined);
  }

  /** Closes and deletes an account, and creates another in its place. */
  async #replaceCustomer(customer: Customer, index: number): Promise<void> {
    await this.#closeAsOperator(customer);
    // A client may have closed it by a clock that is five seconds ahead.
    await this.#time.advance(MINUTE + 5 * SECOND);
    customer.isRemoved = (await this.#tryTo("accounts", "delete", customer.id)).done;
    assert(customer.isRemoved);
    const limits = LIMITS[index];
    assert(limits);
    this.#customers[index]?.push(await this.#createCustomer(limits));
  }

  async #closeAsOperator(customer: Customer): Promise<void> {
    const closed = customer.beginClosing(this.#time.now);
    const { done, span } = await this.#tryTo("accounts", "close", customer.id);
    closed(done ? span.to : undefined);
  }

  async #createCustomer(limits: Limits): Promise<Customer> {
    const plan = ["--plan", OF_THINGS.plans.own, ...optionsOf(limits)];
    const { out: [key = ""], err, span } = await this.#tryTo("accounts", "create", "a", ...plan);
    const [id = ""] = /acct_\w+/.exec(err.join()) ?? [];
    assert(key && id);
    return new Customer(id, key, limits, span, this.#faults);
  }

  async #changePlan(customer: Customer, limits: Limits): Promise<void> {
    const before = customer.limits.at(-1);
    assert(before);
    const from = this.#time.now;
    // Until the change is confirmed, either may be in force.
    customer.limits.push({ from, limits }, { from, limits: before.limits });
    const plan = [OF_THINGS.plans.own, ...optionsOf(limits)];
    const { done } = await this.#tryTo("accounts", "plan", customer.id, ...plan);
    if (done) customer.limits.push({ from: this.#time.now, limits });
  }

  /** Runs a command that may fail, in a process without faults. */
  async #tryTo(...args: string[]): Promise<Outcome & { readonly done: boolean; readonly span: Span }> {
    const from = this.#time.now;
    const outcome = await this.#time.until(operate(this.#operator.app.fetch, args), MINUTE);
    return { ...outcome, done: outcome.exit === 0, span: { from, to: this.#time.now } };
  }

  get #current(): Process[] {
    return this.#processes.flatMap((some) => some.slice(-1));
  }

  #process(index: number): Process {
    const process = this.#processes[index]?.at(-1);
    assert(process);
    return process;
  }

  #replaceProcess(index: number): void {
    this.#processes[index]?.push(this.#start(this.#process(index).skew));
  }

  #start(skew: number): Process {
    const process = new Process(this.#kv, this.#time, this.#deployment, skew);
    process.wire.onCommit = (values) => {
      const text = values.map((value) => value instanceof Uint8Array ? DECODER.decode(value) : "").join();
      for (const name of this.#givenUp) {
        if (!text.includes(`"${name}"`)) continue;
        this.#failures.push(new Error(`${name} was written after its request got 503`));
      }
    };
    return process;
  }

  #customer(index: number): Customer {
    const customer = this.#customers[index]?.at(-1);
    assert(customer);
    return customer;
  }

  /** The key that a client uses, and its account. */
  #keyOf({ account, keysAgo, isAdded }: RequestStep): { customer: Customer; key: Key } {
    const customers = this.#customers[account] ?? [];
    const added = isAdded
      ? customers.flatMap((customer) => customer.addedKeys.map((key) => ({ customer, key })))
      : [];
    const all = added.length > 0
      ? added
      : customers.flatMap((customer) => customer.keys.map((key) => ({ customer, key })));
    const used = all.at(-1 - keysAgo) ?? all.at(-1);
    assert(used);
    return used;
  }

  #send(step: RequestStep): void {
    const process = this.#process(step.process);
    const { customer, key } = this.#keyOf(step);
    const call = this.#callOf(step, customer, key);
    if (call === undefined) return;
    customer.unanswered++;
    const answered = this.#exchange(process, customer, call, key, step.bodyAfter)
      .catch((failure) => void this.#failures.push(failure))
      .finally(() => this.#pending.delete(answered));
    this.#pending.add(answered);
  }

  async #exchange(
    process: Process,
    customer: Customer,
    call: Call,
    key: Key,
    bodyAfter: number,
  ): Promise<void> {
    const { now: from } = this.#time;
    const { clock: clockThen, skews: { length } } = process;
    const remoteAddr = { transport: "tcp", hostname: `client ${++this.#serial}`, port: 1 } as const;
    const response = await process.app.fetch(this.#requestOf(call, key, bodyAfter), { remoteAddr });
    const to = this.#time.now;
    const answer = await answerOf(response);
    customer.unanswered--;
    if (process.isDead || response.status === 503) {
      customer.failed++;
      if (call.only !== undefined) this.#givenUp.add(call.only);
      return call.lost?.({ from, to });
    }
    assert(response.status < 500, `${response.status} for ${call.target}`);
    // If the clock was set in the meantime, it may have shown any of these times.
    const skews = process.skews.slice(length - 1);
    const clock = {
      from: START + Math.floor(from) + Math.min(...skews),
      to: START + Math.floor(to) + Math.max(...skews),
    };
    const since = call.target.startsWith("GET ") ? from - this.#deployment.maxStalenessMs : from;
    const isLate = call.json !== undefined && response.ok && bodyAfter > SLOW_BODY;
    const openFrom = isLate ? from + bodyAfter : since;
    const isAllowed = isAllowedTo(call.target, key, { from, to });
    const maySpare = key.added === undefined &&
      (call.target === ROTATION || call.target.startsWith(REVOCATION));
    const exchange: Exchange = { key, from, to, since, openFrom, clockThen, clock, maySpare, isAllowed };
    customer.check(answer, exchange);
    call.answered?.(answer, exchange);
  }

  #requestOf({ target, headers = {}, json }: Call, key: Key, bodyAfter: number): Request {
    const [method = "GET", path = ""] = target.split(" ");
    const bytes = json ? new TextEncoder().encode(JSON.stringify(json)) : null;
    const body = bytes && bodyAfter > 0 ? slowly(bytes, bodyAfter) : bytes;
    return new Request(`http://localhost${path}`, {
      method,
      headers: { ...(bytes ? JSON_TYPE : {}), ...headers, authorization: `Bearer ${key.text}` },
      body,
    });
  }

  /** The request of a step; undefined if there is nothing to request. */
  #callOf({ operation, pick }: RequestStep, customer: Customer, key: Key): Call | undefined {
    const calls: Record<Operation, () => Call | undefined> = {
      "nowhere": () => ({ target: "GET /v1/nowhere" }),
      "page": () => this.#page(pick),
      "get": () => this.#get(pick),
      "create": () => this.#create(`thing ${++this.#serial}`, undefined, pick),
      "create once": () =>
        this.#create(`thing ${customer.id} ${pick}`, { "idempotency-key": `${pick}` }, pick),
      "patch": () => this.#change(pick, operation),
      "patch if match": () => this.#change(pick, operation),
      "delete": () => this.#change(pick, operation),
      "rotate": () => this.#rotate(customer, key, pick * 60),
      "add key": () => this.#addKey(customer),
      "revoke key": () => this.#revokeKey(customer, pick),
      "close": () => this.#close(customer),
    };
    return calls[operation]();
  }

  #page(pick: number): Call {
    const after = pick === 0 ? 0 : this.#expectations.ids[3 * pick] ?? 0;
    return {
      target: `GET /v1/things?limit=100${after > 0 ? `&cursor=${btoa(`${after}`).replaceAll("=", "")}` : ""}`,
      answered: ({ outcome, json, headers }, exchange) => {
        if (outcome !== "200") return;
        this.#expectations.sawPage(json<Known[]>(), after, headers.has("link"), this.#since(exchange));
      },
    };
  }

  #get(pick: number): Call {
    const id = this.#expectations.ids[pick] ?? 1;
    return {
      target: `GET /v1/things/${id}`,
      answered: ({ outcome, json, headers }, exchange) => {
        if (outcome !== "200" && outcome !== NOT_FOUND) return;
        const thing = outcome === "200" ? json<Known>() : null;
        this.#expectations.saw(id, thing, headers.get("etag"), this.#since(exchange));
      },
    };
  }

  #create(name: string, headers: Record<string, string> | undefined, pick: number): Call {
    const fields = { name, ...filtersOf(pick) };
    this.#expectations.give(name, this.#time.now);
    return {
      target: "POST /v1/things",
      json: { ...HAMMER, ...fields },
      ...(headers ? { headers } : { only: name }),
      answered: (answer, span) => {
        if (answer.outcome !== "201") return;
        const thing = answer.json<Known>();
        assertEquals(textOf(thing), textOf({ id: thing.id, ...fields }));
        this.#expectations.created(thing, isReplay(answer) ? null : answer.headers.get("etag"), span);
        if (headers) this.#expectations.replied(name, answer.text, isReplay(answer));
      },
    };
  }

  /** Changes or removes a thing. */
  #change(pick: number, operation: Operation): Call | undefined {
    const id = this.#expectations.ids[pick];
    if (id === undefined) return undefined;
    const etag = operation === "patch if match" ? this.#expectations.etagOf(id) : undefined;
    const name = `patched ${++this.#serial}`;
    const fields = operation === "delete" ? null : { name, ...filtersOf(this.#serial) };
    const thing = fields && { id, ...fields };
    const ended = this.#expectations.beginChange(id, thing && textOf(thing), this.#time.now);
    return {
      target: `${fields ? "PATCH" : "DELETE"} /v1/things/${id}`,
      headers: etag === undefined ? {} : { "if-match": etag },
      ...(fields ? { json: fields, only: name } : {}),
      answered: ({ outcome, headers }, exchange) => {
        const isDone = outcome === (fields ? "200" : "204");
        ended(isDone, exchange.to);
        if (outcome === NOT_FOUND) this.#expectations.saw(id, null, null, this.#since(exchange));
        if (!isDone || !thing) return;
        if (etag !== undefined) this.#expectations.replaced(id, etag);
        this.#expectations.saw(id, thing, headers.get("etag"), exchange);
      },
      lost: ({ to }) => ended(undefined, to),
    };
  }

  #rotate(customer: Customer, key: Key, graceSeconds: number): Call | undefined {
    if (customer.isChanging) return undefined;
    customer.isChanging = true;
    const undo = customer.beginRotation(this.#time.now, graceSeconds);
    return {
      target: ROTATION,
      json: { graceSeconds },
      answered: ({ outcome, json }, exchange) => {
        customer.isChanging = false;
        undo();
        if (outcome !== "201") return;
        const { apiKey, previousKeyExpiresAt } = json<
          { apiKey: string; previousKeyExpiresAt: string | null }
        >();
        const at = Date.parse(previousKeyExpiresAt ?? "1970-01-01");
        const grace = graceSeconds > 0 ? { key, until: { from: at, to: at } } : undefined;
        customer.issue(apiKey, exchange, grace);
      },
      lost: () => void (customer.isChanging = false),
    };
  }

  #addKey(customer: Customer): Call | undefined {
    if (customer.isChanging) return undefined;
    customer.isChanging = true;
    const canWrite = ++this.#serial % 2 === 0;
    const expiresAt = this.#serial % 3 === 0 ? START + Math.floor(this.#time.now) + 20_000 : Infinity;
    return {
      target: ADDITION,
      json: {
        label: `key ${this.#serial}`,
        scope: canWrite ? "read/write" : "read",
        expiresAt: expiresAt === Infinity ? null : new Date(expiresAt).toISOString(),
      },
      answered: ({ outcome, json }, exchange) => {
        customer.isChanging = false;
        if (outcome !== "201") return;
        const { id, apiKey } = json<{ id: string; apiKey: string }>();
        customer.add(apiKey, exchange, { id, canWrite, expiresAt });
      },
      lost: () => void (customer.isChanging = false),
    };
  }

  #revokeKey(customer: Customer, pick: number): Call | undefined {
    const key = customer.addedKeys.at(-1 - pick);
    if (key?.added === undefined || customer.isChanging) return undefined;
    customer.isChanging = true;
    const revoked = customer.beginRevocation(key, this.#time.now);
    return {
      target: REVOCATION + key.added.id,
      answered: ({ outcome }, { to }) => {
        customer.isChanging = false;
        revoked(outcome === "204" ? to : undefined);
      },
      lost: () => void (customer.isChanging = false),
    };
  }

  #close(customer: Customer): Call | undefined {
    if (customer.isChanging) return undefined;
    customer.isChanging = true;
    const closed = customer.beginClosing(this.#time.now);
    return {
      target: CLOSING,
      answered: ({ outcome }, { to }) => {
        customer.isChanging = false;
        closed(outcome === "204" ? to : undefined);
      },
      lost: () => void (customer.isChanging = false),
    };
  }

  /** The span in which data that a response shows was current. */
  #since({ from, to }: Span): Span {
    return { from: from - this.#deployment.maxStalenessMs, to };
  }

  /** Checks that the permits that processes hold are those that the rows count as leased, or fewer after a crash. */
  #assertHeld(): void {
    for (const { id } of this.#customers.flat()) {
      const row = this.#kv.rows.get(JSON.stringify(usageKey(id)));
      const allowances = this.#current.map(({ app }) => app.permits.of(id));
      const held = allowances.map((allowance) => allowance ? allowance.held : []);
      if (row === undefined || held.includes(undefined)) continue;
      const { epoch, minute, leasedToday } = decodeUsage(row);
      const ofToday = held.flatMap((some = []) => some)
        .filter((one) => one.epoch === epoch && dayOf(one.minute) === dayOf(minute));
      const size = ofToday.reduce((sum, one) => sum + one.size, 0);
      const isRight = this.#faults.losePermits ? size <= leasedToday : size === leasedToday;
      assert(isRight, `Processes hold ${size} permits, and the row counts ${leasedToday} as leased`);
    }
  }

  async #comeToRest(): Promise<void> {
    for (const { wire, skews } of this.#current) {
      wire.heal();
      skews.push(0);
    }
    // By then, late commits have arrived and every request has its response.
    await this.#time.advance(30_000);
    await this.#time.until(Promise.all(this.#pending), MINUTE);
    await Promise.all(this.#current.map((process) => this.#time.until(process.stop(), MINUTE)));
    await this.#time.advance(100);
  }

  async #assertAtRest(): Promise<void> {
    for (const customer of this.#customers.flat()) this.#assertRows(customer);
    await this.#assertContent();
    const errors = this.#processes.flat().flatMap(({ errors }) => errors);
    assertEquals(errors.filter(({ error }) => !STORE_FAILURE.test(error)), []);
    if (this.#deployment.openServer) this.#assertAppliedOnce();
    await this.#assertSwept();
  }

  /** Checks that no commit applies again if a server receives it again. */
  #assertAppliedOnce(): void {
    const versions = () => [...this.#kv.rows].map(([name, { versionstamp }]) => `${name} ${versionstamp}`);
    const before = versions();
    for (const repeat of this.#kv.repetitions) assertEquals(repeat().ok, false);
    assertEquals(versions(), before);
  }

  /** Checks that only rows that are kept forever are left in the end. */
  async #assertSwept(): Promise<void> {
    const late = this.#start(LONG_AFTER);
    const log = {
      error: (record: unknown) => void this.#failures.push(record),
      ...{ operator() {}, event() {}, flushed: () => Promise.resolve() },
    };
    await this.#time.until(sweepAll(late.app.sweeps, late.clock, log), LONG_AFTER);
    this.#throwFailures();
    const keys = [...this.#kv.rows.values()].map(({ key }) => key);
    assertEquals(keys.filter(([table]) => !KEPT.test(String(table))), []);
    const marked = new Set(keys.filter(([table]) => table === "commits").map(([, process]) => process));
    assertEquals(marked.size, this.#deployment.openServer ? 1 : 0);
  }

  /** Checks the stored things, and what an operator sees of them. */
  async #assertContent(): Promise<void> {
    const { out, span } = await this.#tryTo("items", "things", "list", "--json");
    this.#expectations.sawPage(out.map((line): Known => JSON.parse(line)), 0, false, span);
    const faults = await this.#time.until(findFaults(this.#kv.connect()), 1_000);
    // Things outlive the accounts that added them.
    assertEquals(faults.filter((fault) => !/^\["items".* has no matching \["accounts"/.test(fault)), []);
  }

  #assertRows(customer: Customer): void {
    const { id } = customer;
    if (customer.isRemoved) {
      const left = [accountKey(id), usageKey(id)].filter((key) => this.#kv.value(...key) !== undefined);
      return assertEquals(left, []);
    }
    if (this.#faults.losePermits) return;
    const row = this.#kv.rows.get(JSON.stringify(usageKey(id)));
    assert(row);
    const usage = decodeUsage(row);
    const day = dayOf(usage.minute);
    assertEquals([usage.leased, usage.leasedToday], [0, 0]);
    if (customer.wasReset) return;
    const assertCount = (used: number, window: string) => {
      const count = customer.count(window);
      const isRight = used >= count && used <= count + customer.failed;
      assert(isRight, `The row counts ${used}, not ${count}, in ${window}`);
    };
    assertCount(usage.used, `minute ${usage.minute}`);
    assertCount(usage.usedToday, `day ${day * DAY}`);
    const before = this.#kv.rows.get(JSON.stringify(dayTotalKey(day - 1, id)));
    const total = before ? decodeJson<{ admitted: number }>(before).admitted : 0;
    assert(total >= customer.count(`day ${(day - 1) * DAY}`));
  }
}

/** Whether a key allows a request; undefined if that is not certain. */
function isAllowedTo(target: string, { added, ended }: Key, { from, to }: Span): boolean | undefined {
  const isManaging = [ROTATION, ADDITION, CLOSING].includes(target) || target.startsWith(REVOCATION);
  if (added) return !isManaging && (added.canWrite || target.startsWith("GET "));
  if (target !== ADDITION || ended.from > to) return true;
  return ended.to < from ? false : undefined; // A key that is being replaced cannot add any.
}

/** The options of commands that set limits. */
function optionsOf({ minute, day }: Limits): string[] {
  return ["--per-minute", `${minute}`, "--per-day", `${day}`];
}

/** A body that arrives after `ms`. */
function slowly(bytes: Uint8Array, ms: number): ReadableStream {
  return new ReadableStream({
    async start(controller) {
      await pause(ms);
      controller.enqueue(bytes);
      controller.close();
    },
  });
}

/** The fields that lists can be filtered by. */
function filtersOf(pick: number): Pick<Thing, "state" | "isSpare"> {
  return { state: STATES[pick % STATES.length] ?? "new", isSpare: pick % 2 === 1 };
}

function isReplay({ headers }: Answer): boolean {
  return headers.get("idempotency-replayed") === "true";
}
