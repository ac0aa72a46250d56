// The nginx of the guide for operators, with HTTP in place of TLS, and its systemd unit.
import { assert, assertEquals, assertLess } from "@std/assert";
import { PROXY_ERRORS } from "../../src/operator/operations.ts";
import { ERRORS } from "../../src/web/error.ts";
import { freePort } from "../process/process.ts";
import { exchange, RawConnection, rawRequest } from "../process/raw_connection.ts";

/** Codes of HTTP and of proxies. */
const CODES = new Set([...Object.values(ERRORS), ...PROXY_ERRORS].map(({ code }) => code));
const GUIDE = await Deno.readTextFile(`${import.meta.dirname}/../../src/operator/README.md`);
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

/** Runs a program that must succeed; false if it is not installed. */
async function run(program: string, ...args: readonly string[]): Promise<boolean> {
  try {
    const { success, stdout, stderr } = await new Deno.Command(program, { args: [...args] }).output();
    assert(success, [stderr, stdout].map((bytes) => new TextDecoder().decode(bytes)).join(""));
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

Deno.test({
  name: "nginx of the guide answers with an Error body that clients know whenever it responds itself",
  ignore: !await run("nginx", "-v"),
  async fn() {
    const [port, folder] = [freePort(), await Deno.makeTempDir()];
    const service = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const [block = ""] = /(?<=```nginx\n)limit_conn_zone[^`]+/.exec(GUIDE) ?? [];
    const config = block.replace(/^server \{\n +listen 80;[^}]*\}/m, "")
      .replaceAll(/^ +(listen \[::\]|ssl_).*\n/gm, "").replace(
        "listen 443 ssl http2;",
        `listen 127.0.0.1:${port};`,
      )
      .replace("addresses 100;", "addresses 1;").replace("127.0.0.1:8000", `127.0.0.1:${service.addr.port}`);
    await Deno.writeTextFile(
      `${folder}/nginx.conf`,
      `error_log error.log; pid pid; events {} http { ${config} }`,
    );
    const args = ["-p", folder, "-c", "nginx.conf", "-e", "error.log"];
    await using cleanup = new AsyncDisposableStack();
    cleanup.defer(() => Deno.remove(folder, { recursive: true }));
    await run("nginx", ...args);
    cleanup.defer(async () => void await run("nginx", ...args, "-s", "stop"));
    const refusal = async (request: string, status: number, code?: string) => {
      const answer = await exchange({ port }, request);
      assertEquals([request.slice(0, 50), answer.status], [request.slice(0, 50), status]);
      assertEquals(answer.headers.get("content-type"), "application/json");
      const body = JSON.parse(answer.body);
      assertEquals([Object.keys(body), body.status], [["code", "message", "status"], status]);
      assert(CODES.has(body.code), body.code);
      assertEquals(body.code, code ?? body.code);
      assertEquals(answer.headers.get("retry-after"), status === 429 || status === 502 ? "5" : null);
    };

    for (const [request, status] of REFUSED) await refusal(request, status);
    {
      using waiting = await RawConnection.open(port);
      await waiting.send(GET);
      using _passed = await service.accept();
      await refusal(GET, 429, "too_many_connections");
      service.close();
    }
    await refusal(GET, 502, "service_unreachable");
  },
});

const [UNIT = ""] = /(?<=^```ini\n)\[Unit\]\n[^]*?(?=^```$)/m.exec(GUIDE) ?? [];

Deno.test("guide's systemd unit gives up on a service that fails at once", () => {
  const numberOf = (name: string) => Number(RegExp(`^${name}=(\\d+)$`, "m").exec(UNIT)?.[1]);

  assertLess(numberOf("StartLimitBurst") * numberOf("RestartSec"), numberOf("StartLimitIntervalSec") / 2);
});

Deno.test({
  name: "guide's systemd unit has an exposure under 3",
  ignore: !await run("systemd-analyze", "--version"),
  async fn() {
    const folder = await Deno.makeTempDir();
    const path = `${folder}/store.service`;
    await Deno.writeTextFile(path, UNIT);
    try {
      await run("systemd-analyze", "security", "--offline=true", "--threshold=29", "--no-pager", path);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});
