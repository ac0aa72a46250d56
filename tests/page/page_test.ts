import config from "../../deno.json" with { type: "json" };
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
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
function get(service: Harness, host: string, path = "/", headers = {}): Response | Promise<Response> {
  const request = new Request(`http://${host}${path}`, { headers: { host, ...headers } });
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

/** The reference of an operation. */
function articleOf(html: string, id: string): string {
  return new RegExp(`<article id="${id}".*?</article>`, "s").exec(html)?.[0].replaceAll(">\n<", "><") ?? "";
}

/** Asserts that a text has these texts. Names only those that it lacks. */
function assertHas(html: string, ...texts: readonly string[]): void {
  assertEquals(texts.filter((text) => !html.includes(text)), []);
}

/** A collection of eight fields. */
function collection(name: string): Resource {
  const fields = Object.fromEntries(
    Array.from({ length: 7 }, (_, index) => [
      `field${index}`,
      optional(
        text({ max: 99, description: `Field ${index} of ${name}, with a description of usual length` }),
      ),
    ]),
  );
  return resource({
    name,
    item: `${name.charAt(0).toUpperCase()}${name.slice(1, -1)}`,
    tag: { name, description: `All ${name}` },
    noun: [`a ${name.slice(0, -1)}`, name],
    fields: { ...fields, ean: int64({ description: "The number on its package" }) },
    filters: [],
    readableBy: "everyone",
    writableBy: "owner",
    examples: { item: { ean: 9007199254740993n }, change: { ean: 1 } },
  });
}

Deno.test("getPage() returns a page that is free of charge, and 304 to a client that has it", async () => {
  await using service = await Harness.open();
  const { status, headers, body } = await get(service, "localhost:8000");
  await body?.cancel();
  const etag = headers.get("etag") ?? "";
  const known = await service.fetch("GET /", { headers: { "if-none-match": etag } });
  const head = await service.fetch("HEAD /");

  assertEquals([status, known.status, head.status], [200, 304, 200]);
  assertEquals(headers.get("content-type"), "text/html; charset=utf-8");
  assertEquals(headers.get("cache-control"), "no-cache");
  assertEquals(headers.get("referrer-policy"), "no-referrer");
  assertEquals(headers.get("x-content-type-options"), "nosniff");
  assertEquals(headers.get("link"), '</v1/openapi.json>; rel="service-desc"');
  assertEquals(headers.get("x-ratelimit-limit"), null);
  assertEquals([await known.text(), known.headers.get("etag"), head.headers.get("etag")], ["", etag, etag]);
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

Deno.test("getPage() allows only its own style and script, and no markup from text", async () => {
  const { response, html } = await getPage();
  const policy = response.headers.get("content-security-policy") ?? "";
  for (const name of ["style", "script"]) {
    const [own, ...others] = [...html.matchAll(new RegExp(`<${name}\\b[^>]*>(.*?)</${name}>`, "gs"))];
    const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(own?.[1]));
    assertStringIncludes(
      policy,
      `${name}-src 'sha256-${btoa(String.fromCharCode(...new Uint8Array(hash)))}';`,
    );
    assertEquals(others.length, 0);
  }
  assertHas(policy, "default-src 'none'; ", "connect-src 'self';", "base-uri 'none'", "form-action 'none'");
  assertHas(policy, "frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'");
  assertEquals(html.match(/ style=| on\w+=|javascript:|innerHTML/g), null);
});

Deno.test("getPage() contains the public URL, or else paths and a placeholder of the host", async () => {
  const own = await getPage();
  const { response, html } = await getPage({ publicUrl: "https://workshop.example/things" });

  assertHas(own.html, "'http://THIS_HOST/v1/things'", 'href="/v1/openapi.json"', 'href="/docs/changes"');
  assertHas(
    html,
    "'https://workshop.example/things/v1/things'",
    'data-base="https://workshop.example/things"',
  );
  assertHas(html, 'href="https://workshop.example/things/v1/openapi.json"');
  assertHas(html, 'href="https://workshop.example/things/docs/changes"');
  const policy = response.headers.get("content-security-policy") ?? "";
  assertStringIncludes(policy, "connect-src 'self' https://workshop.example;");
});

Deno.test("getPage() offers sign-up only if it is open, and shows how keys begin", async () => {
  const open = await getPage();
  const closed = await getPage({ signUpIsOpen: false, environment: "production" });

  assertHas(open.html, 'data-form="make"', 'id="sign-up"', "<code>as_test_</code>");
  assertHas(
    closed.html,
    'data-form="paste"',
    "<code>deno task accounts create</code>",
    "<code>as_live_</code>",
  );
  assertHas(closed.html, "Bearer YOUR_KEY");
  assert(!closed.html.includes('id="sign-up"'));
});

Deno.test("getPage() says what it is and links to the documents, and to the source if there is one", async () => {
  const { html } = await getPage({ securityContact: "mailto:a@workshop.example" });

  assertHas(
    html,
    ...[IDENTITY.tagline, IDENTITY.summary, ...IDENTITY.lead].map((text) => `${template`${text}`}`),
  );
  assertHas(html, `<span>Thing Store ${config.version}</span>`);
  assertHas(html, '<a href="mailto:a@workshop.example">Contact</a>');
  assertEquals(html.includes("make your own"), IDENTITY.source !== undefined);
  assert(!(await getPage()).html.includes("Contact"));
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
    assertHas(
      article,
      ...errorsOf(operation).map(({ code, means }) => `#error-${code}">${code}</a></dt><dd>${means}`),
    );
  }
  for (const { code } of new Set(ofClients.flatMap(errorsOf))) assertHas(html, `id="error-${code}"`);
  assertMatch(html, /business<\/th>\s*<td>1,000<\/td>\s*<td>100,000<\/td>/);
  assertHas(html, "until 31 December 2029");
});

Deno.test("getPage() describes parameters, fields and headers with types, bounds, defaults and examples", async () => {
  const { html } = await getPage();
  const [list, create, update] = ["listThings", "createThing", "updateThing"].map((id) =>
    articleOf(html, id)
  );

  assertHas(list ?? "", "<code>limit</code> <i>integer, 1 to 100, default 20</i>");
  assertHas(list ?? "", "<code>state</code> <i>new | used | lost</i>", 'data-choices="true false"');
  assertHas(create ?? "", "<code>name</code> <i>string, 1 to 255 characters</i> <em>required</em>");
  assertHas(
    create ?? "",
    "<code>labels</code> <i>list of string, 1 to 20 characters, at most 5 items</i>",
  );
  assertHas(create ?? "", "<code>id</code> <i>int64, 1 to 2^53 − 1</i>", "<em>may be missing</em>");
  assertHas(create ?? "", '<pre id="createThing-201" class="copyable">{\n  &quot;id&quot;: 1,\n');
  assertHas(
    create ?? "",
    '<pre id="createThing-body" class="copyable">{\n  &quot;name&quot;: &quot;Hammer&quot;',
  );
  assertHas(create ?? "", "<code>Idempotency-Replayed</code> <i>header</i></dt><dd>Present if");
  assertHas(create ?? "", 'data-value="handling=strict"');
  assertHas(update ?? "", "<code>labels</code> <i>list of", " or null");
});

Deno.test("getPage() describes the fields of objects in objects and lists", async () => {
  const size = object({ width: int64({ description: "In mm" }) });
  const boxes = resource({
    name: "boxes",
    item: "Box",
    tag: { name: "Boxes", description: "All boxes" },
    noun: ["a box", "boxes"],
    fields: { size: nullable(size), parts: optional(list(object({ kind: oneOf(["lid", "wall"]) }), 3)) },
    filters: [],
    readableBy: "everyone",
    writableBy: "owner",
    examples: { item: { size: { width: 9007199254740993n } }, change: { size: null } },
  });

  const { html } = await getPage({ catalogue: { ...OF_THINGS, resources: [boxes] } });

  const article = articleOf(html, "createBox");
  assertHas(article, "<code>size</code> <i>object or null</i> <em>required</em>");
  assertHas(
    article,
    "<code>width</code> <i>int64</i> <em>required</em></dt><dd>In mm",
    "<code>kind</code> <i>lid | wall</i>",
  );
  assertHas(article, "<code>parts</code> <i>list of object, at most 3 items</i>", "9007199254740993");
});

Deno.test("getPage() contains no duplicate IDs, broken links or external resources", async () => {
  const { html } = await getPage();
  const page = html.replace(/<script[^]*<\/script>|<style>[^]*<\/style>/g, "");
  const ids = [...page.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id);
  const links = [...page.matchAll(/ (?:href="#|for="|form="|popovertarget=")([^"]*)"/g)].map(([, id]) => id);

  assertEquals(page.match(/[">]undefined|\[object|NaN|>false</g), null);
  assertEquals(ids.length, new Set(ids).size);
  assertEquals(links.filter((id) => !ids.includes(id)), []);
  const addresses = [...page.matchAll(/ (?:src|href)="([^"#]*)"/g)].map(([, address = ""]) => address);
  assertEquals(addresses.filter((address) => !/^data:|^\//.test(address)), []);
});

const NINE = ["apples", "bolts", "cups", "drums", "eggs", "forks", "gates", "hats", "irons"] as const;
const [FIRST, ...OTHERS] = NINE;
for (
  const [name, catalogue, bytes] of [
    // A catalogue of your own may be larger.
    ["the shipped catalogue", CATALOGUE, HAS_ANIMALS ? 26_000 : 40_000],
    ["nine resources of eight fields", {
      ...CATALOGUE,
      resources: [collection(FIRST), ...OTHERS.map(collection)],
    }, 40_000],
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

Deno.test("no file of the page names animals or prints", async () => {
  const read = async (folder: URL) => {
    const files = (await Array.fromAsync(Deno.readDir(folder))).filter(({ name }) =>
      /\.(?:ts|js|css|md)$/.test(name)
    );
    return await Promise.all(files.map(({ name }) => Deno.readTextFile(new URL(name, folder))));
  };
  const texts = [...await read(FOLDER), ...await read(new URL("script/", FOLDER))];

  assertEquals(texts.length, 12);
  assertEquals(texts.flatMap((text) => text.match(/.*\b(?:paw|animal|pet)s?\b.*/gi) ?? []), []);
});

Deno.test("style of the page names only what the page or its script has", async () => {
  const { html } = await getPage();
  const [style = ""] = /<style>[^]*<\/style>/.exec(html) ?? [];
  const rest = html.replace(style, "");
  const named = (pattern: RegExp) => new Set([...style.matchAll(pattern)].map(([, name = ""]) => name));
  const selectors = [...style.matchAll(/(?:^|[{}])([^{}]*)(?=\{)/g)].map(([, selector = ""]) => selector)
    .join();
  const names = new Set([...selectors.matchAll(/[.#](-?[a-z][\w-]*)/g)].map(([, name = ""]) => name));

  assert(names.size > 30, `${names.size}`);
  assertEquals([...names].filter((name) => !new RegExp(`["' ]${name}["' ]`).test(rest)), []);
  assertEquals([...named(/(--[\w-]+):/g)].filter((name) => !style.includes(`var(${name}`)), []);
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
  fetch: (url: string) => Promise<Response>,
): Promise<(url: string) => Promise<Result>> {
  const [, code = ""] = new RegExp(`<pre id="${id}-1"[^>]*>([^<]*)<`).exec((await getPage()).html) ?? [];
  const source = code.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&quot;", '"').replaceAll(
    "&amp;",
    "&",
  );
  const date = { now: () => performance.now() };
  return new Function("fetch", "Date", `${source}; return ${name};`)(fetch, date);
}

for (const status of [429, 503]) {
  Deno.test(`guide has a retry function that waits for Retry-After of ${status}, doubled each time`, async () => {
    const sent: number[] = [];
    const send = await guideFunction("retries", "send", () => {
      sent.push(performance.now());
      return Promise.resolve(new Response(null, { status, headers: { "retry-after": "7" } }));
    });
    using time = new VirtualTime();

    const response = await time.until(send("/"), 1_000_000);

    assertEquals(response.status, status);
    const waits = sent.slice(1).map((at, index) => at - (sent[index] ?? 0));
    assertEquals(waits.length, 4);
    assert(waits.every((ms, index) => ms >= 7_000 * 2 ** index && ms < 8_750 * 2 ** index), `${waits}`);
  });
}

Deno.test("guide has a retry function that sends nothing while any of its requests waits", async () => {
  const sent: number[] = [];
  const send = await guideFunction("retries", "send", () => {
    sent.push(performance.now());
    const isRefused = performance.now() < 7_000;
    return Promise.resolve(
      isRefused ? new Response(null, { status: 429, headers: { "retry-after": "7" } }) : new Response(),
    );
  });
  using time = new VirtualTime();

  const early = [send("/"), send("/")];
  await time.advance(3_000);
  const responses = await time.until(Promise.all([...early, send("/")]), 20_000);

  assertEquals(responses.map(({ status }) => status), [200, 200, 200]);
  assertEquals(sent.slice(0, 2), [0, 0]);
  assert(Math.min(...sent.slice(2)) >= 7_000, `${sent}`);
});

Deno.test("guide has a function that lists every page, and one that reads integers beyond 2^53", async () => {
  await using service = await Harness.open();
  const { apiKey: key } = await service.createAccount();
  for (const name of ["a", "b", "c"]) {
    const response = await service.fetch("POST /v1/things", { key, json: { name, weight: 1 } });
    await response.body?.cancel();
  }
  const fetch = (url: string) => service.fetch(`GET ${url.replace("http://localhost:8000", "")}`, { key });
  const listAll = await guideFunction<{ name: string }[]>("pagination", "listAll", fetch);
  const { html } = await getPage();
  const [, code = ""] = /<pre id="large-integers-1"[^>]*>([^]*?)<\/pre>/.exec(html) ?? [];
  const read = new Function(`${code.replaceAll("&gt;", ">").replaceAll("&quot;", '"')}; return read;`)();

  assertEquals((await listAll("/v1/things?limit=2")).map(({ name }) => name), [
    "a",
    "b",
    "c",
  ]);
  assertEquals(await read(new Response('{"a":9007199254740993,"b":[1,"x"]}')), {
    a: 9007199254740993n,
    b: [1, "x"],
  });
});
