import { createHash } from "node:crypto";
import { IF_NONE_MATCH, NOT_MODIFIED } from "../web/headers.ts";
import { openApiDocument } from "../web/openapi.ts";
import { operation } from "../web/operation.ts";
import type { Operation } from "../resource/call.ts";
import { named, object } from "../web/schema.ts";
import { ApiError, ERRORS } from "../web/error.ts";
import { CompressedText, Representation } from "../web/representation.ts";
import { createResponse } from "../web/response.ts";
import { ICON, type PageOptions, renderPage, SCRIPT, STYLE } from "./page.ts";

/** Options of {@linkcode serviceOperations}. */
export interface ServiceOperationsOptions extends PageOptions {
  /** The time, in ms since the epoch. */
  readonly clock: () => number;
}

const YEAR = 365 * 86_400_000;
const TEXT = { "content-type": "text/plain; charset=utf-8" };
const DOCUMENT = named("Document", {
  ...object({}),
  json: { type: "object", description: "An OpenAPI 3.1 document", additionalProperties: true },
});

/** Public operations of the service: OpenAPI document, page, icon, security.txt and robots.txt. */
export function serviceOperations(options: ServiceOperationsOptions): Operation[] {
  const { operations, publicUrl, securityContact, clock } = options;
  const common = { method: "GET", access: "public" } as const;
  const icon = new Representation(ICON, {
    type: "image/svg+xml",
    headers: { "cache-control": "max-age=86400" },
  });
  // Created at the first request, because both describe all operations.
  let document: CompressedText | undefined;
  let page: CompressedText | undefined;

  const getOpenApi = operation({
    ...common,
    id: "getOpenApi",
    path: "/v1/openapi.json",
    tag: "Service",
    summary: "Get the OpenAPI document",
    isExtension: true,
    headers: { "If-None-Match": IF_NONE_MATCH },
    answers: {
      200: { description: "The OpenAPI document", body: DOCUMENT, headers: ["ETag", "Cache-Control"] },
      304: NOT_MODIFIED,
    },
  }, (_input, { request }) => {
    document ??= new CompressedText(
      JSON.stringify(openApiDocument(operations(), publicUrl ?? "")),
      "application/json",
    );
    return document.respondTo(request);
  });

  /** RFC 9116. */
  const getSecurity = operation({
    ...common,
    id: "getSecurity",
    path: "/.well-known/security.txt",
    summary: "Get the security contact",
    errors: [ERRORS.not_found],
  }, () => {
    if (securityContact === undefined) throw new ApiError(ERRORS.not_found, "There is nothing at this path.");
    const expires = new Date(clock() + YEAR).toISOString();
    return createResponse(`Contact: ${securityContact}\nExpires: ${expires}\n`, { headers: TEXT });
  });

  /** RFC 9309. */
  const getRobots = operation(
    { ...common, id: "getRobots", path: "/robots.txt", summary: "Get the rules for robots" },
    () => createResponse("User-agent: *\nDisallow: /v1/\n", { headers: TEXT }),
  );

  const getPage = operation(
    { ...common, id: "getPage", path: "/", summary: "Get the page" },
    (_input, { request }) => {
      page ??= new CompressedText(renderPage(options), "text/html; charset=utf-8", pageHeaders(publicUrl));
      return page.respondTo(request);
    },
  );

  const iconAt = (id: string, path: string) =>
    operation(
      { ...common, id, path, summary: "Get the icon" },
      (_input, { request }) => icon.respondTo(request.headers.get("if-none-match") ?? undefined),
    );

  return [
    getOpenApi,
    getSecurity,
    getRobots,
    getPage,
    iconAt("getIcon", "/favicon.svg"),
    iconAt("getFavicon", "/favicon.ico"),
  ];
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
