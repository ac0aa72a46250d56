import { CompressedText, createResponse, operation, valueResponse } from "../web/mod.ts";
import { ACCESS, type Operation } from "../service/mod.ts";
import type { Part, PartOptions } from "../operator/part.ts";
import { IDENTITY } from "../catalogue/identity.ts";
import { requireColours } from "./identity.ts";
import { headersOf, ICON } from "./frame.ts";
import { CHANGES_PATH, type PageOptions, renderText } from "./guide.ts";
import { formsOf, OPERATORS_ASSETS, renderOperatorsPage } from "./operators.ts";
import { ASSETS, CHANGES, renderPage } from "./page.ts";

/** The page. */
export const PAGE: Part = { operations: pageOperations };
/** The page for operators. */
export const OPERATORS_PAGE: Part = { operations: operatorsPageOperations };
/** Path of the operators' page. Everything that its script asks for has the same beginning. */
const OPERATORS_PATH = "/operator/";
const HTML = "text/html; charset=utf-8";
const MARKDOWN = "text/markdown; charset=utf-8";

/** Public operations of the page: the page itself, its icon, and the texts that it links to. */
function pageOperations(options: PageOptions): Operation[] {
  requireColours(IDENTITY);
  const { publicUrl } = options;
  const origins = publicUrl === undefined ? "'self'" : `'self' ${new URL(publicUrl).origin}`;
  const link = `<${publicUrl ?? ""}/v1/openapi.json>; rel="service-desc"`; // RFC 8631
  const icon = {
    summary: "Get the icon",
    type: "image/svg+xml",
    headers: { "cache-control": "max-age=86400" },
    text: () => `${ICON}`,
  };
  const guide = { summary: "Get the guide and the operations in Markdown", text: () => renderText(options) };
  return [
    textAt("/", {
      id: "getPage",
      summary: "Get the page",
      type: HTML,
      headers: { ...headersOf(ASSETS, origins), link },
      text: () => renderPage(options),
    }),
    textAt("/docs/guide", { ...guide, id: "getGuide", type: MARKDOWN }),
    textAt("/llms.txt", { ...guide, id: "getLlms", type: "text/plain; charset=utf-8" }),
    textAt(CHANGES_PATH, {
      id: "getChanges",
      summary: "Get the changes in each version",
      type: MARKDOWN,
      text: () => CHANGES,
    }),
    textAt("/favicon.svg", { ...icon, id: "getIcon" }),
    textAt("/favicon.ico", { ...icon, id: "getFavicon" }),
  ];
}

/** The operators' page, and what its script asks for; nothing if there are no operators. */
function operatorsPageOperations({ catalogue, operations, hasOperators }: PartOptions): Operation[] {
  if (!hasOperators) return [];
  const redirect = operation(
    {
      method: "GET",
      access: ACCESS.public,
      id: "redirectToOperatorsPage",
      path: OPERATORS_PATH.slice(0, -1),
      summary: "Lead to the operators' page",
    },
    // Relative, because a proxy may serve it at another address.
    () =>
      createResponse(null, {
        status: 308,
        headers: { location: OPERATORS_PATH.slice(1) },
        isCacheable: true,
      }),
  );
  const getForms = operation(
    {
      method: "GET",
      access: ACCESS.operator,
      id: "getOperatorsForms",
      path: `${OPERATORS_PATH}forms`,
      tag: { name: "Page", description: "The operators' page" },
      summary: "Get what the operators' page shows",
    },
    () => valueResponse(formsOf(operations())),
  );
  return [
    textAt(OPERATORS_PATH, {
      id: "getOperatorsPage",
      summary: "Get the operators' page",
      type: HTML,
      headers: { ...headersOf(OPERATORS_ASSETS, "'self'"), "cross-origin-opener-policy": "same-origin" },
      text: () => renderOperatorsPage(catalogue.title),
    }),
    redirect,
    getForms,
  ];
}

/** What {@linkcode textAt} serves. */
interface Text extends Pick<Operation, "id" | "summary"> {
  readonly type: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly text: () => string;
}

/** A text that anyone can get. It is created at the first request, because some describe all operations. */
function textAt(path: string, { id, summary, type, headers, text }: Text): Operation {
  let created: CompressedText | undefined;
  return operation({ method: "GET", access: ACCESS.public, id, path, summary }, (_input, { request }) => {
    created ??= new CompressedText(text(), type, headers);
    return created.respondTo(request);
  });
}
