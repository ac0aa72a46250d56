// A project of its own that limits tenants, which it stores in rows of its own, and counts their requests.
import { Counter, Registry } from "store/base";
import { decodeJson, encodeJson, EngineMetrics, openStore, Transactions } from "store/engine";
import { type Holder, type Holders, LimitMetrics, Permits, setLimitHeaders } from "store/limits";

interface Tenant extends Holder {
  readonly password: string;
}

const TENANTS: Holders<Tenant> = {
  key: (id) => ["tenants", id],
  decode: (_id, row) => row ? decodeJson<Tenant>(row) : undefined,
  isOpenedBy: (tenant, password) => tenant.password === password,
};

const clock = Date.now;
const registry = new Registry();
const requests = new Counter("requests_total", "Requests of tenants.", ["status"]);
registry.add(requests);
const metrics = new EngineMetrics(registry);
const store = await openStore(":memory:", { clock, metrics, create: true });
const transactions = new Transactions(store, clock);
const ofLimits = new LimitMetrics(registry);
const permits = new Permits({ store, transactions, holders: TENANTS, clock, metrics: ofLimits });
const ann: Tenant = { id: "ann", limits: { minute: 60, day: 1_000 }, password: "secret" };
await transactions.run({
  decide: (_rows, write) => write.set(["tenants", "ann"], encodeJson(ann)),
});

async function handle(request: Request): Promise<Response> {
  const decision = await permits.admit("ann", request.headers.get("x-password") ?? "");
  const status = decision === undefined ? 401 : decision.refusal ? 429 : 200;
  requests.add(1, `${status}`);
  const response = new Response(null, { status });
  if (decision) setLimitHeaders(response.headers, decision);
  return response;
}

async function statuses(count: number, password: string): Promise<Record<string, number>> {
  const request = new Request("http://localhost/", { headers: { "x-password": password } });
  const responses = await Promise.all(Array.from({ length: count }, () => handle(request)));
  const byStatus = Object.groupBy(responses, ({ status }) => `${status}`);
  return Object.fromEntries(Object.entries(byStatus).map(([status, same = []]) => [status, same.length]));
}

const counts = [await statuses(90, "secret"), await statuses(3, "guess")];
const seen = JSON.stringify({ counts, metrics: registry.text("tenants_") });
await Deno.stdout.write(new TextEncoder().encode(seen));
await permits.settle();
await store.close();
