import { assertEquals, assertMatch } from "@std/assert";
import { cut } from "../support/client.ts";
import { Harness } from "../support/harness.ts";
import { Operator } from "../support/operator.ts";
import { VirtualTime } from "../support/time.ts";

const TOKEN = "0123456789-abcdef~0123456789+abcdef=";

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

Deno.test("COMMAND does the same over HTTP as on the KV", async () => {
  const runAll = async (operator: Operator, service: Harness) => {
    const { id, key } = await operator.createAccount("--plan pro");
    await service.fetch("POST /v1/things", { key, json: { name: "Grüße 🐶", weight: 7 } });
    await service.app.settle();
    operator.input = ["Zoë", "", "Tom"];
    const results: unknown[] = [];
    for (
      const command of [
        ...["rotate ID --grace 1h", "plan ID business", "show ID", "delete ID", "close ID", "show acct_none"],
        ...["create -", "create a --plan gold", "list --json"],
      ].map((command) => `accounts ${command.replace("ID", id)}`)
        .concat("items things list", "items things set 1 --state lost", "items things delete 2", "cats")
    ) {
      const code = await operator.run(command);
      // Accounts are listed in order of their IDs, which are random, as are references.
      const out = operator.out.map((line) =>
        line.replaceAll(/(as_test|acct)_\w+|("reference": ?).*/g, "$1$2")
      )
        .sort();
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

Deno.test("accounts list follows no link to a page that it has printed", async () => {
  await using operator = await Operator.start();
  await using remote = await Remote.of(operator);
  for (
    const [query, pages] of [["?limit=500", 1], ["?x=1&limit=500", 1], ["?limit=500&cursor=b", 2]] as const
  ) {
    remote.requests = [];
    remote.respond = () => new Response("[]", { headers: { link: `<http://x${query}>; rel="next"` } });

    assertEquals(await operator.run("accounts list"), 1);
    assertEquals(operator.err.at(-1), "The service returned a page that links to itself or back.");
    assertEquals(remote.requests.length, pages);
  }
});

Deno.test("accounts rotate prints no text that is not a key, and no controls in that of a service", async () => {
  await using operator = await Operator.start();
  const { id, key } = await operator.createAccount();
  await using remote = await Remote.of(operator);
  let apiKey = key;
  remote.respond = async (send) => {
    const issued = await (await send()).json();
    return Response.json(
      { account: { ...issued.account, id: "acct\u0007_1", name: "me\u001b[2J" }, apiKey },
      { status: 201 },
    );
  };

  assertEquals([await operator.run(`accounts rotate ${id}`), operator.out], [0, [key]]);
  assertMatch(operator.err[0] ?? "", /^\w+: acct\ufffd_1, me\ufffd\[2J, staging, /);
  for (apiKey of ["", `${key}\u001b[2J`, key.slice(1), `${key}x`]) {
    assertEquals([await operator.run(`accounts rotate ${id}`), operator.out], [1, []]);
    assertMatch(operator.err.join(), /^The answer is not what this version of the command expects/);
  }
});

Deno.test("main() says what is unknown if there is no response, or the connection breaks, here or at a proxy", async () => {
  await using operator = await Operator.start();
  await using remote = await Remote.of(operator);
  const results: unknown[] = [];
  const runBoth = async () => {
    for (const command of ["accounts rotate acct_1", "accounts show acct_1"]) {
      results.push([
        await operator.run(command),
        ...operator.err.map((line) => line.replace(/:\d+: [^:]+ \(os error \d+\)/, ": WHY")),
      ]);
    }
  };
  remote.respond = () => Response.json({ message: "Not reachable." }, { status: 502 });
  await runBoth();
  remote.respond = () => new Response("<html>", { status: 504 });
  await runBoth();
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  operator.environment.set("SERVICE_URL", `http://127.0.0.1:${listener.addr.port}`);
  const closing = (async () => {
    for await (const connection of listener) {
      await connection.read(new Uint8Array(1_000));
      connection.close();
    }
  })();
  await runBoth();
  listener.close();
  await closing;
  await runBoth();

  const none = "There was no response from http://127.0.0.1: WHY.";
  assertEquals(results, [
    [1, "Not reachable. It is unknown what was done."],
    [1, "Not reachable."],
    [1, "The service returned 504. It is unknown what was done."],
    [1, "The service returned 504."],
    [1, "The connection broke. It is unknown what was done."],
    [1, "The connection broke. Nothing was changed."],
    [1, none],
    [1, none],
  ]);
});

Deno.test("main() gives up after a minute without a whole response", async () => {
  await using operator = await Operator.start();
  await using remote = await Remote.of(operator);
  const end = Promise.withResolvers<Response>();
  const begun = () =>
    new Response(ReadableStream.from((async function* () {
      yield new TextEncoder().encode("[");
      await end.promise;
    })()));

  for (const respond of [() => end.promise, begun]) {
    const { promise: arrived, resolve } = Promise.withResolvers<void>();
    remote.respond = () => (resolve(), respond());
    using time = new VirtualTime();
    const run = operator.run("accounts show acct_1");
    await arrived;
    await time.advance(59_999);
    assertEquals(operator.err, []);
    await time.advance(1);

    assertEquals(await run, 1);
    assertMatch(
      operator.err.join(),
      /^http:\/\/127\.0\.0\.1:\d+ does not respond\. Nothing was changed\.$/,
    );
  }
  end.resolve(new Response());
});

Deno.test("main() exits with 1 and prints in one line why a service refuses", async () => {
  await using operator = await Operator.start();
  await using remote = await Remote.of(operator);
  const fail = async (respond: Responder, token = TOKEN) => {
    remote.respond = respond;
    operator.environment.set("OPERATOR_TOKEN", token);
    const code = await operator.run("accounts show acct_1");
    assertEquals([code, operator.err.length], [1, 1]);
    return operator.err.at(-1);
  };
  const reply = (body: string, status = 200): Responder => () => new Response(body, { status });
  const otherwise =
    "The answer is not what this version of the command expects, so it is unknown what was done.";

  for (const body of ["", "<html>\n", "{}"]) assertEquals(await fail(reply(body)), otherwise);
  assertEquals(await fail(reply("<html>", 502)), "The service returned 502.");
  assertEquals(await fail(reply('{"code":"overloaded","message":"Too many."}', 503)), "Too many.");
  assertEquals(await fail(reply('{"error":"forbidden"}', 403)), "The service returned 403.");
  const location = "https://localhost/operator/v1/accounts/acct_1";
  assertEquals(
    await fail(() => new Response(null, { status: 307, headers: { location } })),
    `The service has moved. Set SERVICE_URL to the beginning of ${location}.`,
  );
  const wrong = TOKEN.replace("0", "1");
  for (const token of [wrong, `${wrong},${TOKEN}`]) {
    assertEquals(await fail((send) => send(), token), "OPERATOR_TOKEN is not this service's token.");
  }
  assertMatch(await fail((send) => send(), `${TOKEN},${wrong}`) ?? "", /^There is no account/);
  await using closed = await Harness.open();
  const none = await closed.fetch("GET /operator/v1/accounts/acct_1");
  assertMatch(
    await fail(() => none.clone()) ?? "",
    /^The service runs without OPERATOR_TOKEN, or SERVICE_URL is not its address/,
  );
  assertEquals(await fail((send) => send(), ""), "With SERVICE_URL, also set OPERATOR_TOKEN.");
  assertEquals(remote.service.errors, []);

  const [wild, tame] = ["No\u001b[2J\n\u202eone", "No\ufffd[2J\ufffd\ufffdone"];
  for (const status of [409, 503]) {
    assertEquals(await fail(reply(JSON.stringify({ message: wild }), status)), `${tame}.`);
  }
  const elsewhere = new Response(null, { status: 307, headers: { location: "/\u009b2J" } });
  assertMatch(await fail(() => elsewhere) ?? "", /the beginning of \/\ufffd2J\.$/);

  remote.requests = [];
  for (
    const [command, code] of [["accounts frobnicate", 2], ["items things set", 2], ["items -h", 0]] as const
  ) {
    assertEquals(await operator.run(command), code);
  }
  assertEquals(remote.requests, []);
});
