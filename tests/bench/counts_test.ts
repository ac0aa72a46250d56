import { COUNTED, countedIn, type Counts, frozen } from "./counting.ts"; // First, so that all code is counted.
import { assert, assertEquals } from "@std/assert";
import { openStore } from "../../src/engine/open.ts";
import { JSON_TYPE } from "../support/client.ts";
import { Harness } from "../support/harness.ts";
import { NOON } from "../support/time.ts";

/** How often a request makes these calls: one alone; 64 that begin in one turn of the event loop; and why. */
type Cost = Partial<Record<typeof COUNTED[number], readonly [alone: number, together: number, why: string]>>;

const TOGETHER = 64;

/**
 * What each kind of request costs while the clock stands still; what is not named, it must not do. If a change is meant
 * to change a number, correct it here. If it is not, the request has become slower.
 */
const COSTS: Readonly<Record<string, Cost>> = {
  "a list": {
    "Headers.set": [
      3,
      192,
      "what is left of the limits, and the request's id; all others are on the kept page",
    ],
    "then, catch": [4, 4, "one waits for the version check, for all of them; three are those of its round"],
    "RegExp.exec": [1, 64, "the key in Authorization"],
    "SQLite reads": [1, 1, "the data version, which shows to all of them that no row has changed"],
  },
  "a get": {
    "Headers.set": [3, 192, "as for a list"],
    "then, catch": [4, 4, "as for a list"],
    "RegExp.exec": [2, 128, "as for a list, and the form of the id"],
    "SQLite reads": [1, 1, "as for a list"],
  },
  "a 304": {
    "Headers.set": [3, 192, "as for a list"],
    "then, catch": [4, 4, "as for a list"],
    "RegExp.exec": [1, 64, "as for a list"],
    "SQLite reads": [1, 1, "as for a list"],
  },
  "a 429": {
    "Headers.set": [1, 64, "the request's id; all others are on the kept refusal"],
    "then, catch": [4, 4, "as for a list"],
    "RegExp.exec": [1, 64, "as for a list"],
    "SQLite reads": [1, 1, "as for a list"],
  },
  "a create": {
    "Headers.set": [
      11,
      704,
      "five about the limits, the request's id, and five of a response that is made for it",
    ],
    "then, catch": [
      16,
      331,
      "four as for a list; the body, and its deadline; a commit and its deadline",
    ],
    "RegExp.exec": [3, 192, "as for a list; one each on its JSON and a text"],
    "TextEncoder.encode": [1, 64, "the row"],
    "JSON.stringify": [1, 64, "the item, whose text is both the row and the response"],
    timers: [1, 1, "the deadline of the commit"],
    "KV commits": [1, 1, "the items that arrive together share one"],
    "SQLite reads": [1, 1, "the version rows, because the create before has changed them"],
  },
};

/** How often a request looks at a clock, among 64. Each look takes 40 to 75 ns. */
const LOOKS: Readonly<Record<string, number>> = {
  "a list": 3, // Both clocks when it arrives, and the date after the version check.
  "a get": 3,
  "a 304": 3,
  "a 429": 3,
  "a create": 8,
};

/** The service on a file, with frozen clocks, an account that has used up its minute, and one that never does. */
class Fixture implements AsyncDisposable {
  readonly #cleanup: AsyncDisposableStack = new AsyncDisposableStack();
  readonly #now = performance.now;
  #rich = "";
  #spent = "";
  #etag = "";
  #harness: Harness | undefined;

  static async open(): Promise<Fixture> {
    const fixture = new Fixture();
    const folder = await Deno.makeTempDir();
    fixture.#cleanup.defer(() => Deno.remove(folder, { recursive: true }));
    const store = await openStore(`${folder}/things.kv`, { clock: () => NOON, create: true });
    fixture.#cleanup.defer(() => store.close());
    const harness = fixture.#cleanup.use(
      new Harness(await Deno.openKv(":memory:"), { store, clock: frozen(NOON) }),
    );
    const createAccount = async (minute: number) => {
      const issued = await harness.createAccount({ minute, day: 1_000_000_000 });
      assert(issued);
      return issued.apiKey;
    };
    [fixture.#rich, fixture.#spent] = [await createAccount(100_000_000), await createAccount(1)];
    fixture.#harness = harness;
    performance.now = frozen(0);
    for (const request of ["a create", "a 429"]) await fixture.send(request, 1);
    const list = await harness.app.fetch(fixture.#request("a list"), { remoteAddr: ADDRESS });
    fixture.#etag = list.headers.get("etag") ?? "";
    return fixture;
  }

  /** Sends requests of a kind in one turn. Resolves to what they cost and their statuses. */
  async send(kind: string, count: number): Promise<readonly [Counts, ReadonlySet<number>]> {
    const fetch = this.#harness?.app.fetch;
    assert(fetch);
    const requests = Array.from({ length: count }, () => this.#request(kind));
    const statuses = new Set<number>();
    const counts = await countedIn(async () => {
      const responses = requests.map((request) => fetch(request, { remoteAddr: ADDRESS }));
      for (const response of responses) statuses.add((await response).status);
    });
    return [counts, statuses];
  }

  #request(kind: string): Request {
    const authorization = `Bearer ${kind === "a 429" ? this.#spent : this.#rich}`;
    if (kind !== "a create") {
      const headers = { authorization, ...(kind === "a 304" && { "if-none-match": this.#etag }) };
      return new Request(kind === "a get" ? `${THINGS}/1` : THINGS, { headers });
    }
    const body = JSON.stringify({ name: "Hammer", weight: 700 });
    return new Request(THINGS, { method: "POST", headers: { authorization, ...JSON_TYPE }, body });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    performance.now = this.#now;
    await this.#cleanup[Symbol.asyncDispose]();
  }
}

const THINGS = "http://localhost:8000/v1/things";
const ADDRESS = { transport: "tcp", hostname: "192.0.2.1", port: 1 } as const;
const STATUSES: Readonly<Record<string, number>> = {
  "a list": 200,
  "a get": 200,
  "a 304": 304,
  "a 429": 429,
  "a create": 201,
};
/** So many waves are sent before one is counted: by then responses are kept, and permits and ids are in stock. */
const WARM_UP = 4;
/** Another version of Deno might make some of these calls itself. */
const isPinned =
  (await Deno.readTextFile(`${import.meta.dirname}/../../.dvmrc`)).trim() === Deno.version.deno;

for (const [kind, cost] of Object.entries(COSTS)) {
  Deno.test({
    name: `service makes exactly the calls in the table for ${kind}`,
    ignore: !isPinned,
    async fn() {
      await using fixture = await Fixture.open();
      const counts: Counts[] = [];
      for (const count of [1, TOGETHER]) {
        for (let wave = 0; wave < WARM_UP; wave++) await fixture.send(kind, count);
        const [counted, statuses] = await fixture.send(kind, count);
        assertEquals([...statuses], [STATUSES[kind]]);
        counts.push(counted);
      }

      assertEquals(Math.floor((counts[1]?.clocks ?? NaN) / TOGETHER), LOOKS[kind]);
      const costs = COUNTED.map((what) => `${what}: ${counts.map((counted) => counted[what]).join(", ")}`);
      assertEquals(costs, COUNTED.map((what) => `${what}: ${(cost[what] ?? [0, 0]).slice(0, 2).join(", ")}`));
    },
  });
}
