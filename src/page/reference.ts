import { errorsOf, type InputMember, inputsOf } from "../api/openapi.ts";
import type { Operation } from "../api/operation.ts";
import { type ErrorCode, ERRORS } from "../http/error.ts";
import { byTag, type Catalogue } from "./catalogue.ts";
import { type Html, html, prose } from "./html.ts";

/** Every operation in a line, by what it is about. */
export function operationsSection({ operations }: Catalogue): Html {
  return html`
    <section id="operations">
      <h2>Operations</h2>
      ${byTag(operations).map(([tag, own]) =>
        html`
          <h3>${tag}</h3>
          <ul class="operations">
            ${own.map(({ id, method, path, summary, deprecated }) =>
              html`
                <li><a href="#${id}"><b>${method}</b> <code>${path}</code>
                  <span>${summary} ${deprecated ? DEPRECATED : ""}</span></a></li>
              `
            )}
          </ul>
        `
      )}
    </section>
  `;
}

/** Every operation with all that it takes and answers. */
export function referenceSection({ operations, errors, shared }: Catalogue, base: string): Html {
  const links = (codes: readonly ErrorCode[]) =>
    errors.filter((code) => codes.includes(code)).map((code) =>
      html`
        <a href="#error-${code}"><code>${ERRORS[code].status} ${code}</code></a>
      `
    );
  const ownErrors = (operation: Operation) =>
    errorsOf(operation).filter((code) => !shared.byAll.includes(code) && !shared.withBody.includes(code));
  return html`
    <section id="reference">
      <h2>Reference</h2>
      <p>
        The same for tools: <a href="${base}/v1/openapi.json">openapi.json</a>, an OpenAPI 3.1 document. Every operation
        that takes a key can also answer with these errors:
      </p>
      <p class="codes">${links(shared.byAll)}</p>
      <p>Every operation that takes a body, also with these:</p>
      <p class="codes">${links(shared.withBody)}</p>
      ${operations.map((operation) => article(operation, links(ownErrors(operation))))}
    </section>
  `;
}

const DEPRECATED = html`<em>deprecated</em>`;

function article(operation: Operation, errors: readonly Html[]): Html {
  const { id, method, path, summary, description, deprecated, isExtension, answers } = operation;
  return html`
    <article id="${id}">
      <h3>${summary} ${deprecated ? DEPRECATED : ""}</h3>
      <p class="endpoint"><code><b>${method}</b> ${path}</code>
        ${isExtension ? html`<span class="small">added after interface 1.0.0</span>` : ""}
        <button type="button" class="link scripted" data-try="${id}" aria-label="Try it: ${summary}">Try it</button></p>
      ${description === undefined ? "" : html`<p>${prose(description)}</p>`}
      ${deprecated
        ? html`<p>Its answers say so in <code>Deprecation</code>, <code>Sunset</code> and
        <code>Link</code>: have your client log them.</p>`
        : ""}
      <dl class="rows">
        ${inputsOf(operation).map(row)}
        <div><dt>answers</dt><dd>${Object.entries(answers).map(([status, { description }]) =>
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

/** Of the description, the first sentence: the guide has the rest. */
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
