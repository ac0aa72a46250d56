import { assertEquals, assertMatch } from "@std/assert";
import { print } from "../../src/terminal.ts";
import { ServedStore } from "./temporary_store.ts";

const CHROMIUM = findProgram(["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]);
if (CHROMIUM === undefined) print("There is no Chromium in PATH: the test with a browser is skipped.");

Deno.test({
  name: "server lets a page of another origin call it and read its headers when a browser asks",
  ignore: CHROMIUM === undefined,
  async fn() {
    await using served = await ServedStore.start({ perDay: 1_000 });
    const html = page(served.server.origin, `Bearer ${served.key}`);
    await using shop = Deno.serve(
      { hostname: "127.0.0.1", port: 0, onListen: () => {} },
      () => new Response(html, { headers: { "content-type": "text/html" } }),
    );

    const dom = await dumpDom(`http://localhost:${shop.addr.port}/`, `${served.store.folder}/profile`);

    const exchanges: Exchange[] = JSON.parse(/<pre>(.*)<\/pre>/s.exec(dom)?.[1] ?? dom);
    assertEquals(exchanges.map(({ status }) => status), [201, 200, 401]);
    const [created = {}, listed = {}, refused = {}] = exchanges.map(({ headers }) => headers);
    assertEquals(exchanges[1]?.body, [{ id: 1, name: "Rex", categoryId: 7, status: "available" }]);
    assertMatch(created["location"] ?? "", /\/v1\/pets\/1$/);
    assertMatch(listed["etag"] ?? "", /^"[^"]+"$/);
    assertEquals(listed["x-ratelimit-limit"], "1000");
    assertMatch(listed["ratelimit"] ?? "", /^"minute";r=\d+;t=\d+, "day";r=99\d;t=\d+$/);
    assertEquals(refused["www-authenticate"], 'Bearer realm="animal-store", error="invalid_token"');
    assertEquals(refused["x-ratelimit-limit"], "60");
  },
});

/** What the page could read of an answer. */
interface Exchange {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** A page that calls the API and writes what it could read of the answers into its document. */
function page(api: string, authorization: string): string {
  return `<!doctype html><title>Shop</title><body><script type="module">
    const exchange = async (init) => {
      const response = await fetch("${api}/v1/pets", init);
      return { status: response.status, headers: Object.fromEntries(response.headers), body: await response.json() };
    };
    const authorization = "${authorization}";
    const report = document.createElement("pre");
    try {
      report.textContent = JSON.stringify([
        await exchange({
          method: "POST",
          headers: { authorization, "content-type": "application/json", "idempotency-key": "rex" },
          body: JSON.stringify({ name: "Rex", categoryId: 7 }),
        }),
        await exchange({ headers: { authorization } }),
        await exchange({ headers: { authorization: "Bearer nonsense" } }),
      ]);
    } catch (error) {
      report.textContent = JSON.stringify(String(error));
    }
    document.body.append(report);
  </script>`;
}

/** The document at the address, once its requests are answered. */
async function dumpDom(address: string, profile: string): Promise<string> {
  const options = "headless no-sandbox disable-gpu disable-dev-shm-usage no-first-run dump-dom".split(" ");
  const { stdout, stderr } = await new Deno.Command(CHROMIUM ?? "", {
    args: [
      ...options.map((option) => `--${option}`),
      ...[`--user-data-dir=${profile}`, "--virtual-time-budget=30000", address],
    ],
    stdin: "null",
  }).output();
  const [dom = "", said] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
  if (!dom.includes("<pre>")) throw new Error(`No report from the page:\n${dom}\n${said}`);
  return dom;
}

/** The path of the first of these programs that is in a folder of PATH. */
function findProgram(names: readonly string[]): string | undefined {
  const folders = (Deno.env.get("PATH") ?? "").split(":");
  const paths = names.flatMap((name) => folders.map((folder) => `${folder}/${name}`));
  return paths.find(isFile);
}

function isFile(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}
