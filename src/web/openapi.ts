/**
 * The OpenAPI 3.1 document of operations, and what else can be derived from their declarations.
 *
 * @example
 * ```ts
 * import { assertMatch } from "@std/assert";
 * import { ERRORS, operation } from "./mod.ts";
 * import { text } from "./schema.ts";
 *
 * const wave = operation({
 *   id: "wave",
 *   method: "GET",
 *   path: "/v1/waves/{name}",
 *   access: { name: "everyone", hasCredential: false, isStrict: true, errors: [] },
 *   tag: { name: "Waves", description: "Friendly hands" },
 *   summary: "Wave",
 *   params: { name: text() },
 * }, () => new Response());
 * const document = openApiDocument([wave], "", {
 *   path: "/v1",
 *   title: "Waves",
 *   version: "1.0.0",
 *   original: undefined,
 *   addedParameters: [],
 *   summary: "",
 *   description: "",
 *   contact: { name: "Ann" },
 *   license: { name: "MIT", identifier: "MIT" },
 *   credential: "",
 *   headers: {},
 *   allHave: [],
 *   errorsHave: {},
 *   errors: [],
 *   error: ERRORS.not_found,
 * });
 * assertMatch(JSON.stringify(document), /"\/waves\/\{name\}":\{"get":\{"operationId":"wave"/);
 * ```
 *
 * @module
 */
export {
  ambiguousCodeIn,
  bodyTypeOf,
  conflictIn,
  errorsOf,
  errorsOfAll,
  faultsOf,
  type InputMember,
  inputsOf,
  isDocumented,
  needsOf,
} from "./declared.ts";
export { answerHeadersOf, type Interface, openApiDocument } from "./openapi_document.ts";
export { requiredHeader } from "./response_headers.ts";
