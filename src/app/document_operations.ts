import { DEPRECATIONS_PATH, deprecationsText, IF_NONE_MATCH, NOT_MODIFIED } from "../web/headers.ts";
import { ApiError, CompressedText, createResponse, ERRORS, operation, type Tag } from "../web/mod.ts";
import { type Interface, openApiDocument, requiredHeader } from "../web/openapi.ts";
import { named, object, stringifyJson } from "../web/schema.ts";
import {
  ACCESS,
  ADDED_PARAMETERS,
  BASE_PATH,
  INTERFACE,
  LIMIT_HEADER_NAMES,
  type Operation,
  PROXY_ERRORS,
} from "../service/mod.ts";
import type { Catalogue } from "../resource/mod.ts";
import type { PartOptions } from "../operator/part.ts";

/** Operations on the service itself. */
export const SERVICE_TAG: Tag = { name: "Service", description: "The service itself" };
const DESCRIPTION =
  `Every request counts toward a limit per minute and a limit per day, both on the UTC clock, even if the response is an
error, except OPTIONS, \`GET /openapi.json\`, and requests that either limit or a ban refuses. Response headers describe
both limits. Refused requests that arrive more than 5 seconds after the first 429 of a minute count toward a ban. With
five times as many of them in that minute as the limit per minute allows, the account is banned for 5 minutes. Each
further ban within a day is twice as long, up to 24 hours. Every error has the same body, \`Error\`, but a request with
more than 100 headers, or more than 64 KiB of headers or URL, may get a 400 without a body. An unknown path gets 404
\`not_found\`, and a method that a path does not support gets 405 \`method_not_allowed\`. HEAD works wherever GET does.
Unknown fields and query parameters get 400. Operations with a \`Prefer\` header ignore them, unless it is
\`handling=strict\`. Responses may get further fields, and errors further codes: ignore those that you do not know.`;
/** Of the 403s, only those that depend on the key have it. */
const CHALLENGE = { ...requiredHeader("The challenge (RFC 6750)", 'Bearer realm="store"'), required: false };
const YEAR = 365 * 86_400_000;
const TEXT = { "content-type": "text/plain; charset=utf-8" };
const DOCUMENT = named("Document", {
  ...object({}),
  json: { type: "object", description: "An OpenAPI 3.1 document", additionalProperties: true },
});
const AND = new Intl.ListFormat("en-GB");

/** Describes the document for clients. */
export function interfaceForClients(catalogue: Catalogue): Interface {
  return {
    ...INTERFACE,
    ...catalogue.interface,
    addedParameters: ADDED_PARAMETERS,
    path: BASE_PATH,
    title: catalogue.title,
    summary: `A catalogue of ${
      AND.format(catalogue.resources.map(({ nouns }) => nouns.many))
    }, with API keys, plans and exact rate limits.`,
    description: DESCRIPTION,
    credential: "An API key of an account, sent as a bearer token",
    allHave: ["X-Request-Id", ...LIMIT_HEADER_NAMES],
    headers: { ...INTERFACE.headers, "WWW-Authenticate": CHALLENGE },
    errorsHave: { ...INTERFACE.errorsHave, 403: ["WWW-Authenticate"] },
    errors: PROXY_ERRORS,
    error: ERRORS.not_found,
  };
}

type Described = Pick<PartOptions, "catalogue" | "publicUrl" | "securityContact" | "operations">;

/**
 * Public operations that describe the service: OpenAPI document, deprecations, security.txt and robots.txt. `clock`
 * returns the time, in ms since the epoch.
 */
export function documentOperations(
  { catalogue, publicUrl = "", securityContact, operations }: Described,
  clock: () => number,
): Operation[] {
  const common = { method: "GET", access: ACCESS.public } as const;
  // Created at the first request, because it describes all operations.
  let document: CompressedText | undefined;

  const getOpenApi = operation({
    ...common,
    id: "getOpenApi",
    path: `${BASE_PATH}/openapi.json`,
    tag: SERVICE_TAG,
    summary: "Get the OpenAPI document",
    isExtension: true,
    headers: { "If-None-Match": IF_NONE_MATCH },
    answers: {
      200: { description: "The OpenAPI document", body: DOCUMENT, headers: ["ETag", "Cache-Control"] },
      304: NOT_MODIFIED,
    },
  }, (_input, { request }) => {
    document ??= new CompressedText(
      stringifyJson(openApiDocument(operations(), publicUrl, interfaceForClients(catalogue))),
      "application/json",
    );
    return document.respondTo(request);
  });

  const getDeprecations = operation({
    ...common,
    id: "getDeprecations",
    path: DEPRECATIONS_PATH,
    tag: SERVICE_TAG,
    summary: "List deprecations",
    answers: { 200: { description: "Deprecated operations, as plain text" } },
  }, () => createResponse(deprecationsText(operations()), { headers: TEXT }));

  /** RFC 9116. */
  const getSecurity = operation({
    ...common,
    id: "getSecurity",
    path: "/.well-known/security.txt",
    summary: "Get the security contact",
    errors: [ERRORS.not_found],
  }, () => {
    if (securityContact === undefined) {
      throw new ApiError(ERRORS.not_found, "There is nothing at this path.");
    }
    const expires = new Date(clock() + YEAR).toISOString();
    return createResponse(`Contact: ${securityContact}\nExpires: ${expires}\n`, { headers: TEXT });
  });

  /** RFC 9309. */
  const getRobots = operation(
    { ...common, id: "getRobots", path: "/robots.txt", summary: "Get the rules for robots" },
    () => createResponse(`User-agent: *\nDisallow: ${BASE_PATH}/\n`, { headers: TEXT }),
  );

  return [getOpenApi, getDeprecations, getSecurity, getRobots];
}
