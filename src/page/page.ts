import { type Environment, KEY_PREFIXES } from "../accounts/api_key.ts";
import { type Limits, PLAN_LIMITS } from "../accounts/account.ts";
import { errorsOf, type InputMember, inputsOf, isDocumented } from "../api/openapi.ts";
import type { Operation } from "../api/operation.ts";
import { resolved, type Schema } from "../api/schema.ts";
import { type ErrorCode, ERRORS } from "../http/error.ts";
import { type Content, fill, Html, html, prose } from "./html.ts";
import { buildRequest, KEY_PLACEHOLDER, ORIGIN_PLACEHOLDER, sample } from "./page.js";

/** Options of {@linkcode renderPage}. */
export interface PageOptions {
  /** Prefix of the service's URLs; undefined for the origin that the page comes from. */
  readonly publicUrl: string | undefined;
  readonly environment: Environment;
  /** Whether clients may create accounts. */
  readonly signUpIsOpen: boolean;
  /** Returns all operations of the service. */
  readonly operations: () => readonly Operation[];
}

export const STYLE: string = read("page.css");
export const SCRIPT: string = read("page.js");
const TEMPLATE = read("page.html");

/** SVG shapes of a paw, 32 by 32. */
const PAW = `<ellipse cx="7.6" cy="15.2" rx="2.3" ry="3"/>` +
  `<ellipse cx="12.7" cy="9.6" rx="2.4" ry="3.3"/><ellipse cx="19.3" cy="9.6" rx="2.4" ry="3.3"/>` +
  `<ellipse cx="24.4" cy="15.2" rx="2.3" ry="3"/><path d="M16 14.6c3.4 0 7.2 4.6 7.2 7.8 0 2.2-1.7 3.2-3.5 3.2` +
  `-1.5 0-2.5-.7-3.7-.7s-2.2.7-3.7.7c-1.8 0-3.5-1-3.5-3.2 0-3.2 3.8-7.8 7.2-7.8z"/>`;
/** The icon: a paw in the page's colours. */
export const ICON: string = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">` +
  `<rect width="32" height="32" rx="8" fill="#1c3faa"/><g fill="#fdf9f1">${PAW}</g></svg>`;

/** Errors of requests that match no operation. */
const OF_NO_OPERATION: readonly ErrorCode[] = ["not_found", "method_not_allowed"];
const PRINT = new Html(`<svg><use href="#paw"/></svg>`);
const DEPRECATED = html`<em>deprecated</em>`;

/** Reads a file in this folder. Before Deno 2.6, text imports would need an unstable flag in each configuration. */
function read(name: string): string {
  return Deno.readTextFileSync(new URL(name, import.meta.url));
}

/**
 * Renders the page. Its links, samples and console use the public URL, or else the page's own origin, which its script
 * writes into the samples. So the page is the same for every host.
 */
export function renderPage(options: PageOptions): string {
  const { publicUrl = "", environment, signUpIsOpen } = options;
  const sampleUrl = publicUrl || ORIGIN_PLACEHOLDER;
  const operations = options.operations().filter((operation) => isDocumented(operation));
  const byTag = [...Map.groupBy(operations, ({ tag = "" }) => tag)];
  const errors = [...new Set([...operations.flatMap(errorsOf), ...OF_NO_OPERATION])]
    .sort((one, other) => ERRORS[one].status - ERRORS[other].status);
  const ofKeys = commonErrors(operations.filter(({ access }) => access === "key"));
  const ofBodies = commonErrors(operations.filter(({ body }) => body)).difference(ofKeys);
  const links = (codes: ReadonlySet<ErrorCode>) =>
    errors.filter((code) => codes.has(code)).map((code) => [errorLink(code), " "]);
  const ownErrors = (operation: Operation) =>
    new Set(errorsOf(operation)).difference(ofKeys).difference(ofBodies);
  const call = (wanted: string) =>
    operations.filter(({ id }) => id === wanted).map((operation) => curl(operation, sampleUrl));
  return String(fill(TEMPLATE, {
    style: new Html(STYLE),
    script: new Html(SCRIPT),
    paw: new Html(PAW),
    // Inlined, so that the page needs no second request.
    icon: `data:image/svg+xml,${encodeURIComponent(ICON)}`,
    publicUrl,
    sampleUrl,
    environment,
    keyPrefix: KEY_PREFIXES[environment],
    keyForm: signUpIsOpen ? "make" : "paste",
    signUp: signUpIsOpen ? "open" : "closed",
    minute: PLAN_LIMITS.free.minute,
    prints: Array.from({ length: PLAN_LIMITS.free.minute }, () => PRINT),
    choices: byTag.map(([tag, own]) =>
      html`<optgroup label="${tag}">${
        own.map(({ id, summary }) => html`<option value="${id}">${summary}</option>`)
      }</optgroup>`
    ),
    requests: operations.map(requestFields),
    signUpSample: signUpIsOpen ? copyable("sign-up-curl", "the sign-up", call("createAccount")) : "",
    firstSample: copyable("first-curl", "the first call", call("listPets")),
    operations: byTag.map(([tag, own]) =>
      html`
        <h3>${tag}</h3>
        <ul class="operations">${own.map(operationLine)}</ul>
      `
    ),
    plans: Object.entries(PLAN_LIMITS).map(planRow),
    errors: errors.map(errorRow),
    errorsOfKeys: links(ofKeys),
    errorsOfBodies: links(ofBodies),
    reference: operations.map((operation) => article(operation, links(ownErrors(operation)))),
  }));
}

/** The errors that all of the operations have in common. */
function commonErrors(operations: readonly Operation[]): ReadonlySet<ErrorCode> {
  const [first = new Set<ErrorCode>(), ...others] = operations.map((operation) =>
    new Set(errorsOf(operation))
  );
  return others.reduce((common, codes) => common.intersection(codes), first);
}

/** A curl command for the operation, with the example of its body. */
function curl(operation: Operation, base: string): string {
  const { method, path, access, body } = operation;
  const key = access === "key" ? KEY_PLACEHOLDER : "";
  const target = { base, method, path, bodyType: bodyTypeOf(operation), key };
  return sample("curl", buildRequest(target, [], exampleOf(body)));
}

/** Text with a button that copies it. Screen readers call the button "Copy" and `name`. */
function copyable(id: string, name: string, text: Content): Html {
  return html`
    <div class="copyable">
      <button type="button" class="link scripted" data-copy="${id}"
        aria-label="Copy ${name}">Copy</button>
      <pre id="${id}">${text}</pre>
    </div>
  `;
}

function planRow([plan, { minute, day }]: [plan: string, Limits]): Html {
  return html`
    <tr>
      <th scope="row">${plan}</th>
      <td class="number">${minute.toLocaleString("en")}</td>
      <td class="number">${day.toLocaleString("en")}</td>
    </tr>
  `;
}

function errorRow(code: ErrorCode): Html {
  const { status, means, todo } = ERRORS[code];
  return html`
    <div id="error-${code}">
      <dt><b>${status}</b> <code>${code}</code></dt>
      <dd>${means} <span data-todo>${todo}</span></dd>
    </div>
  `;
}

function errorLink(code: ErrorCode): Html {
  return html`
    <a href="#error-${code}"><code>${ERRORS[code].status} ${code}</code></a>
  `;
}

function operationLine({ id, method, path, summary, deprecated }: Operation): Html {
  return html`
    <li><a href="#${id}"><b>${method}</b> <code>${path}</code>
      <span>${summary} ${deprecated ? DEPRECATED : ""}</span></a></li>
  `;
}

/** The reference of an operation: its inputs (but Prefer, which the page explains once), responses, and the errors that are not common to all operations. */
function article(operation: Operation, errors: readonly Content[]): Html {
  const { id, method, path, summary, description, deprecated, isExtension, answers } = operation;
  return html`
    <article id="${id}">
      <h3>${summary} ${deprecated ? DEPRECATED : ""}</h3>
      <p class="endpoint"><code><b>${method}</b> ${path}</code>
        ${isExtension ? html`<span class="small">extension of interface 1.0.0</span>` : ""}
        <button type="button" class="link scripted" data-try="${id}" aria-label="Try it: ${summary}">Try it</button></p>
      ${description === undefined ? "" : html`<p>${prose(description)}</p>`}
      ${deprecated
        ? html`<p>Its responses have the headers <code>Deprecation</code>, <code>Sunset</code> and
        <code>Link</code>. Log them in your client.</p>`
        : ""}
      <dl class="rows">
        ${inputsOf(operation).filter(({ name }) => name !== "Prefer").map(row)}
        <div><dt>responses</dt><dd>${Object.entries(answers).map(([status, { description }]) =>
          html`<p><code class="ok">${status}</code> ${prose(description)}</p>`
        )}</dd></div>
        ${errors.length === 0 ? "" : html`
          <div>
            <dt>errors</dt>
            <dd>${errors}</dd>
          </div>
        `}
      </dl>
    </article>
  `;
}

/** An input of a request, with the first sentence of its description. The OpenAPI document has the rest. */
function row({ name, place, isRequired, schema }: InputMember): Html {
  const [sentence = ""] = /^.*?\.(?= [A-Z])|^.*/.exec(schema.description ?? "") ?? [];
  const facts = [place, typeOf(schema), ...(isRequired ? ["required"] : [])].join(", ");
  return html`
    <div>
      <dt><code>${name}</code></dt>
      <dd><i>${facts}.</i> ${prose(sentence)}</dd>
    </div>
  `;
}

/** Type and bounds of a value in words. */
function typeOf(
  { type, format, enum: values, minimum, maximum, minLength, maxLength, ...rest }: InputMember["schema"],
): string {
  const [low, high, unit] = type === "string"
    ? [minLength, maxLength, " characters"]
    : [minimum, maximum, ""];
  const bounds = high === undefined ? "" : `, ${low === undefined ? "at most " : `${low} to `}${high}${unit}`;
  const otherwise = rest.default === undefined ? "" : `, default ${rest.default}`;
  return (values?.join(" | ") ?? `${format ?? type}${bounds}`) + otherwise;
}

/** The request of an operation as a form. Only the first form is visible initially. */
function requestFields(operation: Operation, index: number): Html {
  const { id, method, path, access, summary } = operation;
  const [[status = "", answer] = []] = Object.entries(operation.answers);
  const bodyType = bodyTypeOf(operation);
  const body = exampleOf(operation.body, 2);
  const rows = body.split("\n").length;
  const at = (place: string) => inputsOf(operation).filter((input) => input.place === place);
  const [before = "", after = ""] = path.split(/\{\w+\}/);
  const optional = at("body").filter(({ name }) => !body.includes(`"${name}"`));
  return html`
    <fieldset id="request-${id}" data-method="${method}" data-path="${path}" data-access="${access}"
      data-body-type="${bodyType}" data-status="${status}" data-example="${exampleOf(answer?.body)}"
      ${index > 0 ? "hidden" : ""}>
      <legend class="quiet">${summary}</legend>
      <p><b>${method}</b> ${before}${at("path").map(field)}${after}${at("query").map((input) =>
        html`<label><i>&amp;</i>${input.name}=${field(input)}</label>`
      )}</p>
      ${access === "key" ? html`<p class="credentials">Authorization: <span></span></p>` : ""}
      ${bodyType === "" ? "" : html`<p>Content-Type: ${bodyType}</p>`}
      ${at("header").map((input) => html`<p><label>${input.name}: ${field(input)}</label></p>`)}
      ${bodyType === "" ? "" : html`<textarea aria-label="Body" rows="${rows}">${body}</textarea>`}
      ${optional.map(({ name, schema }) =>
        html`<p class="left-out">"${name}": ${schema.enum?.join(" | ") ?? String(schema.type)}, omitted</p>`
      )}
    </fieldset>
  `;
}

function field({ name, place, schema }: InputMember): Html {
  if (schema.enum) {
    const options = schema.enum.map((value) => html`<option>${value}</option>`);
    return html`
      <select name="${name}" aria-label="${name}"
        data-place="${place}"><option value="">any</option>${options}</select>
    `;
  }
  const [example = ""] = schema.examples ?? [];
  const otherwise = String(schema.default ?? "none");
  const keyboard = schema.type === "integer" ? "numeric" : "text";
  return html`
    <input name="${name}" aria-label="${name}" data-place="${place}" value="${String(example)}"
      placeholder="${otherwise}" inputmode="${keyboard}">
  `;
}

/** Media type of the operation's body; empty if it has none. */
function bodyTypeOf({ body, bodyType = "application/json" }: Operation): string {
  return body ? bodyType : "";
}

/** The schema's example as JSON text, indented by `indent` spaces; empty if there is none. */
function exampleOf(schema: Schema | undefined, indent = 0): string {
  const [example] = (schema && resolved(schema).examples) ?? [];
  return example === undefined ? "" : JSON.stringify(example, null, indent);
}
