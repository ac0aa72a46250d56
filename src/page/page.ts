// The page, in one response.
import type { DeclaredOperation } from "../web/mod.ts";
import { errorsOfAll } from "../web/openapi.ts";
import { BASE_PATH, PROXY_ERRORS } from "../service/mod.ts";
import { IDENTITY } from "../catalogue/identity.ts";
import { consoleSection } from "./console.ts";
import { type Assets, assets, frame, home, read } from "./frame.ts";
import {
  baseOf,
  CHANGES_PATH,
  clientsOperations,
  firstOf,
  guideText,
  HOST_NOTE,
  type PageOptions,
} from "./guide.ts";
import { type Content, type Html, html } from "./html.ts";
import { type Section, sectionsOf } from "./markdown.ts";
import { errorList, referenceSection, sampleOf } from "./reference.ts";
import * as answering from "./script/answer.js";
import * as consoling from "./script/console.js";
import * as documenting from "./script/document.js";
import * as forming from "./script/form.js";
import * as limits from "./script/limits.js";
import * as printing from "./script/prints.js";
import * as referring from "./script/reference.js";
import * as requesting from "./script/request.js";
import * as sampling from "./script/sample.js";

/** The changes in each version, in Markdown. */
export const CHANGES: string = read("../CHANGES.md");
/** The style and the script of the page. */
export const ASSETS: Assets = assets([read("page.css")], [
  ...[requesting, sampling, limits, answering, documenting, forming, referring, printing, consoling],
]);

/**
 * Renders the page. Its links, samples and console use the public URL, or else the page's own origin, which its script
 * writes into the samples. So the page is the same for every host.
 */
export function renderPage(options: PageOptions): string {
  const { publicUrl = "", catalogue, version, securityContact } = options;
  const operations = clientsOperations(options);
  const { title } = catalogue;
  const sections = guideOf(operations, options);
  // Start and Authentication precede the operations.
  const [before, after] = [sections.slice(0, 2), sections.slice(2)];
  const body = html`
    <header id="bar">
      ${home(title)}
      <button type="button" popovertarget="contents">Contents</button>
      <a class="scripted" href="#console">Console</a>
    </header>
    ${contents(title, operations, { before, after })}
    <main id="content" tabindex="-1">
      ${hero(title, publicUrl)}
      ${consoleSection(options)}
      <div class="text">
        ${before.map(section)}
        ${referenceSection(operations, baseOf(options))}
        ${after.map(section)}
        <footer>
          <span>${title} ${version}</span>
          <span>${catalogue.interface.license.name} licence</span>
          ${securityContact && html`<a href="${securityContact}">Contact</a>`}
          <a href="${publicUrl}/ready">Status</a>
        </footer>
      </div>
    </main>
  `;
  return frame(ASSETS, { title: `${title}: ${IDENTITY.tagline}`, description: IDENTITY.summary, body });
}

function hero(title: string, publicUrl: string): Html {
  return html`
    <div class="hero">
      <h1>${title}</h1>
      ${IDENTITY.lead.map((sentence) => html`<p class="lead">${sentence}</p>`)}
      <p id="links" class="links">
        <a href="${publicUrl}${BASE_PATH}/openapi.json">OpenAPI 3.1</a>
        <a href="${publicUrl}${CHANGES_PATH}">Changes</a>
        ${IDENTITY.source && html`<a href="${IDENTITY.source}">Source: make your own</a>`}
      </p>
    </div>
  `;
}

/** The sections of the guide that precede the operations, and the others. */
type Parts = Readonly<Record<"before" | "after", readonly Section[]>>;

/** The contents: a column, or a popover on narrow screens. */
function contents(
  title: string,
  operations: readonly DeclaredOperation[],
  { before, after }: Parts,
): Html {
  const entry = (id: string, text: Content) => html`<li><a href="#${id}">${text}</a></li>`;
  const entries = (sections: readonly Section[]) => sections.map(({ id, title }) => entry(id, title));
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
      <input id="filter" type="search" class="scripted" placeholder="Search: /" aria-label="Search" aria-keyshortcuts="/">
      <p id="found" class="small" role="status"></p>
      <ul>${entries(before)}</ul>
      ${groups}
      ${group("Guide", entries(after))}
    </nav>
  `;
}

function section({ id, title, content }: Section): Html {
  return html`<section id="${id}"><h2>${title}</h2>${content}</section>`;
}

/** The guide, with samples and errors that the console uses. */
function guideOf(operations: readonly DeclaredOperation[], options: PageOptions): Section[] {
  const [signUp, list] = firstOf(options);
  const base = baseOf(options);
  const slots = {
    ...(signUp && { "sign-up": sampleOf(signUp, base, "sign-up") }),
    ...(list && { call: sampleOf(list, base, "first-call") }),
    host: html`<p class="unscripted">The console needs JavaScript. ${
      options.publicUrl === undefined && HOST_NOTE
    }</p>`,
    errors: errorList(errorsOfAll(operations, PROXY_ERRORS)),
  };
  const links = { "../CHANGES.md": `${options.publicUrl ?? ""}${CHANGES_PATH}` };
  return sectionsOf(guideText(options, Object.keys(slots)), { links, slots });
}
