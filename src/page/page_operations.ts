import { createHash } from "node:crypto";
import { type Operation, operation } from "../api/operation.ts";
import { HostedContent, Representation } from "../http/representation.ts";
import type { PageOptions } from "./catalogue.ts";
import { html } from "./html.ts";
import { ICON } from "./icon.ts";
import { renderPage, SCRIPT, STYLE } from "./page.ts";

/** The page for people, and its icon. */
export function pageOperations(options: PageOptions): Operation[] {
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

  const common = { method: "GET", access: "public" } as const;
  return [
    operation(
      { ...common, id: "getPage", path: "/", summary: "Get the page" },
      (_input, { request, base }) => {
        return getPage(request, base);
      },
    ),
    ...[["getIcon", "/favicon.svg"], ["getFavicon", "/favicon.ico"]].map(([id = "", path = ""]) =>
      operation(
        { ...common, id, path, summary: "Get the icon" },
        (_input, { request }) => icon.respondTo(request.headers.get("if-none-match") ?? undefined),
      )
    ),
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
