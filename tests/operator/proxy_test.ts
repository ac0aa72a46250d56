// The nginx of the guide for operators: the very file, on other ports, with a certificate made for the test.
import { assert, assertEquals } from "@std/assert";
import { pause } from "../../src/base/time.ts";
import { PROXY_ERRORS } from "../../src/service/mod.ts";
import { ERRORS } from "../../src/web/error.ts";
import { freePort, succeeds } from "../process/process.ts";
import { type Endpoint, exchange, RawConnection, rawRequest } from "../process/raw_connection.ts";
import { upTo } from "../support/client.ts";
import { lacks } from "../support/programs.ts";

const GUIDE = await Deno.readTextFile(new URL("../../src/operator/README.md", import.meta.url));
const [FILE = ""] = /(?<=^```nginx\n)user [^]+?(?=^```$)/m.exec(GUIDE) ?? [];
const ignore = lacks("nginx", "openssl");

/** What takes the place of a text of the file. */
type Replacement = readonly [from: string, to: string];

/** Returns a text in which each of these was replaced, which it must contain. */
function replaced(text: string, replacements: readonly Replacement[]): string {
  return replacements.reduce((text, [from, to]) => {
    assert(text.includes(from), from);
    return text.replaceAll(from, to);
  }, text);
}

/** The nginx of the guide, in front of a service. */
class Nginx implements AsyncDisposable {
  /** Where it speaks HTTP, and redirects. */
  readonly plain: Endpoint = { port: freePort() };
  readonly tls: Endpoint & { readonly certificate: string };
  readonly #folder: string;
  readonly #args: readonly string[];

  private constructor(folder: string, certificate: string) {
    this.#folder = folder;
    this.#args = ["-p", folder, "-c", "nginx.conf", "-e", "error.log"];
    this.tls = { port: freePort(), certificate };
  }

  /** Starts it in front of a port. */
  static async start(service: number, replacements: readonly Replacement[] = []): Promise<Nginx> {
    const folder = await Deno.makeTempDir();
    const made = ["-keyout", `${folder}/privkey.pem`, "-out", `${folder}/fullchain.pem`];
    const name = ["-subj", "/CN=pets.example", "-addext", "subjectAltName=IP:127.0.0.1"];
    const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    const isServer = ["-addext", "basicConstraints=critical,CA:FALSE"];
    await succeeds("openssl", "req", "-x509", ...key, ...name, ...isServer, ...made);
    const nginx = new Nginx(folder, await Deno.readTextFile(`${folder}/fullchain.pem`));
    const file = replaced(FILE.replaceAll(/^ +listen \[::\]:.*\n/gm, ""), [
      ["/run/nginx.pid", "pid"],
      ["/var/log/nginx/", ""],
      ["/etc/letsencrypt/live/pets.example/", `${folder}/`],
      ["listen 80;", `listen 127.0.0.1:${nginx.plain.port};`],
      ["listen 443 ssl", `listen 127.0.0.1:${nginx.tls.port} ssl`],
      ["127.0.0.1:8000", `127.0.0.1:${service}`],
      ...replacements,
    ]);
    await Deno.writeTextFile(`${folder}/nginx.conf`, file);
    await succeeds("nginx", ...nginx.#args);
    return nginx;
  }

  /** Waits for the first line of its access log, which it writes after the response. */
  async firstAccess(): Promise<Record<string, unknown>> {
    while (true) {
      const [line = "", ...others] = (await Deno.readTextFile(`${this.#folder}/access.log`)).split("\n");
      if (others.length > 0) return JSON.parse(line);
      await pause(10);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await succeeds("nginx", ...this.#args, "-s", "stop");
    await Deno.remove(this.#folder, { recursive: true });
  }
}

/** Codes of HTTP and of proxies. */
const CODES = new Set([...Object.values(ERRORS), ...PROXY_ERRORS].map(({ code }) => code));
const GET = rawRequest("GET /v1/account");
/** Requests that nginx refuses, and the status. */
const REFUSED: readonly [request: string, status: number][] = [
  ["GARBAGE\r\n\r\n", 400],
  [rawRequest(`GET /${"a".repeat(9_000)}`), 414],
  [rawRequest("GET /", { "x-long": "a".repeat(9_000) }), 400],
  [rawRequest("GET /", { host: "a b" }), 400],
  [rawRequest("GET /../../etc/passwd"), 400],
  [rawRequest("TRACE /"), 405],
  [rawRequest("POST /v1/things", { "content-length": "2000000" }), 413],
  [rawRequest("POST /v1/things", { "transfer-encoding": "gzip" }), 501],
  [GET.replace("HTTP/1.1", "HTTP/9.9"), 505],
  [rawRequest("GET /proxy-error"), 404],
];

/** Sends a request that nginx itself must answer, with an Error body of a code that clients know. */
async function assertRefused(at: Endpoint, request: string, status: number, code?: string): Promise<void> {
  const answer = await exchange(at, request);
  assertEquals([request.slice(0, 50), answer.status], [request.slice(0, 50), status]);
  assertEquals(answer.headers.get("content-type"), "application/json");
  const body = JSON.parse(answer.body);
  assertEquals([Object.keys(body), body.status], [["code", "message", "status"], status]);
  assert(CODES.has(body.code), body.code);
  assertEquals(body.code, code ?? body.code);
  assertEquals(answer.headers.get("retry-after"), status === 429 || status === 502 ? "5" : null);
}

Deno.test({
  name: "nginx of the guide answers with an Error body that clients know whenever it responds itself",
  ignore,
  async fn() {
    const service = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    await using nginx = await Nginx.start(service.addr.port, [["networks 100;", "networks 1;"]]);
    const { tls } = nginx;

    for (const [request, status] of REFUSED) await assertRefused(tls, request, status);
    {
      using waiting = await RawConnection.open(tls.port, tls);
      await waiting.send(GET);
      using _passed = await service.accept();
      await assertRefused(tls, GET, 429, "too_many_connections");
      service.close();
    }
    await assertRefused(tls, GET, 502, "service_unreachable");
  },
});

Deno.test({
  name: "nginx of the guide redirects to TLS, but refuses a request that has a key already",
  ignore,
  async fn() {
    await using nginx = await Nginx.start(freePort());
    const target = "GET /v1/account?a=b";

    const { status, headers } = await exchange(nginx.plain, rawRequest(target));

    assertEquals([status, headers.get("location")], [308, "https://pets.example/v1/account?a=b"]);
    const withKey = rawRequest(target, { authorization: "Bearer as_live_1" });
    await assertRefused(nginx.plain, withKey, 400, "invalid_request");
  },
});

Deno.test({
  name: "nginx of the guide counts the requests under way of a /64 of IPv6 together",
  ignore,
  async fn() {
    const service = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    await using nginx = await Nginx.start(service.addr.port, [
      ["networks 100;", "networks 1;"],
      ["http {", "http { set_real_ip_from 127.0.0.1; real_ip_header x-test-address;"],
    ]);
    const { tls } = nginx;
    const from = (address: string) => rawRequest("GET /v1/account", { "x-test-address": address });
    /** Sends a request that nginx passes on, and never answers it. */
    const occupy = async (address: string) => {
      const connection = await RawConnection.open(tls.port, tls);
      await connection.send(from(address));
      return [connection, await service.accept()] as const;
    };

    const occupied = [];
    for (const address of ["2001:db8::1", "2001:db8:0:1::1", "192.0.2.1", "192.0.2.2"]) {
      occupied.push(...await occupy(address));
    }

    for (const address of ["2001:db8::ffff:ffff:ffff:ffff", "2001:db8:0:1:2::", "192.0.2.1"]) {
      await assertRefused(tls, from(address), 429, "too_many_connections");
    }
    for (const one of [...occupied, service]) one[Symbol.dispose]();
  },
});

Deno.test({
  name: "nginx of the guide passes requests on, and logs the ids of responses, during 1,600 half-open heads",
  ignore,
  async fn() {
    let served = 0;
    await using service = Deno.serve(
      { hostname: "127.0.0.1", port: 0, onListen() {} },
      () => new Response("{}", { headers: { "x-request-id": `service-${++served}` } }),
    );
    // With one process, the test does not depend on the number of cores.
    await using nginx = await Nginx.start(service.addr.port, [
      ["worker_processes auto;", "worker_processes 1;"],
      ["client_header_timeout 10s;", "client_header_timeout 3s;"],
    ]);
    const { plain, tls } = nginx;
    const halfOpen: RawConnection[] = [];
    for (const number of upTo(1_600)) {
      const connection = await RawConnection.open(number % 2 === 0 ? plain.port : tls.port);
      halfOpen.push(connection);
      // nginx makes room by closing connections that have sent nothing.
      await connection.send(number % 2 === 0 ? "G" : "\x16");
    }

    const answer = await exchange(tls, rawRequest("GET /v1/account", { "x-request-id": "of-the-client" }));

    assertEquals([answer.status, answer.headers.get("x-request-id")], [200, "service-1"]);
    const access = await nginx.firstAccess();
    assertEquals(access, { ...access, address: "127.0.0.1", method: "GET", status: 200, id: "service-1" });
    // Ends only if nginx ends them all.
    await Promise.all(halfOpen.map((connection) => connection.receiveRest()));
    for (const connection of halfOpen) connection[Symbol.dispose]();
  },
});
