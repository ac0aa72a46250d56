import { BASE_PATH } from "../../src/resource/interface.ts";
import config from "../../deno.json" with { type: "json" };
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { errorsOf, isDocumented } from "../../src/web/openapi.ts";
import { resource } from "../../src/resource/mod.ts";
import { int64 } from "../../src/web/schema.ts";
import { html as template } from "../../src/page/html.ts";
import { LEAD, SUMMARY, TAGLINE } from "../../src/catalogue/identity.ts";
import { OF_THINGS } from "../support/things.ts";
import { Harness, type HarnessOptions } from "../support/harness.ts";
import { SAMPLES } from "../support/operations.ts";
import { VirtualTime } from "../support/time.ts";

const FOLDER = new URL("../../src/page/", import.meta.url);
const MAX_BYTES = 30_000;

/** Requests a path of a service, by default its page, at this host. */
function get(service: Harness, host: string, path = "/"): Response | Promise<Response> {
  const request = new Request(`http://${host}${path}`, { headers: { host } });
  return service.app.fetch(request, {
    remoteAddr: { transport: "tcp", hostname: service.address, port: 1 },
  });
}

/** The page of a service with these options. */
async function getPage(options: HarnessOptions = {}): Promise<{ response: Response; html: string }> {
  await using service = await Harness.open(options);
  const response = await get(service, "localhost:8000");
  return { response, html: await response.text() };
}

async function hashOf(text: string): Promise<string> {
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return `'sha256-${btoa(String.fromCharCode(...new Uint8Array(hash)))}'`;
}

/** Asserts that the page has these texts. Names only those that it lacks. */
function assertHas(html: string, ...texts: readonly string[]): void {
  assertEquals(texts.filter((text) => !html.includes(text)), []);
}

/** Asserts that the page has none of these texts. */
function assertLacks(html: string, ...texts: readonly string[]): void {
  assertEquals(texts.filter((text) => html.includes(text)), []);
}

Deno.test("getPage() returns a page that is free of charge and must be revalidated", async () => {
  const { response } = await getPage();
  const { headers } = response;

  assertEquals(response.status, 200);
  assertEquals(headers.get("content-type"), "text/html; charset=utf-8");
  assertEquals(headers.get("cache-control"), "no-cache");
  assertEquals(headers.get("referrer-policy"), "no-referrer");
  assertEquals(headers.get("x-content-type-options"), "nosniff");
  assertEquals(headers.get("link"), '</v1/openapi.json>; rel="service-desc"');
  assertEquals(headers.get("x-ratelimit-limit"), null);
});

Deno.test("getPage() returns 304 to a client that has the page, and supports HEAD", async () => {
  await using service = await Harness.open();
  const etag = (await service.fetch("GET /")).headers.get("etag") ?? "";

  const known = await service.fetch("GET /", { headers: { "if-none-match": etag } });
  const head = await service.fetch("HEAD /");

  assertMatch(etag, /^"[\da-f]{32}"$/);
  assertEquals([known.status, await known.text(), known.headers.get("etag")], [304, "", etag]);
  assertEquals([head.status, head.headers.get("etag")], [200, etag]);
});

Deno.test("page and document are the same for every host", async () => {
  await using service = await Harness.open();
  for (const path of ["/", "/v1/openapi.json"]) {
    const one = await get(service, "one.example", path);
    const other = await get(service, "other.example", path);

    assertEquals(other.headers.get("etag"), one.headers.get("etag"));
    const text = await one.text();
    assertEquals(await other.text(), text);
    assert(!text.includes("one.example"));
  }
});

Deno.test("getPage() allows only its own style and script", async () => {
  const { response, html } = await getPage();
  const policy = response.headers.get("content-security-policy") ?? "";
  const [style, script] = ["style", "script"].map((name) =>
    [...html.matchAll(new RegExp(`<${name}\\b[^>]*>(.*?)</${name}>`, "gs"))].map(([, text = ""]) => text)
  );

  assertEquals([style?.length, script?.length], [1, 1]);
  assertStringIncludes(policy, `style-src ${await hashOf(style?.[0] ?? "")};`);
  assertStringIncludes(policy, `script-src ${await hashOf(script?.[0] ?? "")};`);
  assertStringIncludes(policy, "default-src 'none'; ");
  assertStringIncludes(policy, "connect-src 'self';");
  for (const rule of ["base-uri", "form-action", "frame-ancestors"]) {
    assertStringIncludes(policy, `${rule} 'none'`);
  }
  assertEquals(html.match(/ style=| on\w+=|javascript:/g), null);
});

Deno.test("getPage() contains the public URL, or else paths and a placeholder of the host", async () => {
  const own = await getPage();
  const { response, html } = await getPage({ publicUrl: "https://workshop.example/things" });

  assertHas(own.html, "'http://THIS_HOST/v1/things'");
  assertHas(own.html, 'href="/v1/openapi.json"');
  assertHas(html, "'https://workshop.example/things/v1/things'");
  assertHas(html, 'href="https://workshop.example/things/v1/openapi.json"');
  assertHas(html, 'data-base="https://workshop.example/things"');
  const policy = response.headers.get("content-security-policy") ?? "";
  assertStringIncludes(policy, "connect-src 'self' https://workshop.example;");
  assertEquals(
    response.headers.get("link"),
    '<https://workshop.example/things/v1/openapi.json>; rel="service-desc"',
  );
});

Deno.test("getPage() offers sign-up only if it is open", async () => {
  const open = await getPage();
  const closed = await getPage({ signUpIsOpen: false, environment: "production" });

  assertHas(open.html, '<body data-sign-up="open">');
  assertHas(open.html, 'data-key="make"');
  assertHas(open.html, 'id="sign-up-curl"');
  assertHas(open.html, "as_test_");
  assertHas(closed.html, '<body data-sign-up="closed">');
  assertHas(closed.html, 'data-key="paste"');
  assertLacks(closed.html, 'id="sign-up-curl"');
  assertHas(closed.html, "<code>deno task accounts create</code>");
  assertHas(closed.html, "as_live_");
});

Deno.test("getPage() contains every operation, error and plan of the API", async () => {
  const { html } = await getPage();

  const ofClients = SAMPLES.map(({ operation }) => operation).filter((operation) =>
    isDocumented(operation, BASE_PATH)
  );
  for (const { id } of ofClients) {
    assertHas(html, `<article id="${id}"`, `id="request-${id}"`, `value="${id}"`, `data-try="${id}"`);
  }
  for (const { code } of new Set(ofClients.flatMap(errorsOf))) {
    assertHas(html, `id="error-${code}"`);
  }
  assertHas(html, "/health", "/ready", "/docs/deprecations");
  assertHas(html, ...[TAGLINE, SUMMARY, ...LEAD].map((text) => `${template`${text}`}`));
  assertMatch(html, /business<\/th>\s*<td class="number">1,000<\/td>\s*<td class="number">100,000<\/td>/);
});

Deno.test("getPage() describes fields with their bounds, also if they can be null", async () => {
  const { html } = await getPage();

  for (
    const facts of [
      "query, integer, 1 to 100, default 20",
      "body, string, 1 to 255 characters, required",
      "body, array, at most 5 items",
      "body, array or null, at most 5 items",
    ]
  ) assertStringIncludes(html, `<i>${facts}.</i>`);
});

Deno.test("getPage() explains Prefer once, and fills it in for the operations that accept it", async () => {
  const { html } = await getPage();

  const lenient = SAMPLES.filter(({ operation }) =>
    isDocumented(operation, BASE_PATH) && "Prefer" in operation.headers
  );
  assertEquals(html.match(/<input name="Prefer"[^>]* value="handling=strict"/g)?.length, lenient.length);
  assertEquals(html.match(/>Prefer: handling=strict</g)?.length, 1);
  assertEquals(html.match(/<dt><code>Prefer</g), null);
});

Deno.test("getPage() contains no duplicate IDs, broken links or external resources", async () => {
  const { html } = await getPage();
  const page = html.replace(/<script[^]*<\/script>|<style>[^]*<\/style>/g, "");
  const ids = [...page.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id);
  const links = [...page.matchAll(/ (?:href="#|for="|data-copy="|data-try=")([^"]*)"/g)].map(([, id]) => id);

  assertEquals(page.match(/undefined|\[object|NaN/g), null);
  assertEquals(ids.length, new Set(ids).size);
  assertEquals(links.filter((id) => !ids.includes(id)), []);
  const addresses = [...page.matchAll(/ (?:src|href)="([^"#]*)"/g)].map(([, address = ""]) => address);
  assertEquals(addresses.filter((address) => !/^data:|^\//.test(address)), []);
});

Deno.test("getPage() returns one response of at most 30 kB, compressed", async () => {
  await using service = await Harness.open();
  const request = new Request("http://localhost:8000/", { headers: { "accept-encoding": "gzip" } });
  const response = await service.app.fetch(request, {
    remoteAddr: { transport: "tcp", hostname: service.address, port: 1 },
  });
  const { length } = await response.bytes();

  assertEquals(response.headers.get("content-encoding"), "gzip");
  assert(length <= MAX_BYTES, `${length} bytes`);
});

Deno.test("getPage() names the version, and the contact if there is one", async () => {
  const own = await getPage();
  const { html } = await getPage({ securityContact: "mailto:a@workshop.example" });

  assertHas(own.html, `<p>Thing Store ${config.version}</p>`);
  assertLacks(own.html, "Contact");
  assertHas(html, '<a href="mailto:a@workshop.example">Contact</a>');
});

Deno.test("no file of the page names its prints or animals", async () => {
  const scripts = (await Array.fromAsync(Deno.readDir(new URL("script", FOLDER)))).map(({ name }) =>
    `script/${name}`
  );
  const files = (await Array.fromAsync(Deno.readDir(FOLDER))).map(({ name }) => name)
    .filter((name) => /\.(ts|css)$/.test(name));

  for (const file of [...files, ...scripts]) {
    const text = await Deno.readTextFile(new URL(file, FOLDER));
    assertEquals(text.match(/.*\b(?:paw|animal|pet)s?\b.*/gi), null, file);
  }
});

Deno.test("getPage() shows examples beyond 2^53 digit for digit", async () => {
  const jugs = resource({
    name: "jugs",
    item: "Jug",
    tag: { name: "Jugs", description: "All jugs" },
    noun: ["a jug", "jugs"],
    fields: { ean: int64() },
    filters: [],
    readableBy: "everyone",
    writableBy: "owner",
    examples: { item: { ean: 9007199254740993n }, change: { ean: 9007199254740993n } },
  });

  const { html } = await getPage({ catalogue: { ...OF_THINGS, resources: [jugs] } });

  assertHas(html, "9007199254740993");
});

Deno.test("style of the page names only what the page or its script has", async () => {
  const { html } = await getPage();
  const [style = ""] = /<style>[^]*<\/style>/.exec(html) ?? [];
  const rest = html.replace(style, "");
  const quoted = new Set([...rest.matchAll(/"([\w -]*)"/g)].flatMap(([, words = ""]) => words.split(" ")));
  const selectors = [...style.matchAll(/(?:^|[{}])([^{}]*)(?=\{)/g)].map(([, selector = ""]) => selector)
    .join();
  const named = (pattern: RegExp) => new Set([...selectors.matchAll(pattern)].map(([, name = ""]) => name));
  const properties = [...style.matchAll(/(--[\w-]+):/g)].map(([, name = ""]) => name);

  const names = named(/[.#](-?[a-z][\w-]*)/g);
  assert(names.size > 60, `${names.size}`);
  assertEquals([...names].filter((name) => !quoted.has(name)), []);
  // Scripts may name an attribute by its property.
  const isAttribute = (name: string) =>
    [name, name.replace(/^data-/, "dataset."), name.replace("aria-b", "ariaB")].some((form) =>
      rest.includes(form)
    );
  assertEquals([...named(/\[([a-z-]+)/g)].filter((name) => !isAttribute(name)), []);
  assertEquals(properties.filter((name) => !style.includes(`var(${name}`)), []);
});

Deno.test("getPage() gives each copy button a unique name", async () => {
  const { html } = await getPage();
  const names = [...html.matchAll(/aria-label="(Copy [^"]*)"/g)].map(([, name]) => name);

  assertEquals(html.match(/>Copy<\/button>/g)?.length, names.length);
  assertEquals(names.length, new Set(names).size);
});

Deno.test("service returns the icon as SVG at both paths", async () => {
  await using service = await Harness.open();

  for (const path of ["/favicon.svg", "/favicon.ico"]) {
    const response = await service.fetch(`GET ${path}`);
    assertEquals(response.headers.get("content-type"), "image/svg+xml");
    assertMatch(await response.text(), /^<svg [^]*<\/svg>$/);
  }
});

/** The retry function of the guide, in virtual time. */
async function retryFunction(fetch: () => Promise<Response>): Promise<() => Promise<Response>> {
  const [, code = ""] = /<pre id="retry-code">([^<]*)</.exec((await getPage()).html) ?? [];
  const source = code.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll(/&quot;/g, '"');
  const date = { now: () => performance.now() };
  return new Function("fetch", "Date", `${source}; return () => send("/");`)(fetch, date);
}

for (const status of [429, 503]) {
  Deno.test(`getPage() contains a retry function that waits for Retry-After of ${status}, doubled each time`, async () => {
    const sent: number[] = [];
    const send = await retryFunction(() => {
      sent.push(performance.now());
      return Promise.resolve(new Response(null, { status, headers: { "retry-after": "7" } }));
    });
    using time = new VirtualTime();

    const response = await time.until(send(), 1_000_000);

    assertEquals(response.status, status);
    const waits = sent.slice(1).map((at, index) => at - (sent[index] ?? 0));
    assertEquals(waits.length, 4);
    assert(waits.every((ms, index) => ms >= 7_000 * 2 ** index && ms < 8_750 * 2 ** index), `${waits}`);
  });
}

Deno.test("getPage() contains a retry function that sends nothing while any of its requests waits", async () => {
  const sent: number[] = [];
  const send = await retryFunction(() => {
    sent.push(performance.now());
    const isRefused = performance.now() < 7_000;
    return Promise.resolve(
      isRefused ? new Response(null, { status: 429, headers: { "retry-after": "7" } }) : new Response(),
    );
  });
  using time = new VirtualTime();

  const early = [send(), send()];
  await time.advance(3_000);
  const responses = await time.until(Promise.all([...early, send()]), 20_000);

  assertEquals(responses.map(({ status }) => status), [200, 200, 200]);
  assertEquals(sent.slice(0, 2), [0, 0]);
  assert(Math.min(...sent.slice(2)) >= 7_000, `${sent}`);
});
