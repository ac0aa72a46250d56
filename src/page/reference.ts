// The reference: what every operation accepts and returns, from its declaration.
import { type DeclaredOperation, type ErrorKind, FIX } from "../web/mod.ts";
import {
  answerHeadersOf,
  bodyTypeOf,
  errorsOf,
  type InputMember,
  inputsOf,
  needsOf,
} from "../web/openapi.ts";
import { inWords } from "../web/headers.ts";
import { resolved, type Schema, stringifyJson } from "../web/schema.ts";
import { type Content, type Html, html } from "./html.ts";
import { copyable, inline } from "./markdown.ts";
import { buildRequest } from "./script/request.js";
import { FRESH, KEY_PLACEHOLDER, sample } from "./script/sample.js";

/** A description, and the named ones that it refers to. */
type Described = Pick<Schema, "json" | "definitions" | "ignored">;

/** Its headers are those of the 200. */
const NOT_MODIFIED = "304";
/** Titles of the places of parameters. */
const PLACES = [["path", "Path"], ["query", "Query"], ["header", "Headers"]] as const;

/** The operations by tag. */
export function referenceSection(operations: readonly DeclaredOperation[], base: string): Html {
  const told = new Set<string>();
  const groups = [...Map.groupBy(operations, ({ tag }) => tag)].map(([tag, own]) =>
    html`
      <h2>${tag?.name}</h2>
      <p>${tag?.description}.</p>
      ${own.map((operation) => article(operation, base, told))}
    `
  );
  return html`<section id="operations">${groups}</section>`;
}

/** An operation. A description that is told already is shortened. */
function article(operation: DeclaredOperation, base: string, told: Set<string>): Html {
  const { id, method, path, summary, description, deprecated, body, answers } = operation;
  const needs = needsOf(operation);
  const inputs = inputsOf(operation);
  const attributes = dataOf({
    payer: operation.access.name !== "key" && operation.access.name,
    spared: operation.sparedPerHour !== undefined && id,
    type: bodyTypeOf(operation),
    body: exampleOf(body),
    question: operation.confirm,
    ends: operation.endsKey && "yes",
    sunset: deprecated && inWords(deprecated.sunset),
  });
  return html`
    <article id="${id}" ${attributes}>
      <h3><a href="#${id}">${summary}</a>${deprecated && [" ", html`<em>deprecated</em>`]}</h3>
      <p class="line"><b>${method}</b> <code>${path}</code></p>
      ${description && html`<p>${inline(description)}</p>`}
      ${needs && html`<p>${inline(needs)}</p>`}
      ${PLACES.map(([place, title]) => {
        const own = inputs.filter((input) => input.place === place);
        return own.length > 0 && [html`<h4>${title}</h4>`, list(own.map((input) => parameter(input, told)))];
      })}
      ${body && [
        html`<h4>Body <code>${bodyTypeOf(operation)}</code></h4>`,
        fieldsOf(body, ["required", ""], told),
      ]}
      <h4>Request</h4>
      ${copyable(sampleTextOf(operation, base), html`data-sample`)}
      <h4>Responses</h4>
      ${Object.entries(answers).map(([status, answer], index) =>
        html`
          <details ${index === 0 && html`open`}>
            <summary><b>${status}</b> ${inline(answer.description)}</summary>
            ${answer.body && fieldsOf(answer.body, ["", "may be missing"], told)}
            ${exampleOf(answer.body) && copyable(exampleOf(answer.body))}
            ${status !== NOT_MODIFIED && list(
              answerHeadersOf(operation, answer).map(([name, meaning]) =>
                row(html`<code>${name}</code> <i>header</i>`, inline(meaning))
              ),
            )}
          </details>
        `
      )}
      ${errorsIn(operation)}
    </article>
  `;
}

/** The statuses of all errors of an operation, and those errors that any request does not have. */
function errorsIn(operation: DeclaredOperation): Html {
  const errors = inOrder(errorsOf(operation));
  const { deprecated: _, ...bare } = operation;
  const ofAny = errorsOf({ ...bare, errors: [] });
  const own = errors.filter((kind) => !ofAny.includes(kind));
  return html`
    <details class="errors">
      <summary><b>${[...new Set(errors.map(({ status }) => status))].join(" ")}</b> Errors</summary>
      ${list(own.map((kind) => errorRow(kind)))}
      <p><a href="#errors">Those of any request</a></p>
    </details>
  `;
}

/** Errors by their status. */
export function inOrder(errors: readonly ErrorKind[]): ErrorKind[] {
  return errors.toSorted((one, other) => one.status - other.status);
}

/** A sample of the operation with an id. The script writes samples in other languages. */
export function sampleOf(operation: DeclaredOperation, base: string, id: string): Html {
  return copyable(sampleTextOf(operation, base), html`id="${id}" data-sample="${operation.id}"`);
}

/** A request of the operation, as its example says, for curl. */
export function sampleTextOf(operation: DeclaredOperation, base: string): string {
  const { method, path, access, body } = operation;
  const parameters = inputsOf(operation).map((input) => ({ ...input, value: inSample(input) }));
  const call = buildRequest(
    { base, method, path, type: bodyTypeOf(operation), key: access.name === "key" ? KEY_PLACEHOLDER : "" },
    [...parameters.filter(({ place }) => place !== "body"), {
      name: "body",
      place: "body",
      value: exampleOf(body),
    }],
  );
  return sample("curl", call);
}

/** What a sample has for an input: of those that may be left out, only a key for retries. */
function inSample({ name, place, schema }: InputMember): string {
  if (place === "path") return String(schema.examples?.[0] ?? 1);
  return name === "Idempotency-Key" ? FRESH : "";
}

/** Attributes for the script, without those that are empty. */
function dataOf(values: Readonly<Record<string, string | false | undefined>>): Content {
  return Object.entries(values).flatMap(([name, value]) => value ? [html`data-${name}="${value}"`, " "] : []);
}

/** Every error, with an anchor that the reference and the console link to. */
export function errorList(kinds: readonly ErrorKind[]): Content {
  return list(kinds.map((kind) => errorRow(kind, html`id="error-${kind.code}"`)));
}

function errorRow({ code, status, means, todo }: ErrorKind, attributes?: Content): Html {
  const term = html`<b>${status}</b> <a href="#error-${code}">${code}</a>`;
  return row(term, [inline(means), todo !== FIX && [" ", html`<span>${inline(todo)}</span>`]], attributes);
}

/** Headers that the console sends unless its user clears them: it is for trying things out, so it shows mistakes. */
const SENT: Readonly<Record<string, string>> = { Prefer: "handling=strict" };

/** A parameter. The script makes a field of the console from it. */
function parameter(input: InputMember, told: Set<string>): Html {
  const { name, place, isRequired, schema } = input;
  const choices = schema.type === "boolean" ? ["true", "false"] : schema.enum;
  const attributes = dataOf({
    place,
    choices: choices?.join(" "),
    value: SENT[name],
    usual: inSample(input),
    absent: isRequired ? "required" : String(schema.default ?? ""),
  });
  const term = termOf(name, { json: schema, definitions: {} }, isRequired && "required");
  return row(term, noted(schema, told), attributes);
}

/**
 * The fields of an object or of the objects in a list, each with a mark: for one that is required, or for one that is
 * not.
 */
function fieldsOf(
  schema: Described,
  marks: readonly [required: string, other: string],
  told: Set<string>,
): Content {
  const { definitions, ignored = [] } = schema;
  const { properties = {}, required = [], items } = resolved(schema);
  if (items) return fieldsOf({ json: items, definitions }, marks, told);
  const settable = Object.entries(properties).filter(([name]) => !ignored.includes(name));
  const fields = settable.map(([name, json]) => {
    const own = { json, definitions };
    const term = termOf(name, own, marks[required.includes(name) ? 0 : 1]);
    return row(term, [noted(resolved(own), told), fieldsOf(own, marks, told)]);
  });
  return list(fields);
}

/** A description. What follows its first sentence is shown only at its first place. */
function noted({ description = "" }: Schema["json"], told: Set<string>): Content {
  const isKnown = told.has(description);
  told.add(description);
  return inline(isKnown ? description.replace(/(?<=\.)\s[^]*$/, "") : description);
}

function termOf(name: string, schema: Described, mark: string | false): Html {
  return html`<code>${name}</code> <i>${typeOf(schema)}</i> ${mark && html`<em>${mark}</em>`}`;
}

function list(rows: readonly Html[]): Content {
  return rows.length > 0 && html`<dl>${rows}</dl>`;
}

function row(term: Content, meaning: Content, attributes?: Content): Html {
  return html`
    <dt ${attributes}>${term}</dt>
    <dd>${meaning}</dd>
  `;
}

/** The schema's example as JSON text, indented by `indent` spaces; empty if there is none. */
export function exampleOf(schema: Schema | undefined, indent = 2): string {
  const [example] = (schema && resolved(schema).examples) ?? [];
  return example === undefined ? "" : stringifyJson(example, indent);
}

/** Type, bounds and default of a value in words. */
export function typeOf(schema: Described): string {
  const { type, format, enum: values, items, ...json } = resolved(schema);
  const [name = "", ...others] = [type ?? []].flat();
  const own = items ? `list of ${typeOf({ json: items, definitions: schema.definitions })}` : format ?? name;
  // A schema has the bounds of one type only.
  const low = json.minimum ?? json.minLength;
  const high = json.maximum ?? json.maxLength ?? json.maxItems;
  const unit = json.maxLength ? " characters" : json.maxItems ? " items" : "";
  const bounds = high === undefined
    ? json.minimum !== undefined && `at least ${json.minimum}`
    : `${low === undefined ? "at most" : `${number(low)} to`} ${number(high)}${unit}`;
  const usual = json.default !== undefined && `default ${json.default}`;
  return [values?.map(String).join(" | ") ?? [own, ...others].join(" or "), bounds, usual].filter(Boolean)
    .join(", ");
}

function number(value: number): string {
  return value === Number.MAX_SAFE_INTEGER ? "2^53 − 1" : value.toLocaleString("en");
}
