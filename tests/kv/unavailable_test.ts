import { assertEquals, assertGreaterOrEqual } from "@std/assert";
import { Store } from "../../src/kv/store.ts";
import { Harness, NOON } from "../harness.ts";
import {
  carryOut,
  type Commit,
  type CommitResult,
  type Disturbance,
  disturbed,
  hang,
} from "./disturbed_kv.ts";

const PET = { name: "Rex", categoryId: 1 };

/** A service whose KV does as `disturbance` says at the moment, and may take 250 ms for it. */
class RoughService extends Harness {
  readonly calm: Harness;
  readonly #disturbance: { -readonly [Name in keyof Disturbance]: Disturbance[Name] };

  private constructor(calm: Harness, disturbance: Disturbance) {
    const kv = disturbed(calm.kv, {
      read: (keys) => disturbance.read?.(keys),
      commit: (commit) => (disturbance.commit ?? carryOut)(commit),
    });
    super(kv, new Store(kv, { maxChecks: 10, deadline: 250 }));
    this.calm = calm;
    this.#disturbance = disturbance;
  }

  static async start(): Promise<RoughService> {
    return new RoughService(await Harness.open(), {});
  }

  set onRead(read: () => Promise<void>) {
    this.#disturbance.read = read;
  }

  set onCommit(commit: (commit: Commit) => Promise<CommitResult>) {
    this.#disturbance.commit = commit;
  }

  /** What the key has used in this minute, by its row. */
  async used(keyId: string): Promise<number | undefined> {
    return (await this.calm.keys.find(keyId))?.usage.minuteUsed;
  }
}

const broken = () => Promise.reject(new TypeError("disk I/O error: /var/lib/animals.kv"));

for (const [what, trouble] of [["hangs", hang], ["fails", broken]] as const) {
  Deno.test(`createApp() answers 503 with limit headers when KV ${what}`, async () => {
    using service = await RoughService.start();
    const { key: { id }, secret: key } = await service.issueKey("free");
    await service.fetch("GET /v1/nothing", { key });

    service.onCommit = trouble;
    service.onRead = trouble;
    const targets = ["GET /v1/pets", "GET /v1/nothing", "POST /v1/pets", "PUT /v1/pets"];
    const responses = await Promise.all(targets.map((target) => service.fetch(target, { key })));

    for (const response of responses) {
      assertEquals(response.status, 503);
      assertGreaterOrEqual(Number(response.headers.get("retry-after")), 1);
      assertEquals(response.headers.get("x-ratelimit-limit"), "60");
      assertEquals(response.headers.get("x-ratelimit-remaining"), "60");
      assertEquals(response.headers.get("x-ratelimit-reset"), `${NOON / 1000 + 60}`);
      const { code, message, status } = await response.json();
      assertEquals({ code, status }, { code: "store_unavailable", status: 503 });
      assertEquals(/disk|animals/.test(message), false);
    }
    assertEquals(
      service.errors.map(({ error }) => error.split(" ")[0]),
      targets.map(() => "StoreUnavailable"),
    );
    assertEquals(await service.used(id), 1);
  });
}

Deno.test("createApp() answers 503 to a new key when KV does not read", async () => {
  using service = await RoughService.start();
  const { secret: key } = await service.issueKey("free");
  service.onRead = hang;

  const response = await service.fetch("GET /v1/pets", { key });

  assertEquals(response.status, 503);
});

Deno.test("createApp() answers 401 without KV when the key is missing or mistyped", async () => {
  using service = await RoughService.start();
  service.onRead = hang;
  service.onCommit = hang;

  assertEquals((await service.fetch("GET /v1/pets")).status, 401);
  assertEquals((await service.fetch("GET /v1/pets", { key: "as_test_mistyped" })).status, 401);
});

Deno.test("createApp() serves again, and exactly, when KV answers again", async () => {
  using service = await RoughService.start();
  const { key: { id }, secret: key } = await service.issueKey("free");
  await service.fetch("GET /v1/nothing", { key });
  service.onCommit = hang;
  const during = await Promise.all([1, 2, 3].map(() => service.fetch("GET /v1/nothing", { key })));
  assertEquals(during.map(({ status }) => status), [503, 503, 503]);

  service.onCommit = carryOut;
  const after = await Promise.all([1, 2, 3].map(() => service.fetch("GET /v1/nothing", { key })));

  assertEquals(after.map(({ status }) => status), [404, 404, 404]);
  assertEquals(after.map(({ headers }) => headers.get("x-ratelimit-remaining")).sort(), ["56", "57", "58"]);
  assertEquals(await service.used(id), 4);
});

/** Keeps the next commit back, and tells how to let it through. */
function holdNext(service: RoughService): () => Promise<CommitResult> {
  let release: () => Promise<CommitResult> = hang;
  service.onCommit = ({ apply }) => {
    release = apply;
    service.onCommit = carryOut;
    return hang();
  };
  return () => release();
}

Deno.test("Limiter counts exactly when a commit that was given up lands before the next one", async () => {
  using service = await RoughService.start();
  const { key: { id }, secret: key } = await service.issueKey("free");
  await service.fetch("GET /v1/nothing", { key });
  const release = holdNext(service);
  assertEquals((await service.fetch("GET /v1/nothing", { key })).status, 503);

  assertEquals((await release()).ok, true);
  const response = await service.fetch("GET /v1/nothing", { key });

  assertEquals(response.status, 404);
  assertEquals(response.headers.get("x-ratelimit-remaining"), "57");
  assertEquals(await service.used(id), 3);
});

Deno.test("Limiter counts exactly when a commit that was given up lands after the next one", async () => {
  using service = await RoughService.start();
  const { key: { id }, secret: key } = await service.issueKey("free");
  await service.fetch("GET /v1/nothing", { key });
  const release = holdNext(service);
  assertEquals((await service.fetch("GET /v1/nothing", { key })).status, 503);
  const response = await service.fetch("GET /v1/nothing", { key });
  assertEquals(response.headers.get("x-ratelimit-remaining"), "58");

  assertEquals((await release()).ok, false);

  assertEquals(await service.used(id), 2);
  const next = await service.fetch("GET /v1/nothing", { key });
  assertEquals(next.headers.get("x-ratelimit-remaining"), "57");
});

Deno.test("Store.commit() is not taken in by a commit that was given up and lands during it", async () => {
  using service = await RoughService.start();
  const one = await service.issueKey("free");
  const two = await service.issueKey("free");
  for (const { secret: key } of [one, two]) await service.fetch("GET /v1/nothing", { key });
  const release = holdNext(service);
  assertEquals((await service.fetch("GET /v1/nothing", { key: one.secret })).status, 503);

  service.onCommit = async ({ apply }) => {
    await apply();
    assertEquals((await release()).ok, true);
    service.onCommit = carryOut;
    return await apply();
  };
  const response = await service.fetch("GET /v1/nothing", { key: two.secret });

  assertEquals(response.status, 404);
  assertEquals(response.headers.get("x-ratelimit-remaining"), "58");
  assertEquals(await service.used(two.key.id), 2);
});

Deno.test("Collection.append() gives no id twice when a commit that was given up lands later", async () => {
  using service = await RoughService.start();
  const { secret: key } = await service.issueKey("free");
  const create = () => service.fetch("POST /v1/pets", { key, json: PET });
  assertEquals((await (await create()).json()).id, 1);
  let release: () => Promise<CommitResult> = hang;
  service.onCommit = (commit) => {
    if (!commit.keys.some(([name]) => name === "pets")) return carryOut(commit);
    release = commit.apply;
    return hang();
  };
  assertEquals((await create()).status, 503);

  service.onCommit = carryOut;
  await release();

  assertEquals((await (await create()).json()).id, 3);
  const rows = await Array.fromAsync(service.calm.kv.list({ prefix: ["pets"] }));
  assertEquals(rows.map(({ key }) => key), [1, 2, 3].map((id) => ["pets", id]));
});
