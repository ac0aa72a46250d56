import config from "../../deno.json" with { type: "json" };
import { assert, assertEquals, assertMatch } from "@std/assert";
import { errorsOf } from "../../src/web/openapi.ts";
import { needsToken, type Resource, resource } from "../../src/resource/mod.ts";
import { int64, list, nullable, object, oneOf, optional, text } from "../../src/web/schema.ts";
import { CATALOGUE } from "../../src/catalogue/catalogue.ts";
import { IDENTITY } from "../../src/catalogue/identity.ts";
import { html as template } from "../../src/page/html.ts";
import { HAS_ANIMALS } from "../process/shipped.ts";
import { OF_THINGS } from "../support/things.ts";
import { Harness, type HarnessOptions } from "../support/harness.ts";
import { SAMPLES } from "../support/operations.ts";
import { VirtualTime } from "../support/time.ts";

const FOLDER = new URL("../../src/page/", import.meta.url);

/** Requests a path of a service, by default its page, at this host. */
async function get(service: Harness, host = "localhost:8000", path = "/", headers = {}): Promise<Response> {
  const request = new Request(`http://${host}${path}`, { headers: { host, ...headers } });
  const remoteAddr = { transport: "tcp", hostname: service.address, port: 1 } as const;
  return await service.app.fetch(request, { remoteAddr });
}

/** The page of a service with these options, and its policy. */
async function getPage(options: HarnessOptions = {}): Promise<{ policy: string; html: string }> {
  await using service = await Harness.open(options);
  const response = await get(service);
  return { policy: response.headers.get("content-security-policy") ?? "", html: await response.text() };
}

/** The reference of an operation. */
function articleOf(html: string, id: string): string {
  return new RegExp(`<article id="${id}".*?</article>`, "s").exec(html)?.[0].replaceAll(">\n<", "><") ?? "";
}

/** Asserts that a text has these texts. Names only those that it lacks. */
function assertHas(html: string, ...texts: readonly string[]): void {
  assertEquals(texts.filter((text) => !html.includes(text)), []);
}

/** A collection with these fields and examples. */
function collection(
  name: string,
  item: string,
  fields: Resource["fields"],
  examples: Resource["examples"],
): Resource {
  const tag = { name, description: `All ${name}` };
  const noun = [`a ${item.toLowerCase()}`, name] as const;
  return resource({
    ...{ name, item, tag, noun, fields, filters: [], readableBy: "everyone", writableBy: "owner", examples },
  });
}

/** A collection of eight fields. */
function largeCollection(name: string): Resource {
  const fields = Object.fromEntries(Array.from({ length: 7 }, (_, index) => {
    const description = `Field ${index} of ${name}, with a description of usual length`;
    return [`field${index}`, optional(text({ max: 99, description }))];
  }));
  const ean = int64({ description: "The number on its package" });
  const item = `${name.charAt(0).toUpperCase()}${name.slice(1, -1)}`;
  return collection(name, item, { ...fields, ean }, { item: { ean: 9007199254740993n }, change: { ean: 1 } });
}

Deno.test("getPage() returns a page that is free of charge, and 304 to a client that has it", async () => {
  await using service = await Harness.open();
  const { status, headers, body } = await get(service);
  await body?.cancel();
  const etag = headers.get("etag") ?? "";
  const known = await service.fetch("GET /", { headers: { "if-none-match": etag } });
  const head = await service.fetch("HEAD /");

  assertEquals([status, known.status, head.status], [200, 304, 200]);
  const expected = {
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-cache",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "link": '</v1/openapi.json>; rel="service-desc"',
    "x-ratelimit-limit": null,
  };
  for (const [name, value] of Object.entries(expected)) assertEquals(headers.get(name), value);
  assertEquals([await known.text(), known.headers.get("etag"), head.headers.get("etag")], ["", etag, etag]);
});

Deno.test("page and document are the same for every host", async () => {
  await using service = await Harness.open();
  for (const path of ["/", "/v1/openapi.json"]) {
    const one = await get(service, "one.example", path);
    const other = await get(service, "other.example", path);
    const text = await one.text();

    assertEquals([other.headers.get("etag"), await other.text()], [one.headers.get("etag"), text]);
    assert(!text.includes("one.example"));
  }
});

Deno.test("getPage() allows only its own style and script, and no markup from text", async () => {
  const { policy, html } = await getPage();
  for (const name of ["style", "script"]) {
    const [own, ...others] = [...html.matchAll(new RegExp(`<${name}\\b[^>]*>(.*?)</${name}>`, "gs"))];
    const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(own?.[1]));
    assertHas(policy, `${name}-src 'sha256-${new Uint8Array(hash).toBase64()}';`);
    assertEquals(others.length, 0);
  }
  assertHas(policy, "default-src 'none'; ", "connect-src 'self';", "base-uri 'none'", "form-action 'none'");
  assertHas(policy, "frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'");
  assertEquals(html.match(/ style=| on\w+=|javascript:|innerHTML/g), null);
});

Deno.test("getPage() says what the service is, with paths for any host, and offers open sign-up", async () => {
  const { html } = await getPage();

  const says = [IDENTITY.tagline, IDENTITY.summary, ...IDENTITY.lead].map((text) => `${template`${text}`}`);
  assertHas(html, ...says, `<span>Thing Store ${config.version}</span>`, "<code>as_test_</code>");
  assertHas(html, "'http://THIS_HOST/v1/things'", 'href="/v1/openapi.json"', 'href="/docs/changes"');
  assertHas(html, 'data-form="make"', 'id="sign-up"');
  assertEquals(html.includes("make your own"), IDENTITY.source !== undefined);
  assert(!html.includes("Contact"));
});

Deno.test("getPage() contains the public URL and a contact, and how keys begin, without closed sign-up", async () => {
  const [publicUrl, securityContact] = ["https://workshop.example/things", "mailto:a@workshop.example"];
  const options = { publicUrl, securityContact, signUpIsOpen: false, environment: "production" } as const;
  const { policy, html } = await getPage(options);

  assertHas(policy, "connect-src 'self' https://workshop.example;");
  assertHas(html, `'${publicUrl}/v1/things'`, `data-base="${publicUrl}"`, `href="${publicUrl}/docs/changes"`);
  assertHas(html, `href="${publicUrl}/v1/openapi.json"`, `<a href="${securityContact}">Contact</a>`);
  assertHas(html, 'data-form="paste"', "<code>deno task accounts create</code>", "<code>as_live_</code>");
  assertHas(html, "Bearer YOUR_KEY");
  assert(!html.includes('id="sign-up"'));
});

Deno.test("getPage() describes every operation, error and plan of the API", async () => {
  const { html } = await getPage();

  const ofClients = SAMPLES.map(({ operation }) => operation)
    .filter(({ tag, access }) => tag !== undefined && !needsToken(access));
  assert(ofClients.length >= 14);
  for (const operation of ofClients) {
    const { id, method, path, answers } = operation;
    const article = articleOf(html, id);
    assertHas(html, `href="#${id}"`, `<option value="${id}">`);
    assertHas(article, `<b>${method}</b> <code>${path}</code>`);
    assertHas(article, ...Object.keys(answers).map((status) => `data-status="${status}"`));
    const errors = errorsOf(operation).map(({ code, means }) =>
      `#error-${code}">${code}</a></dt><dd>${means}`
    );
    assertHas(article, ...errors);
  }
  for (const { code } of new Set(ofClients.flatMap(errorsOf))) assertHas(html, `id="error-${code}"`);
  assertMatch(html, /business<\/th>\s*<td>1,000<\/td>\s*<td>100,000<\/td>/);
  assertHas(html, "until 31 December 2029");
});

Deno.test("getPage() describes parameters, fields and headers with types, bounds, defaults and examples", async () => {
  const { html } = await getPage();
  assertHas(
    articleOf(html, "listThings"),
    "<code>limit</code> <i>integer, 1 to 100, default 20</i>",
    "<code>state</code> <i>new | used | lost</i>",
    'data-choices="true false"',
  );
  assertHas(
    articleOf(html, "createThing"),
    "<code>name</code> <i>string, 1 to 255 characters</i> <em>required</em>",
    "<code>labels</code> <i>list of string, 1 to 20 characters, at most 5 items</i>",
    "<code>id</code> <i>int64, 1 to 2^53 − 1</i>",
    "<em>may be missing</em>",
    '<pre id="createThing-201" class="copyable">{\n  &quot;id&quot;: 1,\n',
    '<pre id="createThing-body" class="copyable">{\n  &quot;name&quot;: &quot;Hammer&quot;',
    "<code>Idempotency-Replayed</code> <i>header</i></dt><dd>Present if",
    'data-value="handling=strict"',
  );
  assertHas(articleOf(html, "updateThing"), "<code>labels</code> <i>list of", " or null");
});

Deno.test("getPage() describes the fields of objects in objects and lists", async () => {
  const size = object({ width: int64({ description: "In mm" }) });
  const parts = optional(list(object({ kind: oneOf(["lid", "wall"]) }), 3));
  const examples = { item: { size: { width: 9007199254740993n } }, change: { size: null } };
  const boxes = collection("boxes", "Box", { size: nullable(size), parts }, examples);

  const { html } = await getPage({ catalogue: { ...OF_THINGS, resources: [boxes] } });

  assertHas(
    articleOf(html, "createBox"),
    "<code>size</code> <i>object or null</i> <em>required</em>",
    "<code>width</code> <i>int64</i> <em>required</em></dt><dd>In mm",
    "<code>kind</code> <i>lid | wall</i>",
    "<code>parts</code> <i>list of object, at most 3 items</i>",
    "9007199254740993",
  );
});

Deno.test("getPage() contains no duplicate IDs, broken links or external resources", async () => {
  const { html } = await getPage();
  const page = html.replace(/<script[^]*<\/script>|<style>[^]*<\/style>/g, "");
  const all = (pattern: RegExp) => [...page.matchAll(pattern)].map(([, found = ""]) => found);
  const ids = all(/ id="([^"]*)"/g);
  const links = all(/ (?:href="#|for="|form="|popovertarget=")([^"]*)"/g);
  const addresses = all(/ (?:src|href)="([^"#]*)"/g);

  assertEquals(page.match(/[">]undefined|\[object|NaN|>false</g), null);
  assertEquals(ids.length, new Set(ids).size);
  assertEquals(links.filter((id) => !ids.includes(id)), []);
  assertEquals(addresses.filter((address) => !/^data:|^\//.test(address)), []);
});

const OTHERS = ["bolts", "cups", "drums", "eggs", "forks", "gates", "hats", "irons"].map(largeCollection);
const NINE = { ...CATALOGUE, resources: [largeCollection("apples"), ...OTHERS] } as const;
for (
  const [name, catalogue, bytes] of [
    // A catalogue of your own may be larger.
    ["the shipped catalogue", CATALOGUE, HAS_ANIMALS ? 26_000 : 40_000],
    ["nine resources of eight fields", NINE, 40_000],
  ] as const
) {
  Deno.test(`getPage() returns one response of at most ${bytes / 1_000} kB, compressed, for ${name}`, async () => {
    await using service = await Harness.open({ catalogue });
    const response = await get(service, "localhost:8000", "/", { "accept-encoding": "gzip" });
    const { length } = await response.bytes();

    assertEquals(response.headers.get("content-encoding"), "gzip");
    assert(length <= bytes, `${length} bytes`);
  });
}

Deno.test("no file of the page names animals or prints", () => {
  const files = [FOLDER, new URL("script/", FOLDER)].flatMap((folder) =>
    [...Deno.readDirSync(folder)].map(({ name }) => new URL(name, folder))
  );
  const texts = files.filter(({ pathname }) => /\.(?:ts|js|css|md)$/.test(pathname))
    .map((file) => Deno.readTextFileSync(file));

  assertEquals(texts.length, 12);
  assertEquals(texts.flatMap((text) => text.match(/.*\b(?:paw|animal|pet)s?\b.*/gi) ?? []), []);
});

Deno.test("style of the page names only what the page or its script has", async () => {
  const { html } = await getPage();
  const [style = ""] = /<style>[^]*<\/style>/.exec(html) ?? [];
  const rest = html.replace(style, "");
  const named = (pattern: RegExp, text = style) => [...text.matchAll(pattern)].map(([, name = ""]) => name);
  const selectors = named(/(?:^|[{}])([^{}]*)(?=\{)/g).join();
  const names = new Set(named(/[.#](-?[a-z][\w-]*)/g, selectors));

  assert(names.size > 30, `${names.size}`);
  assertEquals([...names].filter((name) => !new RegExp(`["' ]${name}["' ]`).test(rest)), []);
  assertEquals(named(/(--[\w-]+):/g).filter((name) => !style.includes(`var(${name}`)), []);
});

Deno.test("service returns the icon as SVG at both paths, and what changed in each version", async () => {
  await using service = await Harness.open();

  for (const path of ["/favicon.svg", "/favicon.ico"]) {
    const response = await service.fetch(`GET ${path}`);
    assertEquals(response.headers.get("content-type"), "image/svg+xml");
    assertMatch(await response.text(), /^<svg [^]*<\/svg>$/);
  }
  const changes = await service.fetch("GET /docs/changes");
  assertEquals(changes.headers.get("content-type"), "text/markdown; charset=utf-8");
  assertMatch(await changes.text(), new RegExp(`^## ${config.version}$`, "m"));
});

/** A function in the code of a section of the guide, in virtual time. */
async function guideFunction<Result = Response>(
  id: string,
  name: string,
  fetch?: (url: string) => Promise<Response>,
): Promise<(given: unknown) => Promise<Result>> {
  const [, code = ""] = new RegExp(`<pre id="${id}-1"[^>]*>([^<]*)<`).exec((await getPage()).html) ?? [];
  const characters: Record<string, string> = { "&lt;": "<", "&gt;": ">", "&quot;": '"', "&amp;": "&" };
  const source = code.replaceAll(/&\w+;/g, (entity) => characters[entity] ?? entity);
  return new Function("fetch", "Date", `${source}; return ${name};`)(fetch, { now: () => performance.now() });
}

/** The guide's retry function, when requests were sent with it, and what they got until a time. */
async function retries(status: number, until = Infinity) {
  const sent: number[] = [];
  const send = await guideFunction("retries", "send", () => {
    sent.push(performance.now());
    const isRefused = performance.now() < until;
    const refusal = { status, headers: { "retry-after": "7" } };
    return Promise.resolve(isRefused ? new Response(null, refusal) : new Response());
  });
  return { sent, send };
}

for (const status of [429, 503]) {
  Deno.test(`guide has a retry function that waits for Retry-After of ${status}, doubled each time`, async () => {
    const { sent, send } = await retries(status);
    using time = new VirtualTime();

    const response = await time.until(send("/"), 1_000_000);

    const waits = sent.slice(1).map((at, index) => at - (sent[index] ?? 0));
    assertEquals([response.status, waits.length], [status, 4]);
    assert(waits.every((ms, index) => ms >= 7_000 * 2 ** index && ms < 8_750 * 2 ** index), `${waits}`);
  });
}

Deno.test("guide has a retry function that sends nothing while any of its requests waits", async () => {
  const { sent, send } = await retries(429, 7_000);
  using time = new VirtualTime();

  const early = [send("/"), send("/")];
  await time.advance(3_000);
  const responses = await time.until(Promise.all([...early, send("/")]), 20_000);

  assertEquals([responses.map(({ status }) => status), sent.slice(0, 2)], [[200, 200, 200], [0, 0]]);
  assert(Math.min(...sent.slice(2)) >= 7_000, `${sent}`);
});

Deno.test("guide has a function that lists every page, and one that reads integers beyond 2^53", async () => {
  await using service = await Harness.open();
  const { apiKey: key } = await service.createAccount();
  for (const name of ["a", "b", "c"]) {
    await (await service.fetch("POST /v1/things", { key, json: { name, weight: 1 } })).body?.cancel();
  }
  const fetch = (url: string) => service.fetch(`GET ${url.replace("http://localhost:8000", "")}`, { key });
  const listAll = await guideFunction<{ name: string }[]>("pagination", "listAll", fetch);
  const read = await guideFunction<unknown>("large-integers", "read");

  assertEquals((await listAll("/v1/things?limit=2")).map(({ name }) => name), ["a", "b", "c"]);
  const numbers = { a: 9007199254740993n, b: [1, "x"] };
  assertEquals(await read(new Response('{"a":9007199254740993,"b":[1,"x"]}')), numbers);
});
