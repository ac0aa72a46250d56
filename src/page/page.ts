import { KEY_PREFIXES } from "../accounts/api_key.ts";
import { bodyTypeOf, type Catalogue, catalogueOf, exampleOf, type PageOptions } from "./catalogue.ts";
import { consoleSection } from "./console.ts";
import {
  conditionsSection,
  copyable,
  errorsSection,
  healthSection,
  integersSection,
  limitsSection,
  retriesSection,
} from "./guide.ts";
import { Html, html } from "./html.ts";
import { ICON_URL, PAW } from "./icon.ts";
import { buildRequest, KEY_PLACEHOLDER, sample } from "./page.js";
import { operationsSection, referenceSection } from "./reference.ts";

/** The style of the page. */
export const STYLE: string = read("page.css");
/** The script of the page. */
export const SCRIPT: string = read("page.js");

const CONTENTS = ["Operations", "Limits", "Errors", "Retries", "Integers", "Reference", "Health"];

/** A file beside this one. Text imports would need an unstable flag in each configuration before Deno 2.6. */
function read(name: string): string {
  return Deno.readTextFileSync(new URL(name, import.meta.url));
}

/** The page for those who reach the service at the base. */
export function renderPage(base: string, options: PageOptions): string {
  const catalogue = catalogueOf(options.operations());
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
        <svg class="quiet" aria-hidden="true"><symbol id="paw" viewBox="4 4 24 24">${new Html(
          PAW,
        )}</symbol></svg>
        <a class="skip" href="#content">Skip to the content</a>
        ${bar()}
        <main id="content" tabindex="-1">
          <div class="hero words">
            <h1>Animal Store</h1>
            <p class="lead"><span>Animals over HTTP and JSON.</span> <span>Sixty requests a minute, and never one over.</span></p>
          </div>
          ${consoleSection(catalogue, options)}
          <div class="words">
            ${steps(base, catalogue, options)}
            ${operationsSection(catalogue)}
            ${limitsSection()}
            ${errorsSection(catalogue)}
            ${retriesSection()}
            ${conditionsSection()}
            ${integersSection()}
            ${referenceSection(catalogue, base)}
            ${healthSection(base)}
          </div>
        </main>
        <p id="announcement" class="quiet" role="status"></p>
        <script type="module">${new Html(SCRIPT)}</script>
      </body>
    </html>
  `);
}

function bar(): Html {
  return html`
    <header class="bar">
      <a class="home" href="#content" aria-label="Animal Store: to the top"><svg><use href="#paw"/></svg></a>
      <nav id="contents" aria-label="Contents">
        ${CONTENTS.map((label) =>
          html`
            <a href="#${label.toLowerCase()}">${label}</a>
          `
        )}
      </nav>
    </header>
  `;
}

/** How to come to a first call: on the page, and from a shell. */
function steps(
  base: string,
  { operations }: Catalogue,
  { environment, signUpIsOpen }: PageOptions,
): Html {
  const command = (wanted: string): string => {
    const operation = operations.find(({ id }) => id === wanted);
    if (operation === undefined) return "";
    const { method, path, access, body } = operation;
    const key = access === "key" ? KEY_PLACEHOLDER : "";
    const target = { base, method, path, bodyType: bodyTypeOf(operation), key };
    return sample("curl", buildRequest(target, [], exampleOf(body)));
  };
  return html`
    <ol class="steps">
      ${signUpIsOpen
        ? html`<li class="scripted"><b>Make a key.</b> One press, no email. The first call goes out with it.</li>`
        : html`<li><b>Bring a key.</b> The operator makes it with <code>deno task accounts create</code>.</li>`}
      <li class="scripted">
        <b>Change the request.</b> Edit what is underlined; dim parts are not sent.
      </li>
      <li>
        <span class="scripted"><b>Take it with you</b> as curl, JavaScript or Python.</span> From a shell:
        ${signUpIsOpen ? copyable("sign-up-curl", "the sign-up", command("createAccount")) : ""}
        ${copyable("first-curl", "the first call", command("listPets"))}
      </li>
    </ol>
    <p class="small">
      This service is ${environment}: its keys begin with <code>${KEY_PREFIXES[
        environment
      ]}</code>. For tools there is
      <a href="${base}/v1/openapi.json">openapi.json</a>.
    </p>
  `;
}
