// The switch of the feed of changes.
import { assertEquals, assertGreater, assertMatch } from "@std/assert";
import { decodeJson, encodeJson, openStore, type Transaction, Transactions } from "../../src/engine/mod.ts";
import { OPERATOR_TOKEN } from "../support/desk.ts";
import { Harness } from "../support/harness.ts";
import { Operator } from "../support/operator.ts";
import { assertError } from "../support/assertions.ts";
import { NOON } from "../support/time.ts";

const SWITCH = "PUT /operator/v1/changes";

/** The row of the schema version, and the entries of operators' log. */
async function rowsIn(kv: Deno.Kv): Promise<{ schema: unknown; log: readonly Record<string, unknown>[][] }> {
  const schema = await kv.get<Uint8Array>(["schema"]);
  const rows = await Array.fromAsync(kv.list({ prefix: ["changes", "operators"] }));
  return {
    schema: schema.versionstamp === null ? undefined : decodeJson(schema),
    log: rows.map((row) => decodeJson(row)),
  };
}

Deno.test("switchChanges() sets the schema, and adds a gap to the feed only when that begins", async () => {
  await using service = await Harness.open({ operatorToken: OPERATOR_TOKEN });
  await service.kv.set(["schema"], encodeJson({ version: 1 }));
  const shown: unknown[] = [];
  for (const days of [0, 7, 7, 365, 0, 1]) {
    const response = await service.fetch(SWITCH, { key: OPERATOR_TOKEN, json: { days } });
    const { schema, log } = await rowsIn(service.kv);
    shown.push([response.status, await response.json(), schema, log.length]);
  }

  const on = (days: number) => ({ version: 3, features: { changes: days } });
  assertEquals(shown, [
    [200, { days: 0 }, { version: 1 }, 0],
    [200, { days: 7 }, on(7), 1],
    [200, { days: 7 }, on(7), 1],
    [200, { days: 365 }, on(365), 1],
    [200, { days: 0 }, { version: 1 }, 1],
    [200, { days: 1 }, on(1), 2],
  ]);
  const { log } = await rowsIn(service.kv);
  assertEquals(log.map(([{ gap, at } = {}]) => [gap, at]), [[true, NOON], [true, NOON]]);
  assertEquals(new Set(log.map(([{ tag } = {}]) => tag)).size, 2);
  assertEquals(service.operations.map(({ changed }) => changed).slice(0, 2), [{ days: 0 }, { days: 7 }]);
});

Deno.test.each([{ days: -1 }, { days: 366 }, { days: 1.5 }, { days: "7" }, {}])(
  "switchChanges() refuses %j, and changes nothing",
  async (json) => {
    await using service = await Harness.open({ operatorToken: OPERATOR_TOKEN });

    const response = await service.fetch(SWITCH, { key: OPERATOR_TOKEN, json });

    await assertError(response, 400, "invalid_request", /days/);
    assertEquals(await rowsIn(service.kv), { schema: undefined, log: [] });
  },
);

Deno.test("changes on and changes off switch the feed, by default for 7 days, and changes show prints the days", async () => {
  await using operator = await Operator.start();
  const results: unknown[] = [];
  for (const command of ["show", "on", "on --days 1", "show", "off", "show"]) {
    const code = await operator.run(`changes ${command}`);
    using kv = await Deno.openKv(operator.environment.get("KV_PATH"));
    results.push([code, operator.out, operator.err, (await rowsIn(kv)).schema]);
  }

  const on = (days: number) => ({ version: 3, features: { changes: days } });
  assertEquals(results, [
    [0, ["0"], [], { version: 1 }],
    [0, [], ["Changes are kept for 7 days."], on(7)],
    [0, [], ["Changes are kept for 1 day."], on(1)],
    [0, ["1"], [], on(1)],
    [0, [], ["Changes are not kept any more."], { version: 1 }],
    [0, ["0"], [], { version: 1 }],
  ]);
  for (const days of ["0", "x", "1.5", "366"]) {
    assertEquals(await operator.run(`changes on --days ${days}`), 2);
    assertMatch(operator.err.join(), /^--days must be an integer from 1 to 365\. /);
  }
});

Deno.test("switchChanges() leaves no later commit of another process without an entry, nor one before it with one", async () => {
  const folder = await Deno.makeTempDir();
  const path = `${folder}/things.kv`;
  const open = () => openStore(path, { clock: Date.now, create: true });
  const stores = [await open(), await open()];
  const kv = await Deno.openKv(path);
  const service = new Harness(await Deno.openKv(path), {
    operatorToken: OPERATOR_TOKEN,
    store: await open(),
  });
  let [written, isWriting] = [0, true];
  const adding = (): Transaction<undefined> => {
    const key = ["row", ++written];
    return {
      decide(rows, write) {
        write.set(key, encodeJson(0));
        if (rows.features["changes"]) write.append(["log"], {});
      },
    };
  };
  const write = async (transactions: Transactions) => {
    while (isWriting) await Promise.all([1, 2, 3].map(() => transactions.run(adding())));
  };
  const writing = stores.map((store) => write(new Transactions(store, Date.now)));
  const switches: string[] = [];
  for (const days of [7, 0, 7, 1, 0, 7]) {
    const before = written;
    while (written < before + 60) await new Promise((resolve) => setTimeout(resolve));
    const response = await service.fetch(SWITCH, { key: OPERATOR_TOKEN, json: { days } });
    assertEquals(response.status, 200);
    switches.push((await kv.get(["schema"])).versionstamp ?? "");
  }
  isWriting = false;
  await Promise.all(writing);

  const stampsOf = async (table: string) =>
    (await Array.fromAsync(kv.list({ prefix: [table] }))).map(({ versionstamp }) => versionstamp);
  const isOn = (stamp: string) => [1, 3, 4, 6].includes(switches.filter((at) => at < stamp).length);
  const rows = [...new Set(await stampsOf("row"))].sort();
  assertEquals(await stampsOf("log"), rows.filter(isOn));
  for (const on of [true, false]) assertGreater(rows.filter((stamp) => isOn(stamp) === on).length, 20);
  kv.close();
  await service[Symbol.asyncDispose]();
  for (const store of stores) await store.close();
  await service.store.close();
  await Deno.remove(folder, { recursive: true });
});
