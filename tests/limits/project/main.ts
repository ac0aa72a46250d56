// A project of its own that limits tenants, which it stores in rows of its own.
import { decodeJson, encodeJson, openStore, Transactions } from "store/engine";
import { type Holder, type Holders, Permits, setLimitHeaders } from "store/limits";

interface Tenant extends Holder {
  readonly password: string;
}

const TENANTS: Holders<Tenant> = {
  key: (id) => ["tenants", id],
  decode: (_id, row) => row ? decodeJson<Tenant>(row) : undefined,
  isOpenedBy: (tenant, password) => tenant.password === password,
};

const clock = Date.now;
const store = await openStore(":memory:", { clock, create: true });
const transactions = new Transactions(store, { clock });
const permits = new Permits({ store, transactions, holders: TENANTS, clock });
const ann: Tenant = { id: "ann", limits: { minute: 60, day: 1_000 }, password: "secret" };
await transactions.run({
  decide: (_rows, write) => write.set(["tenants", "ann"], encodeJson(ann)),
});

async function handle(request: Request): Promise<Response> {
  const decision = await permits.admit("ann", request.headers.get("x-password") ?? "");
  if (decision === undefined) return new Response(null, { status: 401 });
  const response = new Response(null, { status: decision.refusal ? 429 : 200 });
  setLimitHeaders(response.headers, decision);
  return response;
}

async function statuses(count: number, password: string): Promise<Record<string, number>> {
  const request = new Request("http://localhost/", { headers: { "x-password": password } });
  const responses = await Promise.all(Array.from({ length: count }, () => handle(request)));
  const byStatus = Object.groupBy(responses, ({ status }) => `${status}`);
  return Object.fromEntries(Object.entries(byStatus).map(([status, same = []]) => [status, same.length]));
}

const seen = JSON.stringify([await statuses(90, "secret"), await statuses(3, "guess")]);
await Deno.stdout.write(new TextEncoder().encode(seen));
await permits.settle();
await store.close();
