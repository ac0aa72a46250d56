import { createHash } from "node:crypto";
import { BoundedMap } from "../../store/cache.ts";
import { Representation } from "../../http/response.ts";
import { type Call, type Operation, operation } from "../../api/operation.ts";
import { html } from "./html.ts";
import { type PageOptions, renderPage } from "./page.ts";
import { SCRIPT } from "./script.ts";
import { STYLE } from "./style.ts";

const MAX_HOSTS = 100;
/** Stands in the page for what URLs begin with, so that one page more costs next to nothing. */
const PLACEHOLDER = "http://base.invalid";

/** The page for people. */
export function pageOperation(options: PageOptions): Operation {
  const pages = new BoundedMap<string, Representation>(MAX_HOSTS);
  const headers = pageHeaders(options.publicUrl);
  let template: string | undefined;
  let made = 0;

  /** Each host has a page of its own: the commands in it name the host. */
  function getPage({ request, base }: Call): Response {
    const known = pages.get(base);
    if (known) return known.respondTo(request);
    template ??= renderPage(PLACEHOLDER, options);
    const text = template.replaceAll(PLACEHOLDER, () => String(html`${base}`));
    // Compressing costs more than all the rest, and anybody can make up hosts.
    const compress = made++ < MAX_HOSTS;
    const page = new Representation(text, { type: "text/html; charset=utf-8", headers, compress });
    pages.set(base, page);
    return page.respondTo(request);
  }

  return operation(
    { id: "getPage", method: "GET", path: "/", access: "public", summary: "Get the page" },
    (_input, call) => getPage(call),
  );
}

/** The page may do what it does, and nothing that anybody might bring into it (CSP 3). */
function pageHeaders(publicUrl: string | undefined): Readonly<Record<string, string>> {
  const policy = [
    "default-src 'none'",
    `script-src '${hashOf(SCRIPT)}'`,
    `style-src '${hashOf(STYLE)}'`,
    `connect-src 'self'${publicUrl === undefined ? "" : ` ${new URL(publicUrl).origin}`}`,
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ];
  return {
    "cache-control": "no-cache",
    "content-security-policy": policy.join("; "),
    "referrer-policy": "no-referrer",
    "link": `<${publicUrl ?? ""}/v1/openapi.json>; rel="service-desc"`, // RFC 8631
  };
}

function hashOf(text: string): string {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}
