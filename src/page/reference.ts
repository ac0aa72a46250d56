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

/** A description, and the named ones that it refers to. */
type Described = Pick<Schema, "json" | "definitions" | "ignored">;

/** What the console does with an operation, beside sending it. */
interface InConsole {
  /** A question before it is sent. */
  readonly question?: string;
  /** Whether it ends the key in use. */
  readonly ends?: true;
  /** Whether the console uses the key of its response from then on. */
  readonly adopts?: true;
}

const IN_CONSOLE: Readonly<Record<string, InConsole>> = {
  createAccount: { adopts: true },
  closeAccount: { question: "This closes your account permanently. Continue?", ends: true },
  rotateKey: {
    question:
      "This makes a new key, and your key stops working soon. If graceSeconds is 0, it stops working now, and " +
      "so do added keys. Continue?",
    adopts: true,
  },
  revokeKey: { question: "The key stops working immediately. Continue?" },
};
/** Titles of the places of parameters. */
const PLACES = [["path", "Path"], ["query", "Query"], ["header", "Headers"]] as const;

/** The operations by tag. */
export function referenceSection(operations: readonly DeclaredOperation[]): Html {
  const groups = [...Map.groupBy(operations, ({ tag }) => tag)].map(([tag, own]) =>
    html`
      <h2>${tag?.name}</h2>
      <p>${tag?.description}.</p>
      ${own.map(article)}
    `
  );
  return html`<section id="operations" aria-label="Operations">${groups}</section>`;
}

function article(operation: DeclaredOperation): Html {
  const { id, method, path, summary, description, deprecated, body, answers, access, sparedPerHour } =
    operation;
  const needs = needsOf(operation);
  const inputs = inputsOf(operation);
  const errors = errorsOf(operation).toSorted((one, other) => one.status - other.status);
  const statuses = [...new Set(errors.map(({ status }) => status))].join(" ");
  return html`
    <article id="${id}" data-method="${method}" data-path="${path}" data-access="${access.name}"
      ${[
        attribute("spared", sparedPerHour !== undefined && id),
        attribute("type", bodyTypeOf(operation)),
        attribute("question", IN_CONSOLE[id]?.question),
        attribute("ends", IN_CONSOLE[id]?.ends && "yes"),
        attribute("adopts", IN_CONSOLE[id]?.adopts && "yes"),
        attribute("sunset", deprecated && inWords(deprecated.sunset)),
      ]}>
      <h3><a href="#${id}">${summary}</a> ${deprecated && html`<em>deprecated</em>`}</h3>
      <p class="line"><b>${method}</b> <code>${path}</code></p>
      ${description && html`<p>${inline(description)}</p>`}
      ${needs && html`<p>${inline(needs)}</p>`}
      ${PLACES.map(([place, title]) => {
        const own = inputs.filter((input) => input.place === place);
        return own.length > 0 && [html`<h4>${title}</h4>`, list(own.map(parameter))];
      })}
      ${body && [
        html`<h4>Body <code>${bodyTypeOf(operation)}</code></h4>`,
        fieldsOf(body, ["required", ""]),
        copyable(`${id}-body`, exampleOf(body)),
      ]}
      <h4>Responses</h4>
      ${Object.entries(answers).map(([status, answer], index) =>
        html`
          <details ${index === 0 && html`open`}>
            <summary><b class="ok">${status}</b> <span data-status="${status}">${inline(
              answer.description,
            )}</span></summary>
            ${answer.body && fieldsOf(answer.body, ["", "may be missing"])}
            ${exampleOf(answer.body) &&
              copyable(`${id}-${status}`, exampleOf(answer.body))}
            ${list(
              answerHeadersOf(operation, answer).map(([name, meaning]) =>
                row(html`<code>${name}</code> <i>header</i>`, inline(meaning))
              ),
            )}
          </details>
        `
      )}
      <details>
        <summary><b class="bad">${statuses}</b> Errors</summary>
        ${list(errors.map((kind) => errorRow(kind)))}
      </details>
    </article>
  `;
}

/** An attribute for the script, unless its value is empty. */
function attribute(name: string, value: string | false | undefined): Content {
  return value ? [html`data-${name}="${value}"`, " "] : undefined;
}

/** Every error, with an anchor that the reference and the console link to. */
export function errorList(kinds: readonly ErrorKind[]): Content {
  return list(kinds.map((kind) => errorRow(kind, html`id="error-${kind.code}"`)));
}

function errorRow({ code, status, means, todo }: ErrorKind, attributes?: Content): Html {
  const term = html`<b>${status}</b> <a href="#error-${code}">${code}</a>`;
  return row(term, [means, todo !== FIX && [" ", html`<span>${todo}</span>`]], attributes);
}

/** Headers that the console sends unless its user clears them: it is for trying things out, so it shows mistakes. */
const SENT: Readonly<Record<string, string>> = { Prefer: "handling=strict" };

/** A parameter. The script makes a field of the console from it. */
function parameter({ name, place, isRequired, schema }: InputMember): Html {
  const choices = schema.type === "boolean" ? ["true", "false"] : schema.enum;
  const attributes = [
    attribute("place", place),
    attribute("choices", choices?.join(" ")),
    attribute("value", SENT[name]),
    attribute("absent", isRequired ? "required" : String(schema.default ?? "")),
  ];
  return field(name, { json: schema, definitions: {} }, isRequired && "required", undefined, attributes);
}

/** The fields of an object or of the objects in a list, each with a mark: for one that is required, or for one that is not. */
function fieldsOf(schema: Described, marks: readonly [required: string, other: string]): Content {
  const { definitions, ignored = [] } = schema;
  const { properties = {}, required = [], items } = resolved(schema);
  if (items) return fieldsOf({ json: items, definitions }, marks);
  const settable = Object.entries(properties).filter(([name]) => !ignored.includes(name));
  const fields = settable.map(([name, json]) => {
    const own = { json, definitions };
    return field(name, own, marks[required.includes(name) ? 0 : 1], fieldsOf(own, marks));
  });
  return list(fields);
}

function field(
  name: string,
  schema: Described,
  mark: string | false,
  more: Content,
  attributes?: Content,
): Html {
  const term = html`<code>${name}</code> <i>${typeOf(schema)}</i> ${mark && html`<em>${mark}</em>`}`;
  return row(term, [inline(resolved(schema).description ?? ""), more], attributes);
}

function list(rows: readonly Html[]): Content {
  return rows.length > 0 && html`<dl>${rows}</dl>`;
}

function row(term: Content, meaning: Content, attributes?: Content): Html {
  return html`
    <div ${attributes}>
      <dt>${term}</dt>
      <dd>${meaning}</dd>
    </div>
  `;
}

/** The schema's example as JSON text, indented by `indent` spaces; empty if there is none. */
export function exampleOf(schema: Schema | undefined, indent = 2): string {
  const [example] = (schema && resolved(schema).examples) ?? [];
  return example === undefined ? "" : stringifyJson(example, indent);
}

/** Type, bounds and default of a value in words. */
function typeOf(schema: Described): string {
  const { type, format, enum: values, items, ...json } = resolved(schema);
  const [name = "", ...others] = [type ?? []].flat();
  const own = items ? `list of ${typeOf({ json: items, definitions: schema.definitions })}` : format ?? name;
  // A schema has the bounds of one type only.
  const low = json.minimum ?? json.minLength;
  const high = json.maximum ?? json.maxLength ?? json.maxItems;
  const unit = json.maxLength ? " characters" : json.maxItems ? " items" : "";
  const bounds = [
    ...(high !== undefined
      ? [`${low === undefined ? "at most " : `${number(low)} to `}${number(high)}${unit}`]
      : json.minimum !== undefined
      ? [`at least ${json.minimum}`]
      : []),
    ...(json.default === undefined ? [] : [`default ${json.default}`]),
  ];
  return [values?.map(String).join(" | ") ?? [own, ...others].join(" or "), ...bounds].join(", ");
}

function number(value: number): string {
  return value === Number.MAX_SAFE_INTEGER ? "2^53 − 1" : value.toLocaleString("en");
}
