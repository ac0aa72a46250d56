// What the pages have in common: one response with its own style and script, and a policy that allows nothing else.
import { createHash } from "node:crypto";
import { IDENTITY } from "../catalogue/identity.ts";
import { type Content, Html, html } from "./html.ts";

/** The style and the script of a page. */
export interface Assets {
  readonly style: string;
  readonly script: string;
}

const PALETTE =
  `:root{--hue:${IDENTITY.hues.accent};--paper-hue:${IDENTITY.hues.paper};--chroma:${IDENTITY.chroma}}`;
const PRINT_HTML = new Html(IDENTITY.print.shapes.replaceAll('"', "'"));
/** The icon: a print in the page's colours. */
export const ICON: Html = html`
  <svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'>
    <rect width='32' height='32' rx='8' fill='oklch(40% ${0.18 * IDENTITY.chroma} ${IDENTITY.hues.accent})' />
    <g fill='oklch(98% ${0.01 * IDENTITY.chroma} ${IDENTITY.hues.paper})'>${PRINT_HTML}</g>
  </svg>
`;

/**
 * The assets of a page: style sheets without comments and spaces, after the colours of this service, and what modules
 * export, each from its own source, so that a page needs no second request. One of them exports `start`.
 */
export function assets(sheets: readonly string[], modules: readonly object[]): Assets {
  const style = sheets.map((sheet) =>
    sheet.replaceAll(/\/\*[^]*?\*\/|;?\s*(?=})|\n\s*|(?<=[:,;{}>]) | (?=[{>])/g, "")
  );
  const script = modules.flatMap((module) => Object.entries(module).map(declared));
  return { style: PALETTE + style.join(""), script: [...script, "start();"].join("") };
}

/** Reads a file while its module loads, because the service then gives up its access to files. */
export function read(name: string): string {
  return Deno.readTextFileSync(new URL(name, import.meta.url));
}

/** A literal of a script without templates in templates, which stays as it is, or a sign and the spaces around it. */
const LITERAL_OR_SIGN =
  /("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\])*`|\/(?! )(?:\\.|\[(?:\\.|[^\]\\])*]|[^/\\[\n])+\/)|\s*([=<>!&|?:;,+*{}()[\]-]+)\s*/g;

/** A function, without what it does not need, or a constant, as a script declares it. */
function declared([name, value]: [name: string, value: unknown]): string {
  if (typeof value !== "function") return `const ${name}=${JSON.stringify(value)};`;
  const code = String(value).replaceAll(/^ *(?:\/\/.*|\/\*\*.*\*\/)$/gm, "");
  return code.replaceAll(/[,;]?\n\s*(?=[}\])])/g, "").replaceAll(LITERAL_OR_SIGN, "$1$2");
}

/** End tags that HTML does not need, and spaces. */
const UNNEEDED =
  /<\/(?:li|d[dt]|t[dhr]|thead|tbody)>|<\/p>(?=\n*<(?:\/(?!a)|p|ul|dl|pre|table|h\d|article|section|div|details)\b)|(?<=>)\n+(?=<)| (?=>)/g;

/** A page with this content. */
export function frame(
  { style, script }: Assets,
  { title, description, body }: Readonly<{ title: string; description: string; body: Content }>,
): string {
  const short = `${html`${body}`}`.replaceAll(UNNEEDED, "");
  const page = html`
    <!doctype html>
    <html lang="en">
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="description" content="${description}">
    <title>${title}</title>
    <link rel="icon" href="data:image/svg+xml,${ICON}">
    <style>${new Html(style)}</style>
    <svg class="quiet" aria-hidden="true">
      <symbol id="print" viewBox="4 4 24 24">
        ${PRINT_HTML}
        <path class="cross" d="M8 8l16 16m0-16L8 24"/>
      </symbol>
    </svg>
    <a class="quiet" href="#content">Skip to the content</a>
    ${new Html(short)}
    <p id="news" class="quiet" role="status"></p>
    <script type="module">${new Html(script)}</script>
  `;
  return `${page}\n`;
}

/** The name of the service, with its print. */
export function home(title: string): Html {
  return html`<a class="home" href="#content"><svg aria-hidden="true"><use href="#print" /></svg>${title}</a>`;
}

/** Headers of a page, which may connect to these origins. The policy (CSP 3) allows only its own script and style. */
export function headersOf({ script, style }: Assets, origins: string): Readonly<Record<string, string>> {
  const policy = [
    "default-src 'none'",
    `script-src '${hashOf(script)}'`,
    `style-src '${hashOf(style)}'`,
    `connect-src ${origins}`,
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ];
  return { "content-security-policy": policy.join("; "), "referrer-policy": "no-referrer" };
}

function hashOf(text: string): string {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}
