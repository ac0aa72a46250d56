import config from "../../deno.json" with { type: "json" };
import {
  assert,
  assertEquals,
  assertGreater,
  assertLessOrEqual,
  assertMatch,
  assertRejects,
  assertThrows,
} from "@std/assert";
import { errorsOf } from "../../src/web/openapi.ts";
import { needsToken, type Operation } from "../../src/service/mod.ts";
import { type Catalogue, type Resource, resource, ResourceError } from "../../src/resource/mod.ts";
import { int64, list, nullable, object, oneOf, optional, text } from "../../src/web/schema.ts";
import { CATALOGUE } from "../../src/catalogue/catalogue.ts";
import { IDENTITY } from "../../src/catalogue/identity.ts";
import { assets, frame } from "../../src/page/frame.ts";
import { html as template } from "../../src/page/html.ts";
import { requireColours } from "../../src/page/identity.ts";
import { inline, sectionsOf } from "../../src/page/markdown.ts";
import { OPERATORS_ASSETS } from "../../src/page/operators.ts";
import { ASSETS } from "../../src/page/page.ts";
import { OF_THINGS } from "../support/things.ts";
import { Harness, type HarnessOptions } from "../support/harness.ts";
import { ALL } from "../support/operations.ts";
import { VirtualTime } from "../support/time.ts";

/** The response to a request for a path, as a browser sends it. */
async function get(service: Harness, path: string, host = "localhost:8000"): Promise<Response> {
  const remoteAddr = { transport: "tcp", hostname: service.address, port: 1 } as const;
  const headers = { "accept-encoding": "gzip" };
  return await service.app.fetch(new Request(`http://${host}${path}`, { headers }), { remoteAddr });
}

/** The page of a service with these options, and its policy. */
async function getPage(
  options: HarnessOptions = {},
): Promise<{ policy: string; html: string; operations: readonly Operation[] }> {
  await using service = await Harness.open(options);
  const { operations } = service.app;
  const response = await service.fetch("GET /");
  return {
    policy: response.headers.get("content-security-policy") ?? "",
    html: await response.text(),
    operations,
  };
}

const { policy, html, operations } = await getPage({
  catalogue: ALL.catalogue,
  operatorToken: ALL.operatorToken,
});

/** The reference of an operation. */
function articleOf(id: string, page = html): string {
  return new RegExp(`<article id="${id}".*?</article>`, "s").exec(page)?.[0].replaceAll(">\n<", "><") ?? "";
}

/** Asserts that a text has these texts. Names only those that it lacks. */
function assertHas(page: string, ...texts: readonly string[]): void {
  assertEquals(texts.filter((text) => !page.includes(text)), []);
}

/** A collection with these fields and examples. */
function collection(name: string, item: string, given: Pick<Resource, "fields" | "examples">): Resource {
  const told = { name, item, tag: { name, description: `All ${name}` }, noun: [`a ${item}`, name] } as const;
  return resource({ ...told, filters: [], readableBy: "everyone", writableBy: "owner", ...given });
}

/** A collection of eight fields. */
function largeCollection(name: string): Resource {
  const fields = Array.from({ length: 7 }, (_, index) => {
    const description = `Field ${index} of ${name}, with a description of usual length`;
    return [`field${index}`, optional(text({ max: 99, description }))] as const;
  });
  const ean = int64({ description: "The number on its package" });
  const examples = { item: { ean: 9007199254740993n }, change: { ean: 1 } };
  return collection(name, `Item${name.slice(0, -1)}`, {
    fields: { ...Object.fromEntries(fields), ean },
    examples,
  });
}

Deno.test.each<[line: string, Parameters<typeof requireColours>[0]]>([
  ["The hue paper of the identity must be a number of degrees, not NaN.", {
    hues: { paper: NaN, accent: 1 },
    chroma: 1,
  }],
  [
    "The hue accent of the identity must be a number of degrees, not warm.",
    { hues: JSON.parse('{"paper":1,"accent":"warm"}'), chroma: 1 },
  ],
  ["The chroma of the identity must be a number from 0, not -1.", {
    hues: { paper: 1, accent: 1 },
    chroma: -1,
  }],
  ["The chroma of the identity must be a number from 0, not Infinity.", {
    hues: { paper: 1, accent: 1 },
    chroma: Infinity,
  }],
])("requireColours() refuses an identity: %s", (line, identity) => {
  assertEquals(assertThrows(() => requireColours(identity), ResourceError).message, line);
});

Deno.test("getPage() returns a page that is free of charge, and 304 to a client that has it", async () => {
  await using service = await Harness.open();
  const { status, headers, body } = await service.fetch("GET /");
  await body?.cancel();
  const etag = headers.get("etag") ?? "";
  const known = await service.fetch("GET /", { headers: { "if-none-match": etag } });

  assertEquals([status, known.status, known.headers.get("etag"), await known.text()], [200, 304, etag, ""]);
  const names = ["content-type", "cache-control", "referrer-policy", "link", "x-ratelimit-limit"];
  const link = '</v1/openapi.json>; rel="service-desc"';
  const expected = ["text/html; charset=utf-8", "no-cache", "no-referrer", link, null];
  assertEquals(names.map((name) => headers.get(name)), expected);
});

Deno.test("page and document are the same for every host", async () => {
  await using service = await Harness.open();
  for (const path of ["/", "/v1/openapi.json"]) {
    const bytes = await (await get(service, path, "one.example")).bytes();
    assertEquals(await (await get(service, path, "other.example")).bytes(), bytes);
  }
});

Deno.test("getPage() allows only its own style and script, and no markup from text", async () => {
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

Deno.test("getPage() says what the service is, with paths for any host, and offers open sign-up", () => {
  const says = [IDENTITY.tagline, IDENTITY.summary, ...IDENTITY.lead].map((text) => `${template`${text}`}`);
  assertHas(html, ...says, `<span>Thing Store ${config.version}</span>`, "<code>as_test_</code>");
  assertHas(html, "'http://THIS_HOST/v1/things'", 'href="/v1/openapi.json"', 'href="/docs/changes"');
  assertHas(html, 'data-form="make"', 'id="sign-up"', "You need no email address.");
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
  assertEquals(html.match(/id="(?:sign-up|to-make)"|createAccount">|Make a key\.|email/g), null);
});

Deno.test("getPage() describes every operation, error and plan of the API", () => {
  const ofClients = operations.filter(({ tag, access }) => tag !== undefined && !needsToken(access));
  assert(ofClients.length >= 14);
  assertEquals(html.match(/<article /g)?.length, ofClients.length);
  for (const operation of ofClients) {
    const { id, method, path, answers } = operation;
    assertHas(html, `href="#${id}"`);
    assertHas(articleOf(id), `<b>${method}</b> <code>${path}</code>`);
    assertHas(articleOf(id), ...Object.keys(answers).map((status) => `<summary><b>${status}</b> `));
    for (const kind of errorsOf(operation)) {
      const { code, means } = kind;
      const isOwn = operation.errors.includes(kind) && !errorsOf({ ...operation, errors: [] }).includes(kind);
      if (isOwn) assertHas(articleOf(id), `#error-${code}">${code}</a><dd>${template`${inline(means)}`}`);
      assertHas(html, `id="error-${code}"`);
    }
  }
  const statuses = [...html.matchAll(/id="error-\w+"><b>(\d+)/g)].map(([, status]) => Number(status));
  assert(statuses.length > 20);
  assertEquals(statuses, statuses.toSorted());
  assertMatch(html, /business<td>1,000<td>100,000</);
  assertHas(html, "until 31 December 2029", "Bearer YOUR_KEY", "go on from <code>cursor</code>");
});

Deno.test("getPage() describes parameters, fields and headers with types, bounds, defaults and examples", () => {
  assertHas(
    articleOf("listThings"),
    "<code>limit</code> <i>integer, 1 to 100, default 20</i>",
    "<code>state</code> <i>new | used | lost</i>",
    'data-choices="true false"',
  );
  assertHas(
    articleOf("createThing"),
    "<code>name</code> <i>string, 1 to 255 characters</i> <em>required</em>",
    "<code>labels</code> <i>list of string, 1 to 20 characters, at most 5 items</i>",
    "<code>id</code> <i>int64, 1 to 2^53 − 1</i>",
    "<em>may be missing</em>",
    "<pre>{\n  &quot;id&quot;: 1,\n",
    `<pre data-sample>curl -i 'http://THIS_HOST/v1/things' \\`,
    "-H &quot;Idempotency-Key: $(uuidgen)&quot; \\\n  --data-raw '{\n  &quot;name&quot;: &quot;Hammer&quot;",
    "<code>Idempotency-Replayed</code> <i>header</i><dd><code>true</code> if",
    'data-value="handling=strict"',
  );
  assertHas(articleOf("updateThing"), "<code>labels</code> <i>list of", " or null");
});

Deno.test("getPage() says each note once", () => {
  const notes = html.match(/A body with the same values is the same/g) ?? [];
  assertEquals(notes.length, 1);
  assertHas(articleOf("createMessage"), "<dd>Makes the request safe to repeat within 24 hours.<");
});

Deno.test("getPage() describes the fields of objects in objects and lists", async () => {
  const size = object({ width: int64({ description: "In mm" }) });
  const parts = optional(list(object({ kind: oneOf(["lid", "wall"]) }), 3));
  const examples = { item: { size: { width: 9007199254740993n } }, change: { size: null } };
  const boxes = collection("boxes", "Box", { fields: { size: nullable(size), parts }, examples });

  const page = await getPage({ catalogue: { ...OF_THINGS, resources: [boxes] } });

  assertHas(
    articleOf("createBox", page.html),
    "<code>size</code> <i>object or null</i> <em>required</em>",
    "<code>width</code> <i>int64</i> <em>required</em><dd>In mm",
    "<code>kind</code> <i>lid | wall</i>",
    "<code>parts</code> <i>list of object, at most 3 items</i>",
    "9007199254740993",
  );
});

Deno.test("getPage() contains no duplicate IDs, broken links or external resources", () => {
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
const NINE: Catalogue = { ...CATALOGUE, resources: [largeCollection("apples"), ...OTHERS] };
/** Most bytes of the compressed page: those of any page, and of each operation. With 19, 30 kB; with 59, 40 kB. */
const budget = (operations: number) => 25_250 + 250 * operations;
for (const catalogue of [CATALOGUE, NINE]) {
  Deno.test(`getPage() returns one compressed response within its budget, with ${catalogue.resources.length} resources`, async () => {
    await using service = await Harness.open({ catalogue });
    const response = await get(service, "/");
    const { length } = await response.bytes();
    const { html } = await getPage({ catalogue });
    const operations = html.match(/<article id=/g)?.length ?? 0;

    assertEquals(response.headers.get("content-encoding"), "gzip");
    assertGreater(operations, 10);
    assertLessOrEqual(length, budget(operations), `bytes with ${operations} operations`);
  });
}

Deno.test("service returns the icon as SVG at both paths, and what changed in each version", async () => {
  await using service = await Harness.open();
  for (
    const [path, type, text] of [
      ["/favicon.svg", "image/svg+xml", /^<svg [^]*<\/svg>$/],
      ["/favicon.ico", "image/svg+xml", /^<svg [^]*<\/svg>$/],
      ["/docs/changes", "text/markdown; charset=utf-8", new RegExp(`^## ${config.version}$`, "m")],
    ] as const
  ) {
    const response = await service.fetch(`GET ${path}`);
    assertEquals(response.headers.get("content-type"), type);
    assertMatch(await response.text(), text);
  }
});

Deno.test("service returns the guide and the operations as Markdown, free of charge, and 304 to a client that has them", async () => {
  await using service = await Harness.open({ catalogue: ALL.catalogue });
  const ofClients = service.app.operations.filter(({ tag, access }) =>
    tag !== undefined && !needsToken(access)
  );
  const texts: string[] = [];
  for (const [path, type] of [["/docs/guide", "text/markdown"], ["/llms.txt", "text/plain"]] as const) {
    const response = await service.fetch(`GET ${path}`);
    const { status, headers } = response;
    texts.push(await response.text());
    const etag = headers.get("etag") ?? "";
    assertEquals([status, headers.get("content-type")], [200, `${type}; charset=utf-8`]);
    assertEquals(headers.get("x-ratelimit-limit"), null);
    assertEquals((await service.fetch(`GET ${path}`, { headers: { "if-none-match": etag } })).status, 304);
  }
  const [text = ""] = texts;

  assertEquals(texts[1], text);
  assertMatch(text, /^# Thing Store\n\n> .+\n\n## Start\n/);
  assertEquals(text.match(/<!--|: undefined|\[object|<\/?\w+>/g), null);
  assertHas(
    text,
    "| business | 1,000 | 100,000 |",
    "keys begin with `as_test_`",
    "In this service, `id`, `weight`",
  );
  assertHas(text, "- `429 rate_limit_day`: ", "(/docs/changes)", "until 31 December 2029");
  for (const { summary, method, path, answers } of ofClients) {
    assertHas(
      text,
      `### ${summary}\n\n\`${method} ${path}\``,
      ...Object.keys(answers).map((status) => `\`${status}\`: `),
    );
  }
  assertHas(text, `-H "Idempotency-Key: $(uuidgen)" \\\n  --data-raw '{\n  "name": "Hammer"`);
  assertHas(text, "- `limit` (query): integer, 1 to 100, default 20. ", "- `name` (body, required): string");
});

Deno.test("comments in the code of the pages have at most 120 characters a line", () => {
  const folder = new URL("../../src/page/", import.meta.url);
  const paths = [...Deno.readDirSync(folder), ...Deno.readDirSync(new URL("script/", folder))]
    .flatMap(({ name }) => /\.ts$/.test(name) ? name : /\.js$/.test(name) ? `script/${name}` : []);
  const lines = paths.flatMap((path) => Deno.readTextFileSync(new URL(path, folder)).split("\n"));

  assert(paths.length > 15);
  assertEquals(lines.filter((line) => line.length > 120 && /^\s*(?:\/\*\*|\*|\/\/)/.test(line)), []);
});

/** Has literals of all kinds. */
function literals(count: number): unknown[] {
  // This isn't sent.
  const text = `a  ${count} = "b"`;
  return [count / 2 + " / ", text, 'c ; "d" }', "e's , f", "g = h".replace(/ = [/"] | = /, " : ")];
}

Deno.test("assets() leaves out comments and spaces around signs, but none in literals", () => {
  const { script } = assets([], [{ literals }]);

  assert(
    script.startsWith('function literals(count){const text=`a  ${count} = "b"`;return[count / 2+" / ",text,'),
    script,
  );
  assertEquals(new Function(`${script.replace("start();", "")}return literals;`)()(4), literals(4));
});

Deno.test.each<[what: string, pattern: RegExp, example: string]>([
  ["templates in templates", /`[^`]*\$\{[^`}]*`/, "`a${b ? `c = d` : ''}`"],
  ["comments after code", /\S +\/[/*] /, "a(); // It's b."],
  ["comments of several lines in functions", /^ +\/\*(?!.*\*\/)/m, "  /**\n   * It's a.\n   */"],
  ["patterns that begin with a space", /[(,=:!&|?[] *\/ /, "a.match(/ = /)"],
  ["signs that would become one", /([+-]) \1/, "a - -b"],
])("scripts of the pages have no %s, which assets() cannot tell", (_, pattern, example) => {
  assertMatch(example, pattern);
  const folder = new URL("../../src/page/script/", import.meta.url);
  for (const { name } of Deno.readDirSync(folder)) {
    assertEquals([name, pattern.exec(Deno.readTextFileSync(new URL(name, folder)))?.[0]], [name, undefined]);
  }
});

Deno.test("scripts of the pages are whole", () => {
  for (const { script } of [ASSETS, OPERATORS_ASSETS]) new Function(script);
});

Deno.test("frame() leaves end tags as they are if they are needed", () => {
  const body = template`<a><p>b</p></a>`;

  assertHas(frame({ style: "", script: "" }, { title: "A", description: "B", body }), "<a><p>b</p></a>");
});

Deno.test("sectionsOf() renders paragraphs, lists, code, slots and links, and escapes text", () => {
  const text =
    "# Title\n\nLeft out.\n\n## Two words\n\nA `<b>` and\n**bold `x`** [link](#a).\n\n- one,\n  more\n- [two](b.md)\n\n" +
    "```js\nif (a < b) {\n\n  c();\n}\n```\n\n<!-- table -->\n\n## Next\n\nEnd & more.\n";
  const sections = sectionsOf(text, { slots: { table: template`<table></table>` }, links: { "b.md": "/b" } });

  assertEquals(sections.map(({ id, title, content }) => [id, title, `${template`${content}`}`]), [
    [
      "two-words",
      "Two words",
      '<p>A <code>&lt;b&gt;</code> and <b>bold <code>x</code></b> <a href="#a">link</a>.</p>' +
      '<ul><li>one, more</li><li><a href="/b">two</a></li></ul>' +
      "<pre >if (a &lt; b) {\n\n  c();\n}</pre><table></table>",
    ],
    ["next", "Next", "<p>End &amp; more.</p>"],
  ]);
});

Deno.test("sectionsOf() throws for a slot without content, and inline() keeps other characters", () => {
  assertThrows(
    () => sectionsOf("## A\n\n<!-- plans -->\n", { slots: {}, links: {} }),
    Error,
    "nothing for <!-- plans -->",
  );
  assertEquals(`${template`${inline("a*b_c [d] `*` (e) 2^53 −")}`}`, "a*b_c [d] <code>*</code> (e) 2^53 −");
});

type Send = (url: string) => Promise<Response>;

/** A function in the code of a section of the guide, in virtual time, with the functions that are given to it. */
function guideFunction(id: string, name: string, given: Readonly<Record<string, Send>> = {}) {
  const [, code = ""] = new RegExp(`<section id="${id}">[^]*?<pre[^>]*>([^<]*)<`).exec(html) ?? [];
  const characters: Record<string, string> = { "&lt;": "<", "&gt;": ">", "&quot;": '"', "&amp;": "&" };
  const source = code.replaceAll(/&\w+;/g, (entity) => characters[entity] ?? entity);
  const values = { Date: { now: () => performance.now() }, ...given };
  return new Function(...Object.keys(values), `${source}; return ${name};`)(...Object.values(values));
}

/** The guide's retry function, and when requests were sent with it, which are refused until a time. */
function retries(status: number, until: number) {
  const sent: number[] = [];
  const fetch = () => {
    sent.push(performance.now());
    const refusal = { status, headers: { "retry-after": "7" } };
    return Promise.resolve(performance.now() < until ? new Response(null, refusal) : new Response());
  };
  return { sent, send: guideFunction("retries", "send", { fetch }) };
}

Deno.test("guide has a retry function that waits for Retry-After of 429 and 503, doubled each time", async () => {
  for (const status of [429, 503]) {
    const { sent, send } = retries(status, Infinity);
    await using time = new VirtualTime();

    const response: Response = await time.until(send("/"), 1_000_000);

    const waits = sent.slice(1).map((at, index) => at - (sent[index] ?? 0));
    assertEquals([response.status, waits.length], [status, 4]);
    assert(waits.every((ms, index) => ms >= 7_000 * 2 ** index && ms < 8_750 * 2 ** index), `${waits}`);
  }
});

Deno.test("guide has a retry function that sends nothing while any of its requests waits", async () => {
  const { sent, send } = retries(429, 7_000);
  await using time = new VirtualTime();

  const early = [send("/"), send("/")];
  await time.advance(3_000);
  await time.until(Promise.all([...early, send("/")]), 20_000);

  assertEquals([sent.length, ...sent.slice(0, 2)], [5, 0, 0]);
  assert(Math.min(...sent.slice(2)) >= 7_000, `${sent}`);
});

Deno.test("guide has a function that lists every page, which waits and goes on after 429, and throws other errors", async () => {
  await using time = new VirtualTime();
  const refusal = { status: 429, headers: { "retry-after": "7" } };
  const pages: (() => Response)[] = [
    () => new Response('["a"]', { headers: { link: '</second>; rel="next"' } }),
    () => new Response('{"message":"Too many"}', refusal),
    () => new Response('["b"]'),
    () => new Response('{"message":"No such list."}', { status: 404 }),
  ];
  const urls: string[] = [];
  const fetch = (url: string) => {
    urls.push(url);
    return Promise.resolve(pages.shift()?.() ?? Response.error());
  };
  const listAll = guideFunction("pagination", "listAll", {
    ...{ fetch, send: guideFunction("retries", "send", { fetch }) },
  });

  const listed = await time.until<string[]>(listAll("/first"), 20_000);
  assertEquals([listed, urls], [["a", "b"], ["/first", "/second", "/second"]]);
  await assertRejects(() => listAll("/third"), Error, "No such list.");
});

Deno.test("guide has a function that lists every page, and one that reads integers beyond 2^53", async () => {
  await using service = await Harness.open();
  const { apiKey: key } = await service.createAccount();
  for (const name of "abc") {
    await (await service.fetch("POST /v1/things", { key, json: { name, weight: 1 } })).body?.cancel();
  }
  const fetch = (url: string) => service.fetch(`GET ${url.replace("http://localhost:8000", "")}`, { key });
  const listAll = guideFunction("pagination", "listAll", { send: fetch });
  const read = guideFunction("large-integers", "read");

  const all: { name: string }[] = await listAll("/v1/things?limit=2");
  assertEquals(all.map(({ name }) => name).join(""), "abc");
  const numbers = { a: 9007199254740993n, b: [1, "x"] };
  assertEquals(await read(new Response('{"a":9007199254740993,"b":[1,"x"]}')), numbers);
});
