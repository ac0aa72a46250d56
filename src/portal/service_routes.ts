import { ApiError } from "../http/error.ts";
import { HostedContent } from "../http/hosted.ts";
import { createResponse } from "../http/response.ts";
import type { Route } from "../http/router.ts";
import { openApiDocument } from "./openapi/document.ts";

/** What the service tells of itself. */
export interface ServiceRoutesOptions {
  /** Where to report a security problem, as a URI; undefined where there is nobody to ask. */
  readonly securityContact: string | undefined;
  /** The time, in ms since the epoch. */
  readonly clock: () => number;
}

const YEAR = 365 * 86_400_000;
const TEXT = { "content-type": "text/plain; charset=utf-8" };

/** What machines ask of any service: its OpenAPI document, security.txt and robots.txt. */
export function serviceRoutes({ securityContact, clock }: ServiceRoutesOptions): Route[] {
  const document = new HostedContent((base) => JSON.stringify(openApiDocument(base)), "application/json");

  /** RFC 9116. */
  function securityText(): Response {
    if (securityContact === undefined) throw new ApiError("not_found", "There is nothing at this path.");
    const expires = new Date(clock() + YEAR).toISOString();
    return createResponse(`Contact: ${securityContact}\nExpires: ${expires}\n`, { headers: TEXT });
  }

  /** RFC 9309. */
  function robots(): Response {
    return createResponse("User-agent: *\nDisallow: /v1/\n", { headers: TEXT });
  }

  return [
    {
      method: "GET",
      path: "/v1/openapi.json",
      access: "public",
      handler: (request, { base }) => document.respondTo(request, base),
    },
    { method: "GET", path: "/.well-known/security.txt", access: "public", handler: securityText },
    { method: "GET", path: "/robots.txt", access: "public", handler: robots },
  ];
}
