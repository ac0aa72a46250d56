// The harness: the whole service as a function of a request.
import { assertLessOrEqual } from "@std/assert";
import type { Issued } from "../../src/accounts/account.ts";
import { KeyForm } from "../../src/accounts/api_key.ts";
import type { Limits } from "../../src/limits/usage.ts";
import { interfaceForClients } from "../../src/app/document_operations.ts";
import { interfaceForOperators } from "../../src/operator/operations.ts";
import { InFlight } from "../../src/app/in_flight.ts";
import type { AccessRecord, ErrorRecord, EventRecord, OperatorRecord } from "../../src/app/log.ts";
import { Metrics } from "../../src/app/metrics.ts";
import { hasValidHost, targetOf } from "../../src/app/target.ts";
import type { Backend, BackendOptions } from "../../src/engine/backend.ts";
import { Store } from "../../src/engine/store.ts";
import type { Catalogue } from "../../src/resource/mod.ts";
import { createService, type Service, type ServiceOptions } from "../../src/app/service.ts";
import { type HarnessRequest, requestTo } from "./client.ts";
import { RemoteAccounts } from "./accounts.ts";
import { carryOut, type Commit, type Disturbance, disturbed, FakeKv, onFile } from "./fake_kv.ts";
import { Description } from "./openapi.ts";
import { OF_THINGS, PLANS } from "./things.ts";
import { NOON, VirtualTime } from "./time.ts";

/** Options of a harness. */
export interface HarnessOptions extends Partial<ServiceOptions> {
  /** Opens its backend; by default a file. */
  readonly backend?: (kv: Deno.Kv, options: BackendOptions) => Backend;
  /** Deadline of one KV operation, in ms. */
  readonly deadline?: number;
  /** The operator token. */
  readonly operatorToken?: string;
  /** What intervenes between it and its KV. */
  readonly disturbance?: Disturbance;
}

/** Descriptions of services by their catalogue and operations. */
const DESCRIPTIONS = new WeakMap<Catalogue, Map<string, Description>>();

/** The whole service on its own KV in memory. Its clock stands still until it is set. */
export class Harness implements AsyncDisposable {
  readonly kv: Deno.Kv;
  readonly store: Store;
  readonly metrics: Metrics;
  readonly accounts: RemoteAccounts;
  readonly accesses: AccessRecord[] = [];
  readonly errors: ErrorRecord[] = [];
  readonly operations: OperatorRecord[] = [];
  readonly events: EventRecord[] = [];
  now: number = NOON;
  /** Address of the client. */
  address: string = "192.0.2.1";
  /** Whether errors in the log are expected. Otherwise they fail the test. */
  expectsErrors: boolean = false;
  readonly app: Service;
  /** Whether it ends its KV and its time when it stops. False for a process beside another. */
  isFirst: boolean = true;
  readonly #inFlight: InFlight;
  readonly #catalogue: Catalogue;
  /** The IDs and errors of its operations. */
  readonly #operations: string;
  /** Differences between responses and their declarations; undefined for responses without any. */
  readonly #checks: Promise<unknown>[] = [];

  constructor(
    kv: Deno.Kv,
    { backend = onFile, deadline = 5_000, operatorToken, disturbance, ...services }: HarnessOptions = {},
  ) {
    this.#inFlight = services.inFlight ?? new InFlight();
    this.kv = disturbance ? disturbed(kv, disturbance) : kv;
    const clock = services.clock ?? (() => this.now);
    const metrics = services.metrics ?? new Metrics();
    this.metrics = metrics;
    this.store = services.store ??
      new Store(backend(this.kv, { clock, deadline, metrics: metrics.engine }), { metrics: metrics.engine });
    const environment = services.environment ?? "staging";
    this.#catalogue = services.catalogue ?? OF_THINGS;
    this.accounts = new RemoteAccounts(this.store, environment, clock, new KeyForm(this.#catalogue));
    const options: ServiceOptions = {
      catalogue: this.#catalogue,
      store: this.store,
      metrics,
      environment,
      publicUrl: undefined,
      allowedOrigins: "*",
      maxStalenessMs: 0,
      signUpIsOpen: true,
      securityContact: undefined,
      operatorTokens: operatorToken === undefined ? [] : [{ token: operatorToken }],
      operatorReadTokens: [],
      metricsTokens: [],
      onDeploy: false,
      clock,
      log: {
        access: (record) => this.accesses.push(record),
        error: (record) => this.errors.push(record),
        operator: (record) => this.operations.push(record),
        event: (record) => this.events.push(record),
        flushed: () => Promise.resolve(),
      },
      clientAddress: () => this.address,
      ...services,
      inFlight: this.#inFlight,
    };
    this.app = createService(options);
    this.#operations = this.app.operations.map(({ id, errors }) => `${id} ${errors.map(({ code }) => code)}`)
      .join();
  }

  /** Creates a harness on a new KV in memory. */
  static async open(options?: HarnessOptions): Promise<Harness> {
    return new Harness(await Deno.openKv(":memory:"), options);
  }

  /** Another process on the same KV. */
  beside(options?: HarnessOptions): Harness {
    return Object.assign(new Harness(this.kv, options), { isFirst: false });
  }

  /** Creates an account on a plan, or with its own limits. */
  createAccount(plan: keyof typeof PLANS.limits | Limits = "business"): Promise<Issued> {
    const granted = typeof plan === "string"
      ? { plan, limits: PLANS.limits[plan] }
      : { plan: PLANS.own, limits: plan };
    return this.accounts.create({ name: "tests", ...granted, signedUp: false }, this.now);
  }

  /** Number of rows in a table. */
  async countRows(table: string): Promise<number> {
    return (await Array.fromAsync(this.kv.list({ prefix: [table] }))).length;
  }

  /** Sends a request, such as `fetch("GET /v1/things", { key })`, and checks the response against its declaration. */
  async fetch(target: string, options?: HarnessRequest): Promise<Response> {
    const request = requestTo("http://localhost:8000", target, options);
    const remoteAddr = { transport: "tcp", hostname: this.address, port: 1 } as const;
    const response = decoded(await this.app.fetch(request, { remoteAddr }));
    // Without a valid Host, the operation is unknown.
    const asked = hasValidHost(request, targetOf(request.url)) ? new URL(request.url).pathname : "";
    const checked = this.#describe(asked).check(request.method, asked, response);
    this.#checks.push(checked.then(() => undefined, (error) => error));
    return response;
  }

  /** The document that describes responses to requests for a path. Services with the same operations share it. */
  #describe(path: string): Description {
    const isForOperators = /^\/(operator|metrics)/.test(path);
    const name = `${isForOperators} ${this.#operations}`;
    const known = DESCRIPTIONS.get(this.#catalogue) ?? new Map<string, Description>();
    DESCRIPTIONS.set(this.#catalogue, known);
    const described = (isForOperators ? interfaceForOperators : interfaceForClients)(this.#catalogue);
    // Validating the schemas takes 50 ms. openapi_test.ts does it once.
    const description = known.get(name) ??
      new Description(this.app.operations, described, { validateSchema: false });
    known.set(name, description);
    return description;
  }

  /** Stops as the service does. Throws if a response differed from its declaration, or an unexpected error occurred. */
  async stop(): Promise<void> {
    await this.#inFlight.stop();
    await this.app.close();
    for (const problem of await Promise.all(this.#checks)) if (problem !== undefined) throw problem;
    const [error] = this.expectsErrors ? [] : this.errors;
    if (error) throw new Error(`The service failed: ${JSON.stringify(error)}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.stop();
    } finally {
      if (this.isFirst) this.kv.close();
    }
  }
}

/** The response as `fetch()` returns it: with its body decompressed. */
function decoded(response: Response): Response {
  if (response.headers.get("content-encoding") !== "gzip") return response;
  return new Response(response.body?.pipeThrough(new DecompressionStream("gzip")) ?? null, response);
}

/**
 * A process of the service in virtual time that records its KV operations. While time stands still, two requests in
 * succession create a lease.
 */
export class RecordingService extends Harness {
  readonly time: VirtualTime;
  readonly fake: FakeKv;
  readonly reads: (readonly Deno.KvKey[])[] = [];
  readonly commits: Commit[] = [];
  /** What intervenes between it and its KV from now on. */
  disturbance: Disturbance = {};

  constructor(time: VirtualTime, fake: FakeKv, options: HarnessOptions = {}) {
    const disturbance: Disturbance = {
      read: (keys) => (this.reads.push(keys), this.disturbance.read?.(keys)),
      commit: (commit) => (this.commits.push(commit), (this.disturbance.commit ?? carryOut)(commit)),
    };
    super(Object.assign(fake.connect(), { async *list() {} }), { ...options, disturbance });
    this.time = time;
    this.fake = fake;
  }

  /** Creates one in a time of its own, by default on a KV of its own. */
  static override open(options?: HarnessOptions, fake: FakeKv = new FakeKv()): Promise<RecordingService> {
    return Promise.resolve(new RecordingService(new VirtualTime(), fake, options));
  }

  override beside(options?: HarnessOptions): RecordingService {
    return Object.assign(new RecordingService(this.time, this.fake, options), { isFirst: false });
  }

  /** Asserts the maximum number of KV operations since the last call of `forget`. */
  assertCost(most: { readonly reads: number; readonly commits: number }): void {
    assertLessOrEqual(this.reads.length, most.reads, `reads of ${JSON.stringify(this.reads)}`);
    assertLessOrEqual(this.commits.length, most.commits, "commits");
  }

  /** Forgets the recorded operations. */
  forget(): void {
    this.reads.length = this.commits.length = 0;
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.time.until(super[Symbol.asyncDispose](), 10_000);
    } finally {
      if (this.isFirst) await this.time[Symbol.asyncDispose]();
    }
  }
}
