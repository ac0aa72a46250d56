// Commands over HTTP, and what they do if a reply is lost.
import { assertEquals, assertMatch } from "@std/assert";
import { VERSION } from "../../src/app/version.ts";
import { Transactions } from "../../src/engine/transactions.ts";
import { Client, type Fetch, remoteFetch } from "../../src/operator/client.ts";
import { runCommandLine } from "../../src/operator/command_line.ts";
import { localFetch } from "../../src/operator/local.ts";
import { clientTasks } from "../../src/process/cli.ts";
import { addThing, call, cut, upTo } from "../support/client.ts";
import { carryOut, fail } from "../support/fake_kv.ts";
import { targetOf } from "../support/desk.ts";
import { type Harness, RecordingService } from "../support/harness.ts";
import { Operator } from "../support/operator.ts";
import { OF_THINGS } from "../support/things.ts";
import { NOON, VirtualTime } from "../support/time.ts";

const TOKEN = "0123456789-abcdef~0123456789+abcdef=";
const CHANGE = "accounts rotate acct_1";
const READ = "accounts show acct_1";
const HEADER = "id\tname\tweight\tstate\tisSpare\tlabels\taccountId";

/** How to respond to a request. `send` forwards it. */
type Responder = (send: () => Promise<Response>, target: string) => Response | Promise<Response>;

/** A service that an operator's commands call, and the requests that it received, such as `GET /v1/things`. */
class Remote implements AsyncDisposable {
  requests: string[] = [];
  respond: Responder = (send) => send();
  readonly service: Harness;
  readonly #server: Deno.HttpServer<Deno.NetAddr>;

  private constructor(service: Harness) {
    this.service = service;
    this.#server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, (request, info) => {
      const { pathname, search } = new URL(request.url);
      const target = `${request.method} ${pathname}${search}`;
      this.requests.push(target);
      return this.respond(async () => await service.app.fetch(request, info), target);
    });
  }

  static async of(operator: Operator): Promise<Remote> {
    const remote = new Remote(await operator.serve({ operatorToken: TOKEN }));
    operator.environment.set("SERVICE_URL", `http://127.0.0.1:${remote.#server.addr.port}`);
    operator.environment.set("OPERATOR_TOKEN", TOKEN);
    return remote;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
    await this.service[Symbol.asyncDispose]();
  }
}

for (const place of ["on the KV", "over HTTP"]) {
  Deno.test(`COMMAND changes accounts and items at once ${place}, and explains why it does not`, async () => {
    await using operator = await Operator.start();
    const { id, key } = await operator.createAccount();
    await using remote = await Remote.of(operator);
    const { service } = remote;
    if (place === "on the KV") operator.environment.delete("SERVICE_URL");
    else operator.environment.set("KV_PATH", `${operator.folder}/no/such.kv`);
    await addThing(service, key, "Grüße 🐶");
    const ofPlan = (plan: string, minute: number, day: number) =>
      `: ID, tests, staging, plan ${plan}, ${minute} requests a minute, ${day} a day.`;
    const [free, own] = [ofPlan("free", 60, 1_000), ofPlan("enterprise", 9, 99)];
    const [off, gone] = ["account_suspended", "invalid_api_key"];
    const none = "There is no open account with the id ID.";
    const lost = '{"id":1,"name":"Grüße 🐶","weight":1,"state":"lost","isSpare":false}';

    for (
      const [command, code, out, err, answer] of [
        ["accounts resume ID", 0, "", `Resumed${free}`, 200],
        ["accounts suspend ID", 0, "", `Suspended${free}`, off],
        ["accounts plan ID enterprise --per-minute 9 --per-day 99", 0, "", `Moved${own}`, off],
        ["accounts unban ID", 0, "", `Unbanned${own}`, off],
        ["accounts reset ID", 0, "", `Reset${own}`, off],
        ["accounts delete ID", 1, "", "Account ID is open; close it first.", off],
        ["accounts resume ID", 0, "", `Resumed${own}`, 200],
        ["items things set 1 --state lost", 0, lost, "", 200],
        ["items things list", 0, "1\tGrüße 🐶\t1\tlost\tno\t-\tID", HEADER, 200],
        ["items things delete 2", 1, "", "There is no thing with the id 2.", 200],
        ["accounts close ID", 0, "", `Closed${own}`, gone],
        ["accounts resume ID", 1, "", none, gone],
        ["accounts rotate ID --grace 1h", 1, "", none, gone],
        ["accounts show acct_0000", 1, "", "There is no account with the id acct_0000.", gone],
      ] as const
    ) {
      const exit = await operator.run(command.replace("ID", id));
      const [printed, said] = [operator.out, operator.err].map((lines) =>
        lines.join("\n").replaceAll(id, "ID")
      );
      const { code: problem, status } = await call(service, key);
      assertEquals([command, exit, printed, said, problem || status], [command, code, out, err, answer]);
    }
    operator.now = service.now += 60_000;
    const code = await operator.run(`accounts delete ${id}`);
    const things = await Array.fromAsync(service.kv.list({ prefix: ["items", "things"] }));

    assertEquals([code, operator.err], [0, [`Deleted: account ${id}.`]]);
    // Its things stay, because all accounts can read them.
    assertEquals([await service.accounts.find(id), things.length, service.errors], [null, 1, []]);
    assertEquals(remote.requests.length > 0, place === "over HTTP");
  });
}

Deno.test("accounts list prints all pages of the service at SERVICE_URL, whatever its PUBLIC_URL, until one breaks off", async () => {
  await using operator = await Operator.start();
  operator.input = Array.from({ length: 501 }, (_, number) => `Name ${number}`);
  await operator.run("accounts create -");
  await using remote = await Remote.of(operator);
  await using elsewhere = await operator.serve({ operatorToken: TOKEN, publicUrl: "http://127.0.0.1:1" });
  remote.respond = async (_send, target) => await elsewhere.fetch(target, { key: TOKEN });

  const code = await operator.run("accounts list");

  assertEquals([code, operator.out.length, new Set(operator.out).size], [0, 501, 501]);
  assertEquals(remote.requests.map((target) => target.replace(/cursor=.*/, "cursor")), [
    "GET /operator/v1/accounts?limit=500",
    "GET /operator/v1/accounts?limit=500&cursor",
  ]);
  remote.respond = async (send, target) => target.includes("cursor") ? await cut(await send()) : await send();
  assertEquals([await operator.run("accounts list"), operator.out.length], [1, 500]);
  assertEquals(operator.err.at(-1), "The connection broke. Nothing was changed.");
});

Deno.test("main() says what is unknown if there is no response, or the connection breaks", async () => {
  await using operator = await Operator.start();
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  operator.environment.set("SERVICE_URL", `http://127.0.0.1:${listener.addr.port}`).set(
    "OPERATOR_TOKEN",
    TOKEN,
  );
  const assertFails = async (command: string, why: string) => {
    const code = await operator.run(command);
    const [line] = operator.err.map((line) => line.replace(/:\d+: [^:]+ \(os error \d+\)/, ": WHY"));
    assertEquals([command, code, line, operator.err.length], [command, 1, why, 1]);
  };
  const closing = (async () => {
    for await (const connection of listener) {
      await connection.read(new Uint8Array(1_000));
      connection.close();
    }
  })();

  await assertFails(CHANGE, "The connection broke. It is unknown what was done.");
  await assertFails(READ, "The connection broke. Nothing was changed.");
  listener.close();
  await closing;
  for (const command of [CHANGE, READ]) {
    await assertFails(command, "There was no response from http://127.0.0.1: WHY.");
  }
});

Deno.test("main() gives up after a minute without a whole response", async () => {
  await using operator = await Operator.start();
  await using remote = await Remote.of(operator);
  const [arrived, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  async function* begun() {
    yield new TextEncoder().encode("[");
    await end.promise;
  }
  remote.respond = () => (arrived.resolve(), new Response(ReadableStream.from(begun())));
  await using time = new VirtualTime();
  const run = operator.run(READ);
  await arrived.promise;

  await time.advance(59_999);
  assertEquals(operator.err, []);
  await time.advance(1);

  assertEquals(await run, 1);
  assertMatch(operator.err.join(), /^http:\/\/127\.0\.0\.1:\d+ does not respond\. Nothing was changed\.$/);
  end.resolve();
});

const OTHER = "The answer is not what this version of the command expects, so it is unknown what was done.";
const WRONG = TOKEN.replace("0", "1");
const NOT_THIS = "OPERATOR_TOKEN is not this service's token.";
const ABSENT = "The service runs without OPERATOR_TOKEN, or SERVICE_URL is not its address.";
const UNKNOWN = "It is unknown what was done.";
const HERE = "https://localhost/operator/v1/accounts/acct_1";
const MOVED = "The service has moved. Set SERVICE_URL to the beginning of";
const [WILD, TAME] = [JSON.stringify({ message: "No\u001b[2J\n\u202eone" }), "No\ufffd[2J\ufffd\ufffdone."];

Deno.test("main() exits with 1 and prints in one line why a service refuses", async () => {
  await using operator = await Operator.start();
  await using remote = await Remote.of(operator);

  for (
    const [command, status, body, location, line] of [
      [READ, 200, "", "", OTHER],
      [READ, 200, "<html>\n", "", OTHER],
      [READ, 200, "{}", "", OTHER],
      [READ, 502, "<html>", "", "The service returned 502."],
      [CHANGE, 502, '{"message":"Not reachable."}', "", `Not reachable. ${UNKNOWN}`],
      [CHANGE, 504, "<html>", "", `The service returned 504. ${UNKNOWN}`],
      [READ, 403, '{"error":"forbidden"}', "", "The service returned 403."],
      [READ, 503, '{"code":"overloaded","message":"Too many."}', "", "Too many."],
      ["changes show", 503, '{"code":"overloaded","message":"Too many."}', "", "Too many."],
      [READ, 404, '{"code":"account_not_found","message":"None."}', "", "None."],
      [READ, 413, '{"code":"payload_too_large","message":"Too long."}', "", "Too long."],
      [READ, 400, "<html>", "", "The service returned 400."],
      [READ, 409, WILD, "", TAME],
      [READ, 503, WILD, "", TAME],
      [READ, 307, "", HERE, `${MOVED} ${HERE}.`],
      [READ, 307, "", "/\u009b2J", `${MOVED} /\ufffd2J.`],
      [READ, 404, '{"code":"not_found","message":"None."}', "", ABSENT],
    ] as const
  ) {
    remote.respond = () => new Response(body, { status, headers: location ? { location } : {} });
    assertEquals([body, await operator.run(command), operator.err], [body, 1, [line]]);
  }
});

Deno.test("main() exits with 2 and prints the message if the service returns 400", async () => {
  await using operator = await Operator.start();
  await using remote = await Remote.of(operator);
  const message = "The field plan must be one of a, b. It was \u001b.";
  remote.respond = () => Response.json({ code: "invalid_request", message, status: 400 }, { status: 400 });

  for (const command of [READ, CHANGE, "accounts list", "items things delete 1", "accounts create me"]) {
    const line = "The field plan must be one of a, b. It was \ufffd.";
    assertEquals([command, await operator.run(command), operator.err], [command, 2, [line]]);
  }
});

Deno.test("main() names both versions if the service has another and does not understand the command", async () => {
  await using operator = await Operator.start();
  await using remote = await Remote.of(operator);
  const versions = `The service has version 9.8.7, and this command ${VERSION}.`;
  let version = "9.8.7";

  for (
    const [command, status, body, exit, line] of [
      [READ, 200, "{}", 1, `${OTHER} ${versions}`],
      ["items things delete 1", 200, "", 1, `${OTHER} ${versions}`],
      [READ, 400, '{"code":"invalid_request","message":"Unknown."}', 2, `Unknown. ${versions}`],
      [READ, 404, '{"code":"not_found","message":"None."}', 1, `${ABSENT} ${versions}`],
      [READ, 405, '{"code":"method_not_allowed","message":"No."}', 1, `No. ${versions}`],
      [READ, 404, '{"code":"account_not_found","message":"None."}', 1, "None."],
      [READ, 401, '{"code":"invalid_operator_token","message":"No."}', 1, NOT_THIS],
      [READ, 503, '{"code":"overloaded","message":"Too many."}', 1, "Too many."],
    ] as const
  ) {
    remote.respond = (_send, target) =>
      target === "GET /health" ? Response.json({ status: "alive", version }) : new Response(body, { status });
    version = "9.8.7";
    assertEquals([body, await operator.run(command), operator.err], [body, exit, [line]]);
    version = VERSION;
    assertEquals([body, await operator.run(command)], [body, exit]);
    assertEquals(operator.err, [line.replace(` ${versions}`, "")]);
  }
});

Deno.test("main() sends the first token without its name, and nothing without one or if the command needs the store", async () => {
  await using operator = await Operator.start();
  await using remote = await Remote.of(operator);
  const none = "There is no account with the id acct_1.";
  const needsStore = "This command needs the store itself. Unset SERVICE_URL, and set KV_PATH.";
  assertEquals([await operator.run("items things rebuild"), operator.err], [1, [needsStore]]);

  for (
    const [token, readToken, line] of [
      [WRONG, TOKEN, NOT_THIS],
      [`${WRONG},${TOKEN}`, "", NOT_THIS],
      [`${TOKEN},${WRONG}`, "", none],
      [`ann:${TOKEN},bob:${WRONG}`, "", none],
      ["", `ann:${TOKEN}`, none],
      ["", "", "With SERVICE_URL, also set OPERATOR_TOKEN."],
    ] as const
  ) {
    operator.environment.set("OPERATOR_TOKEN", token).set("OPERATOR_READ_TOKEN", readToken);
    assertEquals([await operator.run(READ), operator.err], [1, [line]]);
  }
  assertEquals([remote.requests.length, remote.service.errors], [5, []]);

  operator.environment.set("OPERATOR_TOKEN", TOKEN).set("SERVICE_URL", "http://service.invalid");
  assertEquals([await operator.run(READ), operator.err[0]], [
    1,
    "Warning: the operator's token is sent to service.invalid without encryption. Begin SERVICE_URL with https.",
  ]);
});

const clock = () => NOON;

/** Creates accounts by command. */
async function create(service: RecordingService, fetch: Fetch, count: number) {
  const [out, err]: [string[], string[]] = [[], []];
  const io = {
    clock,
    input: () => Promise.resolve(upTo(count).map((number) => `Name ${number}`)),
    out: (line: string) => Promise.resolve(void out.push(line)),
    err: (line: string) => void err.push(line),
  };
  const words = ["accounts", "create", count === 1 ? "me" : "-"];
  const run = runCommandLine(clientTasks(OF_THINGS), words, io, (work) => work(targetOf(new Client(fetch))));
  return { code: await service.time.until(run, 600_000), out, err };
}

/** Creates accounts. Asserts that each was created once, and that its key was printed. */
async function assertCreates(service: RecordingService, fetch: Fetch, count: number): Promise<string[]> {
  const { code, out, err } = await create(service, fetch, count);

  service.disturbance = {};
  const made = [...service.fake.rows.keys()].filter((key) => key.startsWith('["accounts"')).length;
  assertEquals([code, out.length, new Set(out).size, made], [0, count, count, count]);
  for (const line of out) {
    const sent = service.fetch("GET /v1/account", { key: line.replace(/.*\t/, "") });
    assertEquals((await service.time.until(sent, 10_000)).status, 200);
  }
  return err;
}

/** What happens to the first response to a change, although its request was carried out. */
const LOSSES: readonly [what: string, count: number, lose: typeof cut][] = [
  ["breaks off", 1, cut],
  ["breaks off", 60, cut],
  ["is 502", 1, () => Promise.resolve(Response.json({ message: "Lost." }, { status: 502 }))],
  ["is 503", 1, () => Promise.resolve(Response.json({ message: "Lost." }, { status: 503 }))],
  ["says that an account was not created", 3, async (response) => {
    const [first, { name, reference }, third] = await response.json();
    return Response.json([first, { name, reference, outcome: "failed" }, third]);
  }],
];

Deno.test.each(LOSSES)(
  "accounts create repeats its request if the response %s, and prints each key (%i)",
  async (_, count, lose) => {
    await using service = await RecordingService.open({ operatorToken: TOKEN });
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
      const send = remoteFetch("http://localhost", TOKEN);
      const [first = ""] = await assertCreates(service, send, count);
      assertMatch(first, /\. Trying again in 1 s\.$/);
    } finally {
      globalThis.fetch = fetch;
    }
  },
);

Deno.test("accounts create on the KV repeats its request if a commit fails, and prints the key", async () => {
  await using service = await RecordingService.open({ operatorToken: TOKEN });
  service.disturbance = {
    commit: async (commit) => {
      service.disturbance = {};
      await carryOut(commit);
      return await fail();
    },
  };
  const transactions = new Transactions(service.store, clock);

  await assertCreates(service, localFetch(service.app.operations, { transactions, clock }), 1);
});
