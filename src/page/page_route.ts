import { createHash } from "node:crypto";
import { HostedContent } from "../http/hosted.ts";
import { Representation } from "../http/response.ts";
import type { Route } from "../http/router.ts";
import type { PageOptions } from "./catalogue.ts";
import { html } from "./html.ts";
import { ICON } from "./icon.ts";
import { renderPage, SCRIPT, STYLE } from "./page.ts";

/** The page for people, and its icon. */
export function pageRoutes(options: PageOptions): Route[] {
  let page: HostedContent | undefined;
  const icon = new Representation(ICON, {
    type: "image/svg+xml",
    headers: { "cache-control": "max-age=86400" },
  });

  function getPage(request: Request, base: string): Response {
    page ??= new HostedContent(
      (base) => renderPage(base, options),
      "text/html; charset=utf-8",
      pageHeaders(options.publicUrl),
    );
    return page.respondTo(request, String(html`${base}`));
  }

  return [
    { method: "GET", path: "/", access: "public", handler: (request, { base }) => getPage(request, base) },
    ...["/favicon.svg", "/favicon.ico"].map((path): Route => (
      { method: "GET", path, access: "public", handler: (request) => icon.respondTo(request) }
    )),
  ];
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
    "content-security-policy": policy.join("; "),
    "referrer-policy": "no-referrer",
    "link": `<${publicUrl ?? ""}/v1/openapi.json>; rel="service-desc"`, // RFC 8631
  };
}

function hashOf(text: string): string {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}
