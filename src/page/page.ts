import type { DeclaredOperation } from "../web/mod.ts";
import { bodyTypeOf, errorsOfAll, isDocumented } from "../web/openapi.ts";
import { ACCESS, BASE_PATH, type Catalogue } from "../resource/mod.ts";
import { type Environment, keyStart } from "../accounts/api_key.ts";
import { PROXY_ERRORS } from "../operator/operations.ts";
import { consoleSection, exampleOf } from "./console.ts";
import {
  conditionsSection,
  copyable,
  errorsSection,
  healthSection,
  integersSection,
  limitsSection,
  nounsOf,
  retriesSection,
} from "./guide.ts";
import { Html, html } from "./html.ts";
import {
  ICON_COLOURS,
  LEAD,
  PALETTE,
  PRINT_SHAPES,
  SOURCE,
  SUMMARY,
  TAGLINE,
  THEME_COLOURS,
} from "../catalogue/identity.ts";
import { referenceSection } from "./reference.ts";
import { buildRequest, KEY_PLACEHOLDER, ORIGIN_PLACEHOLDER, sample } from "./script/request.js";

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

/** The modules of the script. Each imports only those before it. */
export const MODULES: readonly string[] = [
  "text",
  "request",
  "limits",
  "document",
  "key",
  "meter",
  "composer",
  "answer",
  "waits",
  "console",
  "start",
];

/** The style in one piece. */
export const STYLE: string = withoutComments(PALETTE + read("page.css"));
/** The script in one piece, so that the page needs no second request. */
export const SCRIPT: string = MODULES.map((name) => unbound(read(`script/${name}.js`))).join("\n");

/** The icon: a print in the page's colours. */
export const ICON: string = String(
  html`
    <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">
      <rect width="32" height="32" rx="8" fill="${ICON_COLOURS[0]}" />
      <g fill="${ICON_COLOURS[1]}">${new Html(PRINT_SHAPES)}</g>
    </svg>
  `,
);

/** Advice for visitors without the script, which otherwise replaces the placeholder. */
const REPLACE_HOST = "In the commands, replace THIS_HOST with the host of this page.";
/** Sections that the table of contents links to. */
const CONTENTS = [["operations", "Operations"], ["limits", "Limits"], ["errors", "Errors"], [
  "retries",
  "Retries",
], [
  "health",
  "Health",
]];

/** Reads a file in this folder. Before Deno 2.6, text imports would need an unstable flag in each configuration. */
function read(name: string): string {
  return Deno.readTextFileSync(new URL(name, import.meta.url));
}

/** A module without imports and exports, for one script in which all modules share a scope. */
function unbound(module: string): string {
  return withoutComments(module).replaceAll(/^import [^;]+;\n/gm, "").replaceAll(/^export /gm, "");
}

/** The text of a style or a script without the comments that begin a line. */
function withoutComments(text: string): string {
  return text.replaceAll(/^[ \t]*(?:\/\/.*|\/\*[^]*?\*\/)\n/gm, "").replaceAll(/\n\n+/g, "\n");
}

/**
 * Renders the page. Its links, samples and console use the public URL, or else the page's own origin, which its script
 * writes into the samples. So the page is the same for every host.
 */
export function renderPage(options: PageOptions): string {
  const { publicUrl = "", catalogue, environment, signUpIsOpen, version, securityContact } = options;
  const { title, resources } = catalogue;
  const nouns = nounsOf(resources);
  const sampleBase = publicUrl || ORIGIN_PLACEHOLDER;
  const operations = options.operations().filter((operation) => isDocumented(operation, BASE_PATH));
  const page = html`
    <!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="color-scheme" content="light dark">
        <meta name="theme-color" media="(prefers-color-scheme: light)" content="${THEME_COLOURS.light}">
        <meta name="theme-color" media="(prefers-color-scheme: dark)" content="${THEME_COLOURS.dark}">
        <meta name="description" content="${SUMMARY}">
        <title>${title}: ${TAGLINE}</title>
        <link rel="icon" href="data:image/svg+xml,${encodeURIComponent(ICON)}">
        <style>${new Html(STYLE)}</style>
      </head>
      <body data-sign-up="${signUpIsOpen ? "open" : "closed"}">
    ${symbol()}
    <a class="skip" href="#content">Skip to the content</a>
    ${bar(title)}
    <main id="content" tabindex="-1">
    <div class="hero words">
      <h1>${title}</h1>
      <p class="lead">${LEAD.map((sentence) => [html`<span>${sentence}</span>`, " "])}</p>
    </div>
    ${consoleSection(operations, { publicUrl, environment, catalogue, signUpIsOpen })}
    <div class="words">
    ${steps(operations, sampleBase, signUpIsOpen)}
    <p class="small">
      This is a ${environment} service: its keys begin with <code>${keyStart(
        catalogue.keyPrefix,
        environment,
      )}</code>.
    </p>
    ${referenceSection(operations, { base: publicUrl, original: catalogue.interface.original })}
    ${limitsSection(catalogue.plans)}
    ${errorsSection(errorsOfAll(operations, PROXY_ERRORS))}
    ${retriesSection(nouns)}
    ${conditionsSection(nouns)}
    ${integersSection(resources)}
    ${healthSection(publicUrl, sampleBase)}
    </div>
    </main>
    <footer class="words small">
      <p>${title} ${version}</p>
      <p>${catalogue.interface.license.name} licence</p>
      ${SOURCE === undefined ? "" : html`<p><a href="${SOURCE}">Source</a></p>`}
      ${securityContact === undefined ? "" : html`<p><a href="${securityContact}">Contact</a></p>`}
      <p><a href="${publicUrl}/ready">Status</a></p>
    </footer>
    <p id="announcement" class="quiet" role="status"></p>
    <script type="module">${new Html(SCRIPT)}</script>
      </body>
    </html>
  `;
  return `${page}\n`;
}

/** The shape of a print, with the cross of a failed request. */
function symbol(): Html {
  return html`
    <svg class="quiet" aria-hidden="true">
      <symbol id="print" viewBox="4 4 24 24">
        ${new Html(PRINT_SHAPES)}
        <path class="cross" d="M8 8l16 16m0-16L8 24"/>
      </symbol>
    </svg>
  `;
}

/** The bar with the table of contents. On narrow screens it has a link to the console, too. */
function bar(title: string): Html {
  return html`
    <header class="bar">
      <a class="home" href="#content" aria-label="${title}: to the top"><svg><use href="#print"/></svg></a>
      <nav id="contents" aria-label="Contents">${CONTENTS.map(([id = "", title = ""]) =>
        html`<a href="#${id}">${title}</a>`
      )}</nav>
      <a class="to-console scripted" href="#console">Console</a>
    </header>
  `;
}

/** The steps to the first call. */
function steps(operations: readonly DeclaredOperation[], base: string, signUpIsOpen: boolean): Html {
  const signUp = operations.find(({ access }) => access === ACCESS.address);
  const [first] = operations;
  return html`
    <ol class="steps">
      <li
        class="scripted if-open"><b>Make a key.</b> One click, no email. It sends your first call right away.</li>
      <li class="if-closed">
        <b>Bring a key.</b> The operator creates it with <code>deno task accounts create</code>.
      </li>
      <li class="scripted"><b>Change the request.</b> Edit the underlined parts; dim parts are not sent.</li>
      <li>
        <span class="scripted"><b>Take it with you</b> as curl, JavaScript or Python.</span> From a shell:
        <p class="unscripted">The console needs JavaScript. ${base === ORIGIN_PLACEHOLDER
          ? REPLACE_HOST
          : ""}</p>
        ${signUp && signUpIsOpen ? copyable("sign-up-curl", "the sign-up", curl(signUp, base)) : ""}
        ${first && copyable("first-curl", "the first call", curl(first, base))}
      </li>
    </ol>
  `;
}

/** A curl command for the operation, with the example of its body. */
function curl(operation: DeclaredOperation, base: string): string {
  const { method, path, access, body } = operation;
  const key = access === ACCESS.key ? KEY_PLACEHOLDER : "";
  const target = { base, method, path, bodyType: bodyTypeOf(operation), key };
  return sample("curl", buildRequest(target, [], exampleOf(body)));
}
