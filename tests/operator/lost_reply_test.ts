import { assertEquals, assertMatch } from "@std/assert";
import { Transactions } from "../../src/engine/transactions.ts";
import { Client, type Fetch, remoteFetch } from "../../src/operator/client.ts";
import { runCommandLine } from "../../src/operator/command_line.ts";
import { localFetch } from "../../src/operator/local.ts";
import { clientTasks } from "../../src/process/cli.ts";
import { cut, upTo } from "../support/client.ts";
import { targetOf } from "../support/desk.ts";
import { carryOut, fail } from "../support/fake_kv.ts";
import { RecordingService } from "../support/harness.ts";
import { OF_THINGS } from "../support/things.ts";
import { NOON } from "../support/time.ts";

const operatorToken = "0123456789-abcdef~0123456789+abcdef=";
const clock = () => NOON;

/** Creates accounts by command. Asserts that each was created once, and that its key was printed. */
async function assertCreates(service: RecordingService, fetch: Fetch, count: number): Promise<string[]> {
  const names = upTo(count).map((number) => `Name ${number}`);

  const { code, out, err } = await runCreate(service, fetch, names);

  service.disturbance = {};
  const keys = out.map((line) => line.replace(/.*\t/, ""));
  assertEquals([code, keys.length, new Set(out).size, accountsIn(service)], [0, count, count, count]);
  for (const key of keys) {
    const response = await service.time.until(service.fetch("GET /v1/account", { key }), 10_000);
    assertEquals(response.status, 200);
  }
  return err;
}

async function runCreate(service: RecordingService, fetch: Fetch, names: readonly string[]) {
  const [out, err]: [string[], string[]] = [[], []];
  const [name = ""] = names.length === 1 ? names : ["-"];
  const io = {
    clock,
    input: () => Promise.resolve(names),
    out: (line: string) => Promise.resolve(void out.push(line)),
    err: (line: string) => void err.push(line),
  };
  const running = runCommandLine(
    clientTasks(OF_THINGS),
    ["accounts", "create", name],
    io,
    (work) => work(targetOf(new Client(fetch))),
  );
  return { code: await service.time.until(running, 600_000), out, err };
}

function accountsIn({ fake }: RecordingService): number {
  return [...fake.rows.keys()].filter((key) => key.startsWith('["accounts"')).length;
}

/** What happens to the first response to a change, although its request was carried out. */
const LOSSES: readonly [what: string, count: number, lose: typeof cut][] = [
  ["breaks off", 1, cut],
  ["breaks off", 60, cut],
  ...[502, 503].map((status): typeof LOSSES[number] => [
    `is ${status}`,
    1,
    () => Promise.resolve(Response.json({ message: "Lost." }, { status })),
  ]),
  ["says that an account was not created", 3, async (response) => {
    const [first, { name, reference }, third] = await response.json();
    return Response.json([first, { name, reference, outcome: "failed" }, third]);
  }],
];

Deno.test.each(LOSSES)(
  "accounts create repeats its request if the response %s, and prints each key (%i)",
  async (_, count, lose) => {
    await using service = await RecordingService.open({ operatorToken });
    const { fetch } = globalThis;
    let isLost = false;
    globalThis.fetch = async (input, init) => {
      const remoteAddr = { transport: "tcp", hostname: "192.0.2.1", port: 1 } as const;
      const response = await service.app.fetch(new Request(input, init), { remoteAddr });
      if (isLost || init?.method === "GET") return response;
      isLost = true;
      return await lose(response);
    };
    try {
      const send = remoteFetch("http://localhost", operatorToken);
      const [first = ""] = await assertCreates(service, send, count);
      assertMatch(first, /\. Trying again in 1 s\.$/);
    } finally {
      globalThis.fetch = fetch;
    }
  },
);

Deno.test.each<[count: number, applies: boolean, downFor: number]>([
  [1, true, 0],
  [1, false, 20_000],
  [3, true, 20_000],
])(
  "accounts create prints %i keys if a commit's reply is lost (applied: %s), and the KV is down for %i ms",
  async (
    count,
    applies,
    downFor,
  ) => {
    await using service = await RecordingService.open({ operatorToken });

    await assertCreates(service, losingOne(service, applies, downFor), count);
  },
);

Deno.test("accounts create - says which accounts may exist if the KV stays down", async () => {
  await using service = await RecordingService.open({ operatorToken });

  const names = upTo(60).map((number) => `Name ${number}`);
  const { code, out, err } = await runCreate(service, losingOne(service, true, Infinity), names);

  assertEquals([code, out], [1, []]);
  assertEquals(err.slice(-3, -1), [
    "Created 0 of 60 accounts.",
    "More accounts, up to Name 49, may exist without a printed key: see accounts list.",
  ]);
  assertMatch(err.at(-1) ?? "", /^The KV does not respond: disk I\/O error/);
});

/** Calls operations in this process. The reply to the first commit is lost, and then the KV does not respond for some ms. */
function losingOne(service: RecordingService, applies: boolean, downFor: number): Fetch {
  let downUntil: number | undefined;
  const isDown = () => service.time.now < (downUntil ?? 0);
  service.disturbance = {
    read: () => isDown() ? fail() : undefined,
    commit: async (commit) => {
      if (isDown()) return await fail();
      if (downUntil !== undefined) return await carryOut(commit);
      downUntil = service.time.now + downFor;
      if (applies) await carryOut(commit);
      return await fail();
    },
  };
  const transactions = new Transactions(service.store, { clock });
  return localFetch(service.app.operations, { transactions, clock });
}
