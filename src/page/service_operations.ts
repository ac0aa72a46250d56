import { IF_NONE_MATCH, NOT_MODIFIED } from "../api/headers.ts";
import { openApiDocument } from "../api/openapi.ts";
import { type Operation, operation } from "../api/operation.ts";
import { named, object } from "../api/schema.ts";
import { ApiError } from "../http/error.ts";
import { HostedContent } from "../http/representation.ts";
import { createResponse } from "../http/response.ts";

/** What the service tells of itself. */
export interface ServiceOperationsOptions {
  /** All operations of the service. */
  readonly operations: () => readonly Operation[];
  /** What its URLs begin with; undefined where they are relative. */
  readonly publicUrl: string | undefined;
  /** Where to report a security problem, as a URI; undefined where there is nobody to ask. */
  readonly securityContact: string | undefined;
  /** The time, in ms since the epoch. */
  readonly clock: () => number;
}

const YEAR = 365 * 86_400_000;
const TEXT = { "content-type": "text/plain; charset=utf-8" };
const DOCUMENT = named("Document", {
  ...object({}),
  json: { type: "object", description: "An OpenAPI 3.1 document", additionalProperties: true },
});

/** What machines ask of any service: its OpenAPI document, security.txt and robots.txt. */
export function serviceOperations(
  { operations, publicUrl, securityContact, clock }: ServiceOperationsOptions,
): Operation[] {
  let document: HostedContent | undefined;

  const getOpenApi = operation({
    id: "getOpenApi",
    method: "GET",
    path: "/v1/openapi.json",
    access: "public",
    tag: "Service",
    summary: "Get the OpenAPI document",
    isExtension: true,
    headers: { "If-None-Match": IF_NONE_MATCH },
    answers: {
      200: { description: "This document", body: DOCUMENT, headers: ["ETag", "Cache-Control"] },
      304: NOT_MODIFIED,
    },
  }, (_input, { request, base }) => {
    document ??= new HostedContent(
      () => JSON.stringify(openApiDocument(operations(), publicUrl ?? "")),
      "application/json",
    );
    return document.respondTo(request, base);
  });

  /** RFC 9116. */
  const getSecurity = operation({
    id: "getSecurity",
    method: "GET",
    path: "/.well-known/security.txt",
    access: "public",
    summary: "Tell where to report a security problem",
    errors: ["not_found"],
  }, () => {
    if (securityContact === undefined) throw new ApiError("not_found", "There is nothing at this path.");
    const expires = new Date(clock() + YEAR).toISOString();
    return createResponse(`Contact: ${securityContact}\nExpires: ${expires}\n`, { headers: TEXT });
  });

  /** RFC 9309. */
  const getRobots = operation({
    id: "getRobots",
    method: "GET",
    path: "/robots.txt",
    access: "public",
    summary: "Tell robots what to leave alone",
  }, () => createResponse("User-agent: *\nDisallow: /v1/\n", { headers: TEXT }));

  return [getOpenApi, getSecurity, getRobots];
}
