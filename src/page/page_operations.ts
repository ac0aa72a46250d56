import { createHash } from "node:crypto";
import { CompressedText, operation, Representation } from "../web/mod.ts";
import { ACCESS, type Operation } from "../service/mod.ts";
import type { Part } from "../operator/part.ts";
import { IDENTITY } from "../catalogue/identity.ts";
import { requireColours } from "./identity.ts";
import { CHANGES, CHANGES_PATH, ICON, type PageOptions, renderPage, SCRIPT, STYLE } from "./page.ts";

/** The page. */
export const PAGE: Part = { operations: pageOperations };

/** Public operations of the page: the page itself, its icon, and the changes that it links to. */
function pageOperations(options: PageOptions): Operation[] {
  requireColours(IDENTITY);
  const common = { method: "GET", access: ACCESS.public } as const;
  const icon = new Representation(`${ICON}`, {
    type: "image/svg+xml",
    headers: { "cache-control": "max-age=86400" },
  });
  // Created at the first request, because it describes all operations.
  let page: CompressedText | undefined;

  const getPage = operation(
    { ...common, id: "getPage", path: "/", summary: "Get the page" },
    (_input, { request }) => {
      page ??= new CompressedText(
        renderPage(options),
        "text/html; charset=utf-8",
        pageHeaders(options.publicUrl),
      );
      return page.respondTo(request);
    },
  );

  const iconAt = (id: string, path: string) =>
    operation(
      { ...common, id, path, summary: "Get the icon" },
      (_input, { request }) => icon.respondTo(request.headers.get("if-none-match") ?? undefined),
    );

  const changes = new Representation(CHANGES, { type: "text/markdown; charset=utf-8" });
  const getChanges = operation(
    { ...common, id: "getChanges", path: CHANGES_PATH, summary: "Get the changes in each version" },
    (_input, { request }) => changes.respondTo(request.headers.get("if-none-match") ?? undefined),
  );

  return [getPage, getChanges, iconAt("getIcon", "/favicon.svg"), iconAt("getFavicon", "/favicon.ico")];
}

/** Headers of the page. The policy (CSP 3) allows only the page's own script and style, and calls to the service. */
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
