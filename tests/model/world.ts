import { dayOf } from "../../src/base/time.ts";
import { assert, assertEquals } from "@std/assert";
import { dayTotalKey } from "../../src/limits/usage_days.ts";
import { decodeUsage, type Limits, usageKey } from "../../src/limits/usage.ts";
import type { Log } from "../../src/app/log.ts";
import { pause } from "../../src/base/time.ts";
import { decodeJson } from "../../src/engine/row.ts";
import { sweepAll } from "../../src/app/sweeper.ts";
import { operate, operated, type Outcome } from "../support/desk.ts";
import { FakeKv } from "../support/fake_kv.ts";
import { findFaults } from "../support/stored_rows.ts";
import { HAMMER, OF_THINGS, type Thing } from "../support/things.ts";
import { seededRandom, VirtualTime } from "../support/time.ts";
import { type Charge, chargeOf, Customer, type Exchange, type Key, type Span } from "./customer.ts";
import { Expectations, type Known, textOf } from "./expectations.ts";
import { type Deployment, Process, START } from "./process.ts";
import { LIMITS, PROCESSES, type RequestStep, type Step } from "./steps.ts";

const MINUTE = 60_000;
const STATES = ["new", "used", "lost"] as const;
/** Errors that may be logged: failures of KV. */
const STORE_FAILURE = /^(StoreUnavailable|DeadlineExceeded|CommitInDoubt|Unresolved)/;
const DECODER = new TextDecoder();
/** When everything has expired, in ms after the start. */
const LONG_AFTER = 100 * 24 * 60 * MINUTE;
/** Tables with rows that do not expire. Those of commits are the markers of the process that has swept the others. */
const KEPT = [
  "account_references",
  "accounts",
  "api_keys",
  "commits",
  "ids",
  "items",
  "items_by",
  "schema",
  "usage",
  "versions",
];
/** If a body arrives longer than this after its headers, its account is checked again, in ms. */
const SLOW_BODY = 1_000;
const JSON_TYPE = { "content-type": "application/json" };
const ROTATION = "POST /v1/account/key";

/** A request to send, and how its response is checked. */
interface Call {
  readonly target: string;
  readonly headers?: Record<string, string>;
  readonly json?: object;
  /** A name or text that only this request gives. */
  readonly only?: string;
  readonly answered?: (response: Response, charge: Charge, exchange: Exchange) => Promise<void> | void;
  /** Called if it got 503 or no response, so it may have been carried out. */
  readonly lost?: (span: Span) => void;
}

/**
 * Three processes of the service on one KV, in virtual time. Clients and an operator send them HTTP requests; every
 * response is checked against the earlier ones.
 */
export class World implements Disposable {
  readonly #time: VirtualTime = new VirtualTime();
  readonly #random = Math.random;
  readonly #kv: FakeKv = new FakeKv();
  readonly #deployment: Deployment;
  readonly #processes: Process[];
  readonly #operator: Process;
  /** Processes that have been stopped or killed. */
  readonly #gone: Process[] = [];
  /** The accounts of each index of `LIMITS`; the last one replaced those before. */
  readonly #customers: Customer[][] = [];
  readonly #expectations: Expectations = new Expectations();
  readonly #pending: Set<Promise<void>> = new Set();
  readonly #failures: unknown[] = [];
  /** Unique names and texts of requests that got 503 or no response. From then on, none may be written. */
  readonly #givenUp: Set<string> = new Set();
  readonly #faults = { losePermits: false, mayRefuse: false };
  #serial = 0;

  constructor(deployment: Deployment) {
    Math.random = seededRandom(1);
    this.#deployment = deployment;
    this.#processes = Array.from({ length: PROCESSES }, () => this.#start(0));
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

  [Symbol.dispose](): void {
    this.#time[Symbol.dispose]();
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
        return await this.#time.advance(MINUTE - 1 - this.#process(step.process).clock() % MINUTE);
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
      case "late reply":
        this.#process(step.process).wire.lateness = step.ms;
        return;
      case "lose reply":
        this.#process(step.process).wire.losesReply = true;
        return;
      case "land late":
        this.#faults.losePermits = true;
        this.#process(step.process).wire.landsLate = true;
        return;
      case "break before":
      case "break after":
        this.#faults.losePermits = true;
        this.#process(step.process).wire.breaks = step.kind === "break after" ? "after" : "before";
        return;
      case "crash":
        this.#faults.losePermits = true;
        this.#process(step.process).kill();
        return this.#replaceProcess(step.process);
      case "stop": {
        const process = this.#process(step.process);
        process.wire.refusesUntil = 0;
        await this.#time.advance(3 * this.#deployment.latency);
        await this.#time.until(process.stop(), 60_000);
        return this.#replaceProcess(step.process);
      }
      case "plan":
        return await this.#changePlan(this.#customer(step.account), step.limits);
      default:
        return await this.#administer(step);
    }
  }

  async #administer(step: Extract<Step, { readonly account: number }>): Promise<void> {
    const customer = this.#customer(step.account);
    const { id } = customer;
    switch (step.kind) {
      case "reset":
        if ((await this.#tryTo(["accounts", "reset", id])).done) customer.reset(this.#time.now);
        return;
      case "unban":
        await this.#tryTo(["accounts", "unban", id]);
        return customer.unban(this.#time.now);
      case "rotate": {
        // If a client rotated the key at the same time, the current key would be uncertain.
        if (customer.isChanging) return;
        const { graceSeconds } = step;
        const grace = graceSeconds > 0 ? ["--grace", `${graceSeconds}s`] : [];
        const kept = customer.key;
        // If a client's rotation got 503, its new key may be the current one, and then this one gets no grace.
        const isCurrent = kept.ended === undefined;
        const undo = customer.beginRotation(this.#time.now);
        const { done, out, span } = await this.#tryTo(["accounts", "rotate", id, ...grace]);
        undo();
        const [from, to] = [span.from, span.to].map((at) => START + Math.floor(at) + graceSeconds * 1_000);
        const until = { from: isCurrent ? from ?? 0 : 0, to: to ?? 0 };
        if (done) customer.issue(out[0] ?? "", span, graceSeconds > 0 ? { key: kept, until } : undefined);
        return;
      }
      case "suspend": {
        const suspended = customer.beginSuspension(this.#time.now);
        return suspended((await this.#tryTo(["accounts", "suspend", id])).span.to);
      }
      case "resume": {
        const resumed = customer.endSuspensions(this.#time.now);
        return resumed((await this.#tryTo(["accounts", "resume", id])).span.to);
      }
      case "close":
        return await this.#closeAsOperator(customer);
      case "replace":
        return await this.#replaceCustomer(step.account);
    }
  }

  /** Closes and deletes an account, and creates another in its place. */
  async #replaceCustomer(index: number): Promise<void> {
    const customer = this.#customer(index);
    await this.#closeAsOperator(customer);
    await this.#time.advance(MINUTE);
    await this.#takeMessages();
    const removed = await this.#tryTo(["accounts", "delete", customer.id]);
    // It is refused if a message has been queued since they were taken.
    if (!removed.done) return;
    customer.isRemoved = true;
    const limits = LIMITS[index];
    assert(limits);
    this.#customers[index]?.push(await this.#createCustomer(limits));
  }

  async #closeAsOperator(customer: Customer): Promise<void> {
    const closed = customer.beginClosing(this.#time.now);
    const { done, span } = await this.#tryTo(["accounts", "close", customer.id]);
    closed(done ? span.to : undefined);
  }

  async #createCustomer(limits: Limits): Promise<Customer> {
    const numbers = ["--per-minute", `${limits.minute}`, "--per-day", `${limits.day}`];
    const { out, err, span } = await this.#tryTo([
      "accounts",
      "create",
      "a",
      "--plan",
      OF_THINGS.plans.own,
      ...numbers,
    ]);
    const [id = ""] = /acct_\w+/.exec(err.join()) ?? [];
    assert(out[0] && id);
    return new Customer(id, out[0], limits, span);
  }

  async #changePlan(customer: Customer, limits: Limits): Promise<void> {
    const before = customer.limits.at(-1);
    assert(before);
    const from = this.#time.now;
    // Until the change is confirmed, either may be in force.
    customer.limits.push({ from, limits }, { from, limits: before.limits });
    const numbers = ["--per-minute", `${limits.minute}`, "--per-day", `${limits.day}`];
    const { done } = await this.#tryTo(["accounts", "plan", customer.id, OF_THINGS.plans.own, ...numbers]);
    if (done) customer.limits.push({ from: this.#time.now, limits });
  }

  async #takeMessages(): Promise<void> {
    const { out } = await this.#tryTo(["messages", "take", "100000"]);
    const messages: { id: string; message: string }[] = out.map((line) => JSON.parse(line));
    this.#expectations.took(messages);
    const ids = messages.map(({ id }) => id).join("\n");
    if (ids) {
      await this.#operate(() => operated(this.#operator.service.fetch, ["messages", "remove", "-"], ids));
    }
  }

  /** Runs a command that may fail, in a process without faults. */
  async #tryTo(args: string[]): Promise<Outcome & { readonly done: boolean; readonly span: Span }> {
    const from = this.#time.now;
    const outcome = await this.#operate(() => operate(this.#operator.service.fetch, args));
    return { ...outcome, done: outcome.exit === 0, span: { from, to: this.#time.now } };
  }

  #operate<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#time.until(work(), 60_000);
  }

  #process(index: number): Process {
    const process = this.#processes[index];
    assert(process);
    return process;
  }

  #replaceProcess(index: number): void {
    const before = this.#process(index);
    this.#gone.push(before);
    this.#processes[index] = this.#start(before.skew);
  }

  #start(skew: number): Process {
    const process = new Process(this.#kv, this.#time, this.#deployment, skew);
    process.wire.onCommit = (values) => {
      const texts = values.map((value) => value instanceof Uint8Array ? DECODER.decode(value) : "");
      for (const name of this.#givenUp) {
        const isWritten = texts.some((text) => text.includes(`"${name}"`));
        if (isWritten) this.#failures.push(new Error(`${name} was written after its request got 503`));
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
  #keyOf({ account, keysAgo }: RequestStep): { customer: Customer; key: Key } {
    const all = (this.#customers[account] ?? []).flatMap((customer) =>
      customer.keys.map((key) => ({ customer, key }))
    );
    const used = all.at(-1 - keysAgo) ?? all.at(-1);
    assert(used);
    return used;
  }

  #send(step: RequestStep): void {
    const process = this.#process(step.process);
    const { customer, key } = this.#keyOf(step);
    const call = this.#callOf(step, customer, key);
    if (call === undefined) return;
    const sent = { key, from: this.#time.now, clockThen: process.clock(), clocks: process.skews.length - 1 };
    customer.unanswered++;
    const answered = this.#exchange(process, customer, call, sent, step)
      .catch((failure) => void this.#failures.push(failure))
      .finally(() => this.#pending.delete(answered));
    this.#pending.add(answered);
  }

  async #exchange(
    process: Process,
    customer: Customer,
    call: Call,
    { key, from, clockThen, clocks }: { key: Key; from: number; clockThen: number; clocks: number },
    { bodyAfter }: RequestStep,
  ): Promise<void> {
    const response = await process.service.fetch(this.#requestOf(call, key, bodyAfter), {
      remoteAddr: { transport: "tcp", hostname: `client ${++this.#serial}`, port: 1 },
    });
    const to = this.#time.now;
    const charge = await chargeOf(response);
    customer.unanswered--;
    if (process.isDead || response.status === 503) {
      customer.failed++;
      if (call.only !== undefined) this.#givenUp.add(call.only);
      return call.lost?.({ from, to });
    }
    assert(response.status < 500, `${response.status} for ${call.target}`);
    // If the clock was set in the meantime, it may have shown any of these times.
    const skews = process.skews.slice(clocks);
    const clock = {
      from: START + Math.floor(from) + Math.min(...skews),
      to: START + Math.floor(to) + Math.max(...skews),
    };
    const staleness = call.target.startsWith("GET ") ? this.#deployment.maxStalenessMs : 0;
    const isLate = call.json !== undefined && response.ok && bodyAfter > SLOW_BODY;
    const openFrom = isLate ? from + bodyAfter : from - staleness;
    const maySpare = call.target === ROTATION;
    const exchange: Exchange = { key, from, to, openFrom, clockThen, clock, maySpare };
    customer.check(charge, exchange, staleness, this.#faults);
    await call.answered?.(response, charge, exchange);
  }

  #requestOf({ target, headers = {}, json }: Call, key: Key, bodyAfter: number): Request {
    const [method = "GET", path = ""] = target.split(" ");
    const authorization = `Bearer ${key.text}`;
    if (json === undefined) {
      return new Request(`http://localhost${path}`, { method, headers: { ...headers, authorization } });
    }
    const bytes = new TextEncoder().encode(JSON.stringify(json));
    const slow = new ReadableStream({
      async start(controller) {
        await pause(bodyAfter);
        controller.enqueue(bytes);
        controller.close();
      },
    });
    return new Request(`http://localhost${path}`, {
      method,
      headers: { ...JSON_TYPE, ...headers, authorization },
      body: bodyAfter > 0 ? slow : bytes,
    });
  }

  #callOf({ operation, pick }: RequestStep, customer: Customer, key: Key): Call | undefined {
    switch (operation) {
      case "nowhere":
        return { target: "GET /v1/nowhere" };
      case "page":
        return this.#page(pick);
      case "get":
        return this.#get(pick);
      case "create":
        return this.#create(`thing ${++this.#serial}`, {}, pick);
      case "create once":
        return this.#create(`thing ${customer.id} ${pick}`, { "idempotency-key": `${pick}` }, pick);
      case "patch":
        return this.#patch(pick, false);
      case "patch if match":
        return this.#patch(pick, true);
      case "delete":
        return this.#delete(pick);
      case "send":
        return this.#message(`message ${++this.#serial}`, {});
      case "send once":
        return this.#message(`message ${customer.id} ${pick}`, { "idempotency-key": `${pick}` });
      case "rotate":
        return this.#rotate(customer, key, pick * 60);
      case "close":
        return this.#close(customer);
    }
  }

  #page(pick: number): Call {
    const after = pick === 0 ? 0 : this.#expectations.ids[3 * pick] ?? 0;
    return {
      target: `GET /v1/things?limit=100${after > 0 ? `&cursor=${btoa(`${after}`).replaceAll("=", "")}` : ""}`,
      answered: async (response, { outcome }, exchange) => {
        if (outcome !== "200") return;
        const things: Known[] = await response.json();
        this.#expectations.sawPage(things, after, response.headers.has("link"), this.#since(exchange));
      },
    };
  }

  #get(pick: number): Call {
    const id = this.#expectations.ids[pick] ?? 1;
    return {
      target: `GET /v1/things/${id}`,
      answered: async (response, charge, exchange) => {
        if (charge.outcome !== "200" && charge.outcome !== "404 thing_not_found") return;
        const thing: Known | null = response.ok ? await response.json() : null;
        this.#expectations.saw(id, thing, response.headers.get("etag"), this.#since(exchange));
      },
    };
  }

  #create(name: string, headers: Record<string, string>, pick: number): Call {
    const fields = { name, ...filtersOf(pick) };
    this.#expectations.give(name, this.#time.now);
    return {
      target: "POST /v1/things",
      headers,
      json: { ...HAMMER, ...fields },
      ...("idempotency-key" in headers ? {} : { only: name }),
      answered: async (response, { outcome }, span) => {
        if (outcome !== "201") return;
        const text = await response.text();
        const thing: Known = JSON.parse(text);
        assertEquals(textOf(thing), textOf({ id: thing.id, ...fields }));
        this.#expectations.created(thing, isReplay(response) ? null : response.headers.get("etag"), span);
        if ("idempotency-key" in headers) this.#expectations.replied(name, text, isReplay(response));
      },
    };
  }

  #patch(pick: number, isConditional: boolean): Call | undefined {
    const id = this.#expectations.ids[pick];
    if (id === undefined) return undefined;
    const etag = isConditional ? this.#expectations.etagOf(id) : undefined;
    const fields = { name: `patched ${++this.#serial}`, ...filtersOf(this.#serial) };
    const thing = { id, ...fields };
    const ended = this.#expectations.beginChange(id, textOf(thing), this.#time.now);
    return {
      target: `PATCH /v1/things/${id}`,
      headers: etag === undefined ? {} : { "if-match": etag },
      json: fields,
      only: fields.name,
      answered: (response, { outcome }, exchange) => {
        ended(outcome === "200", exchange.to);
        if (outcome === "404 thing_not_found") this.#expectations.saw(id, null, null, this.#since(exchange));
        if (outcome !== "200") return;
        if (etag !== undefined) this.#expectations.replaced(id, etag);
        this.#expectations.saw(id, thing, response.headers.get("etag"), exchange);
      },
      lost: ({ to }) => ended(undefined, to),
    };
  }

  #delete(pick: number): Call | undefined {
    const id = this.#expectations.ids[pick];
    if (id === undefined) return undefined;
    const ended = this.#expectations.beginChange(id, null, this.#time.now);
    return {
      target: `DELETE /v1/things/${id}`,
      answered: (_response, { outcome }, exchange) => {
        ended(outcome === "204", exchange.to);
        if (outcome === "404 thing_not_found") this.#expectations.saw(id, null, null, this.#since(exchange));
      },
      lost: ({ to }) => ended(undefined, to),
    };
  }

  #message(text: string, headers: Record<string, string>): Call {
    this.#expectations.sending(text);
    return {
      target: "POST /v1/messages",
      headers,
      json: { message: text },
      ...("idempotency-key" in headers ? {} : { only: text }),
      answered: async (response, { outcome }) => {
        if (outcome !== "202") return;
        const body = await response.text();
        const { id, message } = JSON.parse(body);
        assertEquals(message, text);
        this.#expectations.accepted(text, id);
        if ("idempotency-key" in headers) this.#expectations.replied(text, body, isReplay(response));
      },
    };
  }

  #rotate(customer: Customer, key: Key, graceSeconds: number): Call | undefined {
    if (customer.isChanging) return undefined;
    customer.isChanging = true;
    const undo = customer.beginRotation(this.#time.now);
    return {
      target: ROTATION,
      json: { graceSeconds },
      answered: async (response, { outcome }, exchange) => {
        customer.isChanging = false;
        undo();
        if (outcome !== "201") return;
        const { apiKey, previousKeyExpiresAt } = await response.json();
        const until = Date.parse(previousKeyExpiresAt ?? "1970-01-01");
        customer.issue(
          apiKey,
          exchange,
          graceSeconds > 0 ? { key, until: { from: until, to: until } } : undefined,
        );
      },
      lost: () => void (customer.isChanging = false),
    };
  }

  #close(customer: Customer): Call | undefined {
    if (customer.isChanging) return undefined;
    customer.isChanging = true;
    const closed = customer.beginClosing(this.#time.now);
    return {
      target: "DELETE /v1/account",
      answered: (_response, { outcome }, { to }) => {
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
      const allowances = this.#processes.map(({ service }) => service.permits.of(id));
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
    for (const process of this.#processes) {
      process.wire.heal();
      process.skews.push(0);
    }
    // By then, late commits have arrived and every request has its response.
    await this.#time.advance(30_000);
    await this.#time.until(Promise.all(this.#pending), 60_000);
    await Promise.all(this.#processes.map((process) => this.#time.until(process.stop(), 60_000)));
    await this.#time.advance(100);
  }

  async #assertAtRest(): Promise<void> {
    for (const customers of this.#customers) {
      for (const customer of customers) this.#assertRows(customer);
    }
    await this.#assertContent();
    const errors = [...this.#processes, ...this.#gone].flatMap(({ errors }) => errors);
    assertEquals(errors.filter(({ error }) => !STORE_FAILURE.test(error)), []);
    if (this.#deployment.openServer) this.#assertAppliedOnce();
    await this.#assertSwept();
  }

  /** Checks that no commit applies again if a server receives it again. */
  #assertAppliedOnce(): void {
    const before = this.#versions();
    for (const repeat of this.#kv.repetitions) assertEquals(repeat().ok, false);
    assertEquals(this.#versions(), before);
  }

  /** Checks that only rows that are kept forever are left in the end. */
  async #assertSwept(): Promise<void> {
    const late = this.#start(LONG_AFTER);
    const log: Log = {
      error: (record) => this.#failures.push(record),
      operator: () => {},
      event: () => {},
      flushed: () => Promise.resolve(),
    };
    await this.#time.until(sweepAll(late.service.sweeps, late.clock(), log), LONG_AFTER);
    this.#throwFailures();
    const keys = [...this.#kv.rows.values()].map(({ key }) => key);
    assertEquals(keys.filter(([table]) => !KEPT.includes(String(table))), []);
    assertEquals(
      new Set(keys.filter(([table]) => table === "commits").map(([, process]) => process)).size,
      this.#deployment.openServer ? 1 : 0,
    );
  }

  /** Checks the stored things and messages, and what an operator sees of them. */
  async #assertContent(): Promise<void> {
    const now = { from: this.#time.now, to: this.#time.now };
    const { out } = await this.#tryTo(["items", "things", "list", "--json"]);
    this.#expectations.sawPage(out.map((line): Known => JSON.parse(line)), 0, false, now);
    const faults = await this.#time.until(findFaults(this.#kv.connect()), 1_000);
    // Things outlive the accounts that added them.
    assertEquals(faults.filter((fault) => !/^\["items".* has no matching \["accounts"/.test(fault)), []);
    await this.#takeMessages();
    this.#expectations.assertAllTaken();
  }

  #assertRows(customer: Customer): void {
    const { id } = customer;
    if (customer.isRemoved) {
      const left = [...this.#kv.rows.values()].map(({ key }) => key)
        .filter(([table, owner]) => ["accounts", "usage"].includes(String(table)) && owner === id);
      assertEquals(left, []);
      return;
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
      assert(
        used >= count && used <= count + customer.failed,
        `The row counts ${used}, not ${count}, in ${window}`,
      );
    };
    assertCount(usage.used, `minute ${usage.minute}`);
    assertCount(usage.usedToday, `day ${day * 24 * 60 * MINUTE}`);
    const before = this.#kv.rows.get(JSON.stringify(dayTotalKey(day - 1, id)));
    const total = before ? decodeJson<{ admitted: number }>(before).admitted : 0;
    assert(total >= customer.count(`day ${(day - 1) * 24 * 60 * MINUTE}`));
  }

  #versions(): string[] {
    return [...this.#kv.rows].map(([name, { versionstamp }]) => `${name} ${versionstamp}`);
  }
}

/** The fields that lists can be filtered by. */
function filtersOf(pick: number): Pick<Thing, "state" | "isSpare"> {
  return { state: STATES[pick % STATES.length] ?? "new", isSpare: pick % 2 === 1 };
}

function isReplay({ headers }: Response): boolean {
  return headers.get("idempotency-replayed") === "true";
}
