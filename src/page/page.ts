// The page, in one response.
import type { DeclaredOperation } from "../web/mod.ts";
import { bodyTypeOf, errorsOfAll } from "../web/openapi.ts";
import { inWords } from "../web/headers.ts";
import { resolved } from "../web/schema.ts";
import { ACCESS, BASE_PATH, type Environment, needsToken, type Plans, PROXY_ERRORS } from "../service/mod.ts";
import type { Catalogue } from "../resource/mod.ts";
import { keyStart } from "../accounts/api_key.ts";
import { planOf } from "../accounts/plans.ts";
import { IDENTITY } from "../catalogue/identity.ts";
import { consoleSection } from "./console.ts";
import { type Content, Html, html } from "./html.ts";
import { copyable, type Section, sectionsOf } from "./markdown.ts";
import { errorList, exampleOf, referenceSection } from "./reference.ts";
import * as consoling from "./script/console.js";
import * as documenting from "./script/document.js";
import * as limits from "./script/limits.js";
import * as requesting from "./script/request.js";

/** Options of {@linkcode renderPage}. */
export interface PageOptions {
  /** Prefix of the service's URLs; undefined for the origin that the page comes from. */
  readonly publicUrl: string | undefined;
  readonly environment: Environment;
  readonly catalogue: Catalogue;
  /** Version of the service. */
  readonly version: string;
  /** Whether clients may create accounts. */
  readonly signUpIsOpen: boolean;
  /** URI of the security contact; undefined if there is none. */
  readonly securityContact: string | undefined;
  /** Returns all operations of the service. */
  readonly operations: () => readonly DeclaredOperation[];
}

/** Path of the changes in each version. */
export const CHANGES_PATH = "/docs/changes";
/** The changes in each version, in Markdown. */
export const CHANGES: string = read("../CHANGES.md");
const GUIDE = read("guide.md");
const PALETTE =
  `:root{--hue:${IDENTITY.hues.accent};--paper-hue:${IDENTITY.hues.paper};--chroma:${IDENTITY.chroma}}`;
/** The style: the colours of this service, and the sheet that they fill, without comments and spaces. */
export const STYLE: string = PALETTE +
  read("page.css").replaceAll(/\/\*[^]*?\*\/|\n\s*|(?<=[:,;]) | (?={)/g, "");
/** The script: what its modules export, each from its own source, so that the page needs no second request. */
export const SCRIPT: string = [
  ...[requesting, limits, documenting, consoling].flatMap((module) => Object.entries(module).map(declared)),
  "start();",
].join("\n");

const PRINT_HTML = new Html(IDENTITY.print.shapes.replaceAll('"', "'"));
/** The icon: a print in the page's colours. */
export const ICON: Html = html`
  <svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'>
    <rect width='32' height='32' rx='8' fill='oklch(40% ${0.18 * IDENTITY.chroma} ${IDENTITY.hues.accent})' />
    <g fill='oklch(98% ${0.01 * IDENTITY.chroma} ${IDENTITY.hues.paper})'>${PRINT_HTML}</g>
  </svg>
`;

/** Reads a file while the module loads, because the service then gives up its access to files. */
function read(name: string): string {
  return Deno.readTextFileSync(new URL(name, import.meta.url));
}

/** A function, without indents and lines of comments, or a constant, as a script declares it. */
function declared([name, value]: [name: string, value: unknown]): string {
  return typeof value === "function"
    ? String(value).replaceAll(/\n +(?:\/\/.*)?/g, "\n")
    : `const ${name} = ${JSON.stringify(value)};`;
}

/**
 * Renders the page. Its links, samples and console use the public URL, or else the page's own origin, which its script
 * writes into the samples. So the page is the same for every host.
 */
export function renderPage(options: PageOptions): string {
  const { publicUrl = "", catalogue, environment, signUpIsOpen, version, securityContact } = options;
  const operations = options.operations().filter(({ tag, access }) => tag && !needsToken(access));
  const { title, plans, keyPrefix } = catalogue;
  const sections = guideOf(operations, options);
  // Start and Authentication precede the operations.
  const [before, after] = [sections.slice(0, 2), sections.slice(2)];
  const page = html`
    <!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="description" content="${IDENTITY.summary}">
        <title>${title}: ${IDENTITY.tagline}</title>
        <link rel="icon" href="data:image/svg+xml,${ICON}">
        <style>${new Html(STYLE)}</style>
      </head>
      <body>
        <svg class="quiet" aria-hidden="true">
          <symbol id="print" viewBox="4 4 24 24">
            ${PRINT_HTML}
            <path class="cross" d="M8 8l16 16m0-16L8 24"/>
          </symbol>
        </svg>
        <a class="skip" href="#content">Skip to the content</a>
        <header id="bar">
          ${home(title)}
          <button type="button" popovertarget="contents">Contents</button>
          <a class="scripted" href="#console">Console</a>
        </header>
        ${contents(title, operations, after)}
        <main id="content" tabindex="-1">
          ${hero(title, publicUrl)}
          ${consoleSection(operations, {
            base: publicUrl,
            keyStart: keyStart(keyPrefix, environment),
            signUpIsOpen,
            limit: planOf(plans, {}).limits.minute,
          })}
          <div class="text">
            ${before.map(section)}
            ${referenceSection(operations)}
            ${after.map(section)}
            <footer>
              <span>${title} ${version}</span>
              <span>${catalogue.interface.license.name} licence</span>
              ${securityContact && html`<a href="${securityContact}">Contact</a>`}
              <a href="${publicUrl}/ready">Status</a>
            </footer>
          </div>
        </main>
        <p id="news" class="quiet" role="status"></p>
        <script type="module">${new Html(SCRIPT)}</script>
      </body>
    </html>
  `;
  return `${page}\n`;
}

function hero(title: string, publicUrl: string): Html {
  return html`
    <div class="hero">
      <h1>${title}</h1>
      ${IDENTITY.lead.map((sentence) => html`<p class="lead">${sentence}</p>`)}
      <p class="links">
        <a href="${publicUrl}${BASE_PATH}/openapi.json">OpenAPI 3.1</a>
        <a href="${publicUrl}${CHANGES_PATH}">Changes</a>
        ${IDENTITY.source && html`<a href="${IDENTITY.source}">Source: make your own</a>`}
      </p>
    </div>
  `;
}

function home(title: string): Html {
  return html`<a class="home" href="#content"><svg aria-hidden="true"><use href="#print" /></svg>${title}</a>`;
}

/** The contents: a column, or a popover on narrow screens. */
function contents(title: string, operations: readonly DeclaredOperation[], guide: readonly Section[]): Html {
  const entry = (id: string, text: Content) => html`<li><a href="#${id}">${text}</a></li>`;
  const group = (name: string, entries: readonly Html[]) =>
    html`
      <div>
        <p>${name}</p>
        <ul>${entries}</ul>
      </div>
    `;
  const groups = [...Map.groupBy(operations, ({ tag }) => tag?.name ?? "")].map(([name, own]) =>
    group(name, own.map(({ id, summary, method }) => entry(id, html`${summary} <b>${method}</b>`)))
  );
  return html`
    <nav id="contents" popover aria-label="Contents">
      ${home(title)}
      <input id="filter" type="search" class="scripted" placeholder="Filter" aria-label="Filter the contents">
      <ul>${entry("start", "Start")}${entry("authentication", "Authentication")}</ul>
      ${groups}
      ${group("Guide", guide.map(({ id, title }) => entry(id, title)))}
      <p id="unfound" hidden>Nothing matches.</p>
    </nav>
  `;
}

function section({ id, title, content }: Section): Html {
  return html`
    <section id="${id}"
      aria-labelledby="${id}-title"><h2 id="${id}-title">${title}</h2>${content}</section>
  `;
}

/** The guide, with what the catalogue and the settings of the service decide. */
function guideOf(
  operations: readonly DeclaredOperation[],
  { publicUrl = "", environment, signUpIsOpen, catalogue: { resources, plans, keyPrefix } }: PageOptions,
): Section[] {
  const base = publicUrl || requesting.ORIGIN_PLACEHOLDER;
  const [first] = operations;
  const signUp = operations.find(({ access }) => access === ACCESS.address);
  const exact = new Set(
    resources.flatMap(({ fields }) => Object.entries(fields))
      .filter(([, schema]) => resolved(schema).format === "int64").map(([name]) => name),
  );
  const named = ["id", ...exact].map((name, index) => [index > 0 && ", ", html`<code>${name}</code>`]);
  return sectionsOf(GUIDE, {
    links: { "../CHANGES.md": `${publicUrl}${CHANGES_PATH}` },
    slots: {
      base: html`
        <p>
          The base URL is <code>${base}${BASE_PATH}</code>. Tools read
          <a href="${publicUrl}${BASE_PATH}/openapi.json">openapi.json</a>, an OpenAPI 3.1 document.
        </p>
        <p class="unscripted">The console needs JavaScript. ${publicUrl === "" &&
          "In the commands, replace THIS_HOST with the host of this page."}</p>
      `,
      "sign-up": signUpIsOpen && signUp
        ? copyable("sign-up", curl(signUp, base))
        : html`<p>Here, sign-up is closed. Operators run <code>deno task accounts create</code>.</p>`,
      call: first && copyable("first-call", curl(first, base)),
      keys: html`<p>This is a ${environment} service: its keys begin with <code>${
        keyStart(keyPrefix, environment)
      }</code>.</p>`,
      plans: plansTable(plans),
      errors: errorList(errorsOfAll(operations, PROXY_ERRORS)),
      integers: exact.size > 0 && html`<p>In this service, ${named}.</p>`,
      deprecations: html`
        <ul>${operations.map(({ id, summary, deprecated }) =>
          deprecated && html`<li><a href="#${id}">${summary}</a>: until ${inWords(deprecated.sunset)}.</li>`
        )}</ul>
      `,
    },
  });
}

function plansTable({ limits, own }: Plans): Html {
  const row = (name: string, cells: Content) => html`<tr><th scope="row">${name}</th>${cells}</tr>`;
  const cell = (count: number) => html`<td>${count.toLocaleString("en")}</td>`;
  const rows = Object.entries(limits).map(([plan, { minute, day }]) => row(plan, [cell(minute), cell(day)]));
  const heads = ["Plan", "Requests a minute", "a day"].map((head) => html`<th>${head}</th>`);
  const agreed = row(own, html`<td colspan="2">as agreed</td>`);
  return html`
    <table>
      <thead>
        <tr>${heads}</tr>
      </thead>
      <tbody>${rows}${agreed}</tbody>
    </table>
  `;
}

/** A curl command for the operation, with the example of its body. */
function curl(operation: DeclaredOperation, base: string): string {
  const { method, path, access, body } = operation;
  const key = access === ACCESS.key ? requesting.KEY_PLACEHOLDER : "";
  const fields = [{ name: "body", place: "body", value: exampleOf(body, 0) }];
  const target = { base, method, path, type: bodyTypeOf(operation), key };
  return requesting.sample("curl", requesting.buildRequest(target, fields));
}
