import { type App, createApp } from "../src/app.ts";
import { type IssuedKey, KeyStore } from "../src/access/key_store.ts";
import { type Limits, type Plan, PLAN_LIMITS } from "../src/access/plans.ts";
import { Drain } from "../src/http/drain.ts";
import type { AccessRecord, ErrorRecord } from "../src/http/log.ts";
import { Store } from "../src/kv/store.ts";

/** Noon of a day on which every operation still exists, ms since the epoch. */
export const NOON: number = Date.UTC(2027, 0, 15, 12);

/** The whole service on a KV of its own in memory, with a clock that stands still until it is set. */
export class Harness implements Disposable {
  readonly kv: Deno.Kv;
  readonly store: Store;
  readonly keys: KeyStore;
  readonly accesses: AccessRecord[] = [];
  readonly errors: ErrorRecord[] = [];
  now: number = NOON;
  /** Address of the client. */
  address: string = "192.0.2.1";
  readonly #app: App;

  constructor(kv: Deno.Kv, store: Store = new Store(kv, { maxChecks: 100 })) {
    this.kv = kv;
    this.store = store;
    this.keys = new KeyStore(this.store);
    this.#app = createApp({
      store: this.store,
      environment: "staging",
      clock: () => this.now,
      log: {
        access: (record) => this.accesses.push(record),
        error: (record) => this.errors.push(record),
      },
      clientAddress: () => this.address,
      drain: new Drain(),
    });
  }

  /** A harness on a fresh KV in memory. */
  static async open(): Promise<Harness> {
    return new Harness(await Deno.openKv(":memory:"));
  }

  /** A key on a plan, or with limits of its own. */
  issueKey(plan: Exclude<Plan, "enterprise"> | Limits = "business"): Promise<IssuedKey> {
    const limits = typeof plan === "string" ? PLAN_LIMITS[plan] : plan;
    return this.keys.create({
      account: "tests",
      plan: typeof plan === "string" ? plan : "enterprise",
      limits,
      environment: "staging",
    }, this.now);
  }

  /** Sends a request, such as `fetch("GET /v1/pets", { key })`. */
  fetch(target: string, { key, json, ...init }: HarnessRequest = {}): Promise<Response> {
    const [method = "GET", path = "/"] = target.split(" ");
    const headers = new Headers(init.headers);
    if (key !== undefined) headers.set("authorization", `Bearer ${key}`);
    if (json !== undefined) headers.set("content-type", "application/json");
    const body = json === undefined ? init.body ?? null : JSON.stringify(json);
    const request = new Request(`http://localhost:8000${path}`, { ...init, method, headers, body });
    return this.#app(request, { remoteAddr: { transport: "tcp", hostname: this.address, port: 1 } });
  }

  [Symbol.dispose](): void {
    this.kv.close();
  }
}

/** What a request carries beside its method and path. */
export interface HarnessRequest extends RequestInit {
  /** API key to send as bearer credential. */
  readonly key?: string;
  /** Body to send as JSON. */
  readonly json?: unknown;
}
