import { errorsByStatus, type InputMember as Input, inputsOf } from "../../../api/openapi.ts";
import type { Answer, Operation } from "../../../api/operation.ts";
import { type JsonSchema as Schema, resolved } from "../../../api/schema.ts";
import { type Html, html, prose } from "../html.ts";
import { copyable, curlOf, endpoint } from "./parts.ts";

const DEPRECATED = html`<em>deprecated</em>`;

/** Every operation in a line, by what it is about. */
export function operationsSection(operations: readonly Operation[]): Html {
  const byTag = [...Map.groupBy(operations, ({ tag = "" }) => tag)];
  return html`
    <section id="operations">
      <h2>Operations</h2>
      ${byTag.map(([tag, operations]) =>
        html`
          <h3>${tag}</h3>
          <ul class="operations">
            ${operations.map((operation) =>
              html`
                <li>
                  <a href="#${operation.id}"><code>${endpoint(operation)}</code>
                    <span>${operation.summary} ${deprecated(operation)}</span></a>
                  ${tryLink(operation)}
                </li>
              `
            )}
          </ul>
        `
      )}
    </section>
  `;
}

/** Every operation with all that it takes and answers, as the OpenAPI document has it. */
export function referenceSection(base: string, operations: readonly Operation[]): Html {
  return html`
    <section id="reference">
      <h2>Reference</h2>
      <p>The same for programs: <a href="${base}/v1/openapi.json">openapi.json</a>, an OpenAPI 3.1 document.</p>
      <p>
        Not part of the interface, and without a key: <code>GET /health</code> and <code>GET /ready</code>, as
        <a href="#health">Health</a> says, and <code>GET /docs/deprecations</code>, what is deprecated, in words.
      </p>
      ${operations.map((operation) => reference(operation, base))}
    </section>
  `;
}

function reference(operation: Operation, base: string): Html {
  const { id, summary, description, isExtension } = operation;
  const inputs = inputsOf(operation);
  return html`
    <article id="${id}">
      <h3>${summary} ${deprecated(operation)}</h3>
      <p class="endpoint"><code>${endpoint(operation)}</code> ${tryLink(operation)}</p>
      ${description === undefined ? "" : html`<p>${prose(description)}</p>`}
      ${isExtension ? html`<p class="small">Beyond interface 1.0.0.</p>` : ""}
      ${inputs.length === 0 ? "" : html`
        <h4>Takes</h4>
        <dl>${inputs.map(describeInput)}</dl>
      `}
      <h4>Answers</h4>
      <dl>${Object.entries(operation.answers).map(describeSuccess)}</dl>
      <p class="codes">${describeErrors(operation)}</p>
      ${copyable(`curl-${id}`, curlOf(operation, base))}
    </article>
  `;
}

function describeInput({ name, place, isRequired, schema }: Input): Html {
  const facts = [place, typeOf(schema), ...(isRequired ? ["required"] : [])].join(", ");
  return html`
    <dt><code>${name}</code> <span>${facts}</span></dt>
    <dd>${prose(schema.description ?? "")}</dd>
  `;
}

/** Type and bounds of a value in words. */
function typeOf(
  { type, format, enum: values, minimum, maximum, minLength, maxLength, ...rest }: Schema,
): string {
  const [low, high, unit] = type === "string"
    ? [minLength, maxLength, " characters"]
    : [minimum, maximum, ""];
  const bounds = high === undefined ? "" : `, ${low === undefined ? "at most " : `${low} to `}${high}${unit}`;
  const otherwise = rest.default === undefined ? "" : `, default ${rest.default}`;
  return (values?.join(" | ") ?? `${format ?? type}${bounds}`) + otherwise;
}

function describeSuccess([status, { description, body, headers = [] }]: [string, Answer]): Html {
  const name = body?.json.$ref?.split("/").at(-1);
  const facts = [...(name ? [name] : []), ...headers].join(", ");
  const [example] = body ? resolved(body).examples ?? [] : [];
  return html`
    <dt><code>${status}</code> <span>${facts}</span></dt>
    <dd>
      ${prose(description)}
      ${example === undefined ? "" : html`<pre><code>${JSON.stringify(example)}</code></pre>`}
    </dd>
  `;
}

function describeErrors(operation: Operation): Html[] {
  return errorsByStatus(operation).map(([status, codes]) =>
    html`
      <span><code>${status}</code> ${codes.map((code) =>
        html`
          <a href="#error-${code}">${code}</a>
        `
      )}</span>
    `
  );
}

function deprecated(operation: Operation): Html | "" {
  return operation.deprecated ? DEPRECATED : "";
}

function tryLink({ id, summary }: Operation): Html {
  return html`<a class="try needs-script" href="#call" data-try="${id}" aria-label="Try it: ${summary}">Try it</a>`;
}
