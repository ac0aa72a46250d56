import { assert, assertEquals, assertMatch } from "@std/assert";
import { hashApiKey } from "../../../src/accounts/api_key.ts";
import type { ErrorCode } from "../../../src/http/error.ts";
import { InFlight } from "../../../src/http/in_flight.ts";
import { createLog, type Log } from "../../../src/http/log.ts";
import { assertError } from "../../support/assertions.ts";
import type { HarnessRequest } from "../../support/client.ts";
import { Harness } from "../../support/harness.ts";
import { Operator } from "../../support/operator.ts";
import { NOON, VirtualTime } from "../../support/time.ts";

const TOKEN = "0123456789-abcdef~0123456789+abcdef=";
const OLD_TOKEN = "the-token-that-was-sent-until-now";
const ADD = { key: TOKEN, json: { args: ["accounts", "create", "tests"] } };

/** How to respond to a request with this body. `send` forwards it. */
type Responder = (send: () => Promise<Response>, body: string) => Response | Promise<Response>;

/** A service that runs the commands of an operator, and the request bodies that it received. */
class Remote implements AsyncDisposable {
  requests: string[] = [];
  respond: Responder = (send) => send();
  readonly service: Harness;
  readonly #server: Deno.HttpServer<Deno.NetAddr>;

  private constructor(service: Harness) {
    this.service = service;
    this.#server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, async (request, info) => {
      const body = await request.clone().text();
      this.requests.push(body);
      return await this.respond(async () => await service.app.fetch(request, info), body);
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

/** The response, broken off after some lines. */
function cut(response: Response, lines: number): Response {
  const source = response.body?.pipeThrough(new TextDecoderStream());
  async function* begin(): AsyncGenerator<Uint8Array> {
    let text = "";
    for await (const part of source ?? []) {
      text += part;
      if (text.split("\n").length > lines) break;
    }
    yield new TextEncoder().encode(`${text.split("\n").slice(0, lines).join("\n")}\n{"o`);
    throw new TypeError("The connection broke");
  }
  return new Response(ReadableStream.from(begin()), response);
}

async function addMessages(service: Harness, count: number): Promise<void> {
  const { apiKey: key } = await service.createAccount();
  for (let number = 1; number <= count; number++) {
    await service.fetch("POST /v1/messages", { key, json: { message: `${number}` } });
  }
}

function textsOf({ out }: Operator): string[] {
  return out.map((line) => JSON.parse(line).message);
}

Deno.test("COMMAND does the same over HTTP as on the KV", async () => {
  const runAll = async (operator: Operator, service: Harness) => {
    const { id, key } = await operator.createAccount("--plan pro");
    await service.fetch("POST /v1/pets", { key, json: { name: "Rex", categoryId: 7 } });
    await service.fetch("POST /v1/messages", { key, json: { message: "Grüße\n🐶" } });
    await service.app.settle();
    operator.input = ["Zoë", "", "Tom"];
    const results: unknown[] = [];
    for (
      const command of [
        ...["show ID", "rotate ID --grace 1h", "plan ID business", "unban ID", "reset ID"],
        ...["suspend ID", "suspend ID", "show ID", "resume ID", "resume ID", "close ID"],
        ...[
          "close ID",
          "show acct_none",
          "create -",
          "create a --plan gold",
          "list",
          "list --json",
          "--help",
        ],
      ].map((command) => `accounts ${command.replace("ID", id)}`).concat(
        ...["pets list", "pets list --json", "pets set 1 --status sold --name", "pets delete 1"],
        ...["pets delete 1", "messages take 5", "messages take 5", "messages remove -", "cats"],
      )
    ) {
      const code = await operator.run(command, ...(command.endsWith("--name") ? ["Rex Rex"] : []));
      // Accounts are listed in order of their IDs, which are random.
      const out = operator.out.map((line) => line.replaceAll(/(as_test|acct|msg)_\w+/g, "$1")).sort();
      results.push([
        command.replace(id, "ID"),
        code,
        out,
        operator.err.map((line) => line.replaceAll(id, "ID")),
      ]);
    }
    return results;
  };
  await using local = await Operator.start();
  await using service = await local.serve();
  await using distant = await Operator.start();
  await using remote = await Remote.of(distant);
  distant.environment.set("KV_PATH", `${distant.folder}/no/such.kv`);

  assertEquals(await runAll(distant, remote.service), await runAll(local, service));
  assertEquals(remote.service.errors, []);
});

Deno.test("COMMAND reads standard input over HTTP only if it uses it", async () => {
  await using operator = await Operator.start();
  await using remote = await Remote.of(operator);
  operator.input = ["Zoë", "Tom"];

  for (
    const command of [
      ...["pets set 1 --name -", "accounts show -", "accounts create - --plan pro"],
      ...["accounts create --plan pro -", "messages remove -"],
    ]
  ) await operator.run(command);

  const inputs = remote.requests.map((body) => JSON.parse(body).input);
  assertEquals(inputs, ["", "", "Zoë\nTom", "Zoë\nTom", "Zoë\nTom"]);
});

Deno.test("service has /operator only with a token, and sends no CORS or limit headers there", async () => {
  await using closed = await Harness.open();
  await assertError(await closed.fetch("POST /operator", ADD), 404, "not_found");
  let written = "";
  const output = {
    write: (bytes: Uint8Array) => (written += new TextDecoder().decode(bytes), Promise.resolve(bytes.length)),
  };
  const log = createLog({ access: output, errors: output, secrets: [TOKEN], clock: () => 0 });
  await using service = await Harness.open({ operatorToken: TOKEN, log });
  const headers = { origin: "https://pets.example", "x-request-id": TOKEN };
  const preflight = { ...headers, "access-control-request-method": "POST" };
  const { key, json } = ADD;

  for (
    const [target, request, status] of [
      ["POST /operator", { key, json, headers }, 200],
      ["POST /operator", { json, headers }, 401],
      ["POST /operator", { key: `${TOKEN}x`, json, headers }, 401],
      ["POST /operator", { key, json: {}, headers }, 400],
      ["GET /operator", { key, headers }, 405],
      ["OPTIONS /operator", { headers: preflight }, 204],
    ] satisfies [string, HarnessRequest, number][]
  ) {
    const response = await service.fetch(target, request);
    const names = [...response.headers.keys()].filter((name) => /^access-control-|ratelimit/.test(name));
    assertEquals([target, response.status, names], [target, status, []]);
    assertEquals((await response.text()).includes("abcdef~"), false);
  }
  await log.flushed();
  assertMatch(written, /"route":"\/operator","status":200/);
  assertEquals(written.includes("abcdef~"), false);
});

Deno.test("POST /operator logs each command with its client's address and its exit code, but no name, key or input", async () => {
  await using service = await Harness.open({ operatorToken: TOKEN });
  const { account: { id }, apiKey } = await service.createAccount();
  const cases: [command: string, input: string, logged: string, exit: number][] = [
    ["accounts create Bob", "", "accounts create", 0],
    ["accounts create Bob --plan pro", "", "accounts create", 0],
    ["--plan=pro accounts create 12345", "", "accounts create", 0],
    ["accounts create -", "Bob\nEve", "accounts create", 0],
    [`accounts rotate ${id} --grace 24h`, "", `accounts rotate ${id}`, 0],
    [`accounts plan ${id} business`, "", `accounts plan ${id}`, 0],
    [`accounts close ${apiKey}`, "", "accounts close", 2],
    ["accounts close Bob", "", "accounts close", 1],
    [`accounts show ${id}x`, "", "accounts show", 1],
    [`accounts frobnicate ${id}`, "", "", 2],
    ["accounts", "", "", 2],
    ["accounts --help", "", "", 0],
    ["accounts list --secret", "", "", 2],
    ["constructor toString", "", "", 2],
    [`${apiKey} Bob`, "", "", 2],
    ["", "", "", 2],
    ["pets delete 77", "", "pets delete 77", 1],
    ["pets set 77 --name Bob", "", "pets set 77", 1],
    ["messages take 5", "", "messages take 5", 0],
    ["messages remove -", "msg_Bob", "messages remove", 0],
  ];

  for (const [command, input] of cases) {
    service.now += 1_000;
    const json = { args: command.split(" ").filter((word) => word !== ""), input };
    await (await service.fetch("POST /operator", { key: TOKEN, json })).text();
  }

  const expected = cases.map(([, , command, exit], index) => {
    const time = new Date(NOON + 1_000 * (index + 1)).toISOString();
    return { time, address: service.address, command, exit };
  });
  assertEquals(service.commands, expected);
  assertEquals(service.errors, []);
});

Deno.test("POST /operator logs exit code 1 for a command that fails or whose client disconnects", async () => {
  const records: (readonly [what: string, outcome: string | number])[] = [];
  const ended = Promise.withResolvers<void>();
  const log: Log = {
    error: ({ route, error }) => records.push([route, error]),
    command: ({ command, exit }) => (records.push([command, exit]), ended.resolve()),
    flushed: () => Promise.resolve(),
  };
  await using service = await Harness.open({ operatorToken: TOKEN, log });
  const send = (args: string[], input = "") =>
    service.fetch("POST /operator", { key: TOKEN, json: { args, input } });

  const { body } = await send(["accounts", "create", "-"], "Bob\n".repeat(600));
  await body?.cancel();
  await ended.promise;
  service.kv.list = () => {
    throw new TypeError("secret");
  };
  const failed = await send(["accounts", "list"]);
  const text = await failed.text().catch(() => "broken off");

  assertEquals(text, "broken off");
  assertEquals(records, [["accounts create", 1], ["accounts list", 1], ["/operator", "TypeError"]]);
});

Deno.test("service accepts each of two operator tokens, and commands send the first", async () => {
  await using operator = await Operator.start();
  await using service = await Harness.open({ operatorTokens: [TOKEN, OLD_TOKEN] });
  const run = (key: string) => service.fetch("POST /operator", { ...ADD, key });

  for (const key of [TOKEN, OLD_TOKEN]) assertMatch(await (await run(key)).text(), /\{"exit":0\}\n$/);
  for (const key of [`${TOKEN},${OLD_TOKEN}`, `${TOKEN}${OLD_TOKEN}`, ","]) {
    await assertError(await run(key), 401, "invalid_operator_token");
  }
  await using remote = await Remote.of(operator);
  operator.environment.set("OPERATOR_TOKEN", `${TOKEN},${OLD_TOKEN}`);
  assertEquals([await operator.run("accounts list --json"), remote.requests.length], [0, 1]);
  operator.environment.set("OPERATOR_TOKEN", `${OLD_TOKEN},${TOKEN}`);
  assertEquals(await operator.run("accounts list"), 1);
  assertEquals(operator.err, ["OPERATOR_TOKEN is not this service's token."]);
});

Deno.test("service charges wrong operator tokens to the address, and returns 429 to the 61st", async () => {
  await using service = await Harness.open({ operatorToken: TOKEN });
  const { apiKey } = await service.createAccount();

  for (let count = 0; count < 60; count++) {
    const key = [TOKEN.slice(1), apiKey, ""][count % 3];
    const response = await service.fetch("POST /operator", { ...ADD, key: key ?? "" });
    assertEquals(response.headers.get("www-authenticate"), 'Bearer realm="animal-store-operator"');
    await assertError(response, 401, "invalid_operator_token");
  }

  await assertError(await service.fetch("POST /operator", { ...ADD, key: "x" }), 429, "rate_limit_minute");
  assertMatch(await (await service.fetch("POST /operator", ADD)).text(), /\{"exit":0\}\n$/);
});

Deno.test.each<[string, object, ErrorCode]>([
  ["no args", {}, "invalid_request"],
  ["a string for args", { args: "accounts list" }, "invalid_request"],
  ["a number among args", { args: ["accounts", 1] }, "invalid_request"],
  ["an array for input", { args: ["accounts", "create", "-"], input: ["a"] }, "invalid_request"],
  ["1,001 args", { args: Array(1_001).fill("") }, "invalid_request"],
  ["350,000 args", { args: Array(349_000).fill("") }, "invalid_json"],
  ["more than 1 MiB", { args: [], input: "x".repeat(1024 * 1024) }, "payload_too_large"],
])("POST /operator rejects %s", async (_, json, code) => {
  await using service = await Harness.open({ operatorToken: TOKEN });

  const response = await service.fetch("POST /operator", { key: TOKEN, json });

  await assertError(response, code === "payload_too_large" ? 413 : 400, code);
});

Deno.test("POST /operator accepts 1,000 args and 1 MiB", async () => {
  await using service = await Harness.open({ operatorToken: TOKEN });
  const args = ["messages", "remove", ...Array(998).fill("-")];
  const input = "x".repeat(1024 * 1024 - JSON.stringify({ args, input: "" }).length);

  const response = await service.fetch("POST /operator", { key: TOKEN, json: { args, input } });

  assertMatch(await response.text(), /has no argument '-'.*\n\{"exit":2\}\n$/);
});

Deno.test("POST /operator reads no body without an operator token", async () => {
  await using service = await Harness.open({ operatorToken: TOKEN });
  let pulls = 0;
  const body = new ReadableStream({ pull: () => void pulls++ }, { highWaterMark: 0 });

  const response = await service.fetch("POST /operator", { key: "x", body });

  await assertError(response, 401, "invalid_operator_token");
  assertEquals(pulls, 0);
});

Deno.test("POST /operator handles eight requests at a time, each until its command has ended", async () => {
  await using service = await Harness.open({ operatorToken: TOKEN });
  const unfinished = Array.from({ length: 4 }, () => new TransformStream<Uint8Array, Uint8Array>());
  const headers = { "content-type": "application/json" };
  const sent = unfinished.map(({ readable }) =>
    service.fetch("POST /operator", { key: TOKEN, headers, body: readable })
  );
  const list = () => service.fetch("POST /operator", { key: TOKEN, json: { args: ["accounts", "list"] } });
  for (let count = 0; count < 3; count++) await service.createAccount();
  // Their output has not been read yet.
  const begun = [await list(), await list(), await list(), await list()];

  const refused = await list();
  assertEquals(refused.headers.get("retry-after"), "1");
  await assertError(refused, 503, "overloaded", /Too many commands/);

  assertMatch(await begun[0]?.text() ?? "", /\{"exit":0\}\n$/);
  const next = await list();
  assertEquals(next.status, 200);
  await assertError(await list(), 503, "overloaded");

  await unfinished[0]?.writable.abort();
  await assertError(await sent[0] ?? refused, 400, "invalid_request");
  begun.push(await list());
  for (const response of [...begun.slice(1), next]) assertMatch(await response.text(), /\{"exit":0\}\n$/);
  for (const { writable } of unfinished.slice(1)) await writable.close();
  for (const response of sent.slice(1)) await assertError(await response, 400, "invalid_json");
});

Deno.test("accounts create - over HTTP ends after a batch if the service stops, and prints every key", async () => {
  const inFlight = new InFlight();
  await using service = await Harness.open({ operatorToken: TOKEN, inFlight });
  const names = Array.from({ length: 1_200 }, (_, number) => `Name ${number}`);
  const json = { args: ["accounts", "create", "-"], input: names.join("\n") };

  const { body } = await service.fetch("POST /operator", { key: TOKEN, json });
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = (await reader?.read())?.value ?? "";
  await inFlight.stop();
  for (let part; (part = await reader?.read()) && !part.done;) text += part.value;

  const lines = text.trimEnd().split("\n").map((line) => JSON.parse(line));
  const made = lines.flatMap(({ out }) => out ? [out.split("\t")] : []);
  assertEquals(made.map(([name]) => name), names.slice(0, 500));
  assertEquals(lines.slice(500), [
    { err: "Created 500 of 1200 accounts." },
    { err: "The service is stopping. Try the remaining names again." },
    { exit: 1 },
  ]);
  const hashes = made.map(([, key]) => hashApiKey(key)).sort();
  const accounts = await Array.fromAsync(service.accounts.list());
  assertEquals(accounts.map(({ account }) => account.keyHash).sort(), hashes);
});

Deno.test("accounts create - over HTTP sends valid input in parts until one fails", async () => {
  await using operator = await Operator.start();
  await using remote = await Remote.of(operator);
  const names = Array.from({ length: 4_000 }, (_, number) => `"é${number}`.padEnd(100, "é"));
  const exit = (code: number) => new Response(`{"err":"Made some."}\n{"exit":${code}}\n`);

  remote.respond = () => exit(0);
  operator.input = [...names, "a\tb"];
  assertEquals(await operator.run("accounts create - --plan pro"), 1);
  assertEquals(operator.err, ["Name 4001 must have 1 to 100 printable characters, not only whitespace."]);
  assertEquals(remote.requests, []);

  operator.input = names;
  assertEquals(await operator.run("accounts create - --plan pro"), 0);
  const count = remote.requests.length;
  const inputs = remote.requests.map((body) => {
    const { args, input } = JSON.parse(body);
    assertEquals(args, ["accounts", "create", "-", "--plan", "pro"]);
    assert(new TextEncoder().encode(body).length <= 300_000);
    return input;
  });
  assert(count > 1);
  assertEquals(inputs.join("\n").split("\n"), names);
  assertEquals(operator.err.slice(0, 3), [`Part 1 of ${count}:`, "Made some.", `Part 2 of ${count}:`]);

  remote.requests = [];
  remote.respond = () => exit(remote.requests.length === 2 ? 1 : 0);
  assertEquals(await operator.run("accounts create - --plan pro"), 1);
  assertEquals(remote.requests.length, 2);
});

Deno.test("messages take over HTTP removes only printed messages, even if a response breaks off", async () => {
  await using operator = await Operator.start();
  await using remote = await Remote.of(operator);
  await addMessages(remote.service, 230);
  const all = Array.from({ length: 230 }, (_, number) => `${number + 1}`);
  remote.respond = async (send, body) => body.includes("take") ? cut(await send(), 2) : await send();

  assertEquals(await operator.run("messages take 5"), 1);
  assertEquals(textsOf(operator), all.slice(0, 2));
  assertEquals(operator.err, ["The connection broke, so it is unknown how the command ended."]);

  operator.reader = (line) => line.includes('"4"') ? Promise.reject(new Error("gone")) : Promise.resolve();
  remote.respond = (send) => send();
  assertEquals(await operator.run("messages take 5"), 1);
  assertEquals([textsOf(operator), operator.err], [all.slice(2, 3), ["Failed: gone"]]);

  operator.reader = () => Promise.resolve();
  remote.respond = (send, body) => body.includes("remove") ? new Response("{}", { status: 503 }) : send();
  assertEquals(await operator.run("messages take 5"), 1);
  assertEquals([textsOf(operator), operator.err.length], [all.slice(3, 8), 1]);

  remote.respond = (send) => send();
  assertEquals(await operator.run("messages take 227"), 0);
  assertEquals([textsOf(operator), operator.err], [all.slice(3), ["Took 227 messages."]]);
});

Deno.test("main() prints why there is no response if nothing listens", async () => {
  await using operator = await Operator.start();
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const url = `http://127.0.0.1:${listener.addr.port}`;
  listener.close();
  operator.environment.set("SERVICE_URL", url);
  operator.environment.set("OPERATOR_TOKEN", TOKEN);

  assertEquals(await operator.run("accounts list"), 1);
  assertMatch(operator.err.join(), /^There was no response from http:\/\/[\d.:]+: [^:]+ \(os error \d+\)\.$/);
});

Deno.test("main() gives up after a minute of silence, before or during a response", async () => {
  await using operator = await Operator.start();
  await using remote = await Remote.of(operator);
  const end = Promise.withResolvers<Response>();
  const begun = () =>
    new Response(ReadableStream.from((async function* () {
      yield new TextEncoder().encode('{"out":"one"}\n');
      await end.promise;
    })()));

  for (const [respond, out] of [[() => end.promise, []], [begun, ["one"]]] as const) {
    const { promise: arrived, resolve } = Promise.withResolvers<void>();
    operator.reader = () => Promise.resolve(resolve());
    remote.respond = () => (out.length === 0 && resolve(), respond());
    using time = new VirtualTime();
    const run = operator.run("accounts list");
    await arrived;
    await time.advance(59_999);
    assertEquals(operator.err, []);
    await time.advance(1);

    assertEquals([await run, operator.out], [1, [...out]]);
    assertMatch(
      operator.err.join(),
      /^http:\/\/127\.0\.0\.1:\d+ does not respond, so it is unknown what was done\.$/,
    );
  }
  end.resolve(new Response());
});

Deno.test("main() exits with 1 and prints in one line why a service does not run a command", async () => {
  await using operator = await Operator.start();
  await using remote = await Remote.of(operator);
  const { service } = remote;
  const fail = async (respond: Responder, token = TOKEN) => {
    remote.respond = respond;
    operator.environment.set("OPERATOR_TOKEN", token);
    const code = await operator.run("accounts list");
    assertEquals([code, operator.err.filter((line) => !line.startsWith("id\t")).length], [1, 1]);
    return operator.err.at(-1);
  };
  const reply = (body: string, status = 200): Responder => () => new Response(body, { status });
  const brokeOff = "The connection broke, so it is unknown how the command ended.";

  assertEquals(await fail(async (send) => cut(await send(), 1)), brokeOff);
  assertEquals(await fail(reply("")), brokeOff);
  assertEquals(await fail(reply("<html>\n")), brokeOff);
  assertEquals(await fail(reply("<html>", 502)), "The service returned 502.");
  assertEquals(await fail(reply('{"code":"overloaded","message":"Too many."}', 503)), "Too many.");
  assertEquals(await fail(reply('{"error":"forbidden"}', 403)), "The service returned 403.");
  const redirect = () =>
    new Response(null, { status: 307, headers: { location: "https://localhost/operator" } });
  assertEquals(
    await fail(redirect),
    "The service has moved. Set SERVICE_URL to the beginning of https://localhost/operator.",
  );
  assertMatch(await fail((send) => send(), TOKEN.replace("0", "1")) ?? "", /^OPERATOR_TOKEN is not this/);
  await using closed = await Harness.open();
  const none = await closed.fetch("POST /operator", ADD);
  assertMatch(
    await fail(() => none) ?? "",
    /^The service runs without OPERATOR_TOKEN, or SERVICE_URL is not its address/,
  );
  assertEquals(await fail((send) => send(), ""), "With SERVICE_URL, also set OPERATOR_TOKEN.");
  assertEquals(service.errors, []);

  remote.requests = [];
  for (
    const [command, code] of [["accounts frobnicate", 2], ["messages take all", 2], ["pets -h", 0]] as const
  ) {
    assertEquals(await operator.run(command), code);
  }
  assertEquals(remote.requests, []);
});
