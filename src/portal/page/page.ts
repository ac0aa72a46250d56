import { isDocumented } from "../../api/openapi.ts";
import type { Operation } from "../../api/operation.ts";
import type { Environment } from "../../accounts/api_key.ts";
import { Html, html } from "./html.ts";
import { ICON_URL } from "./icon.ts";
import { SCRIPT } from "./script.ts";
import { consoleSection } from "./sections/console_section.ts";
import {
  deprecationSection,
  errorsSection,
  healthSection,
  integersSection,
  retriesSection,
} from "./sections/guide_sections.ts";
import { keySection } from "./sections/key_section.ts";
import { limitsSection } from "./sections/limits_section.ts";
import { copyable } from "./sections/parts.ts";
import { operationsSection, referenceSection } from "./sections/reference_section.ts";
import { STYLE } from "./style.ts";

/** What the page tells of the service. */
export interface PageOptions {
  /** What its URLs begin with; undefined for the origin that each request names. */
  readonly publicUrl: string | undefined;
  readonly environment: Environment;
  /** Whether anybody may make an account. */
  readonly signUpIsOpen: boolean;
  /** All operations of the service. */
  readonly operations: () => readonly Operation[];
}

const CONTENTS = [
  ["key", "Key"],
  ["call", "Call"],
  ["operations", "Operations"],
  ["limits", "Limits"],
  ["errors", "Errors"],
  ["retries", "Retries"],
  ["integers", "Integers"],
  ["deprecation", "Deprecation"],
  ["reference", "Reference"],
  ["health", "Health"],
] as const;

/** The page, for those who reach the service at the base. */
export function renderPage(base: string, options: PageOptions): string {
  const operations = options.operations().filter(isDocumented);
  return String(html`
    <!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="color-scheme" content="light dark">
        <meta name="description" content="A catalogue of animals over HTTP and JSON.">
        <title>Animal Store</title>
        <link rel="icon" href="${ICON_URL}">
        <style>${new Html(STYLE)}</style>
      </head>
      <body>
        ${bar()}
        <main id="content" tabindex="-1">
          ${introduction(base)}
          ${keySection({ base, ...options })}
          ${consoleSection(base, options.publicUrl, operations)}
          ${operationsSection(operations)}
          ${limitsSection()}
          ${errorsSection(operations)}
          ${retriesSection()}
          ${integersSection()}
          ${deprecationSection()}
          ${referenceSection(base, operations)}
          ${healthSection(base)}
        </main>
        <p id="announcement" class="quiet" role="status"></p>
        <script>${new Html(SCRIPT)}</script>
      </body>
    </html>
  `);
}

function bar(): Html {
  return html`
    <a class="skip" href="#content">Skip to the content</a>
    <header class="bar">
      <a class="home" href="#content" aria-label="Animal Store: to the top">
        <img src="${ICON_URL}" alt="" width="24" height="24"> <span>Animal Store</span>
      </a>
      <nav id="contents" aria-label="Contents">
        ${CONTENTS.map(([id, label]) =>
          html`
            <a href="#${id}">${label}</a>
          `
        )}
      </nav>
    </header>
  `;
}

function introduction(base: string): Html {
  return html`
    <section id="introduction">
      <h1>Animal Store</h1>
      <p class="lead">
        A catalogue of animals over HTTP and JSON: list them, add them, change them, with limits that are exact to
        the request.
      </p>
      ${copyable("base", `${base}/v1`)}
    </section>
  `;
}
