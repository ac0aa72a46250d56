// The reference: each operation as a line that a click opens.
import type { DeclaredOperation, ErrorKind } from "../web/mod.ts";
import { errorsOf, type InputMember, inputsOf } from "../web/openapi.ts";
import { ACCESS } from "../resource/mod.ts";
import { section } from "./guide.ts";
import { type Content, type Html, html, prose } from "./html.ts";

/** All operations, by tag. Those that the `original` version of the interface does not have are marked. */
export function referenceSection(
  operations: readonly DeclaredOperation[],
  { base, original }: { readonly base: string; readonly original: string | undefined },
): Html {
  const ofKeys = commonErrors(operations.filter(({ access }) => access === ACCESS.key));
  const ofBodies = commonErrors(operations.filter(({ body }) => body)).difference(ofKeys);
  return section("operations", "Operations", [
    [...Map.groupBy(operations, ({ tag }) => tag?.name ?? "")].map(([tag, own]) => [
      html`<h3>${tag}</h3>`,
      own.map((operation) =>
        article(
          operation,
          original !== undefined && operation.isExtension === true,
          new Set(errorsOf(operation)).difference(ofKeys).difference(ofBodies),
        )
      ),
    ]),
    html`
      <p class="small">
        ${original && `* Not part of the original interface, version ${original}.`} For tools, there is
        <a href="${base}/v1/openapi.json">openapi.json</a>, an OpenAPI 3.1 document.
      </p>
      <p class="small">Every operation that needs a key can return ${links(ofKeys)}; with a body, also
        ${links(ofBodies)}.</p>
    `,
  ]);
}

/** The errors that all these operations have in common. */
function commonErrors(operations: readonly DeclaredOperation[]): ReadonlySet<ErrorKind> {
  const [first = new Set<ErrorKind>(), ...others] = operations.map((operation) =>
    new Set(errorsOf(operation))
  );
  return others.reduce((common, codes) => common.intersection(codes), first);
}

function links(kinds: ReadonlySet<ErrorKind>): Content {
  const sorted = [...kinds].sort((one, other) => one.status - other.status);
  return sorted.map(({ code }, index) => [
    index === 0 ? "" : index === sorted.length - 1 ? " or " : ", ",
    html`<a href="#error-${code}"><code>${code}</code></a>`,
  ]);
}

/**
 * An operation: its line; its inputs, except Prefer, which the page explains once; its responses; and the errors that are
 * not common to all operations.
 */
function article(operation: DeclaredOperation, isMarked: boolean, errors: ReadonlySet<ErrorKind>): Html {
  const { id, method, path, summary, description, deprecated, answers } = operation;
  return html`
    <details class="operation">
      <summary>
        <h4><b>${method}</b> <code>${path}</code>
          <span>${summary}${isMarked ? " *" : ""} ${deprecated ? html`<em>deprecated</em>` : ""}</span></h4>
      </summary>
      <article id="${id}" aria-label="${summary}">
        <a class="try scripted" href="#${id}" data-try="${id}" aria-label="Try it: ${summary}">Try it</a>
        ${description === undefined ? "" : html`<p>${prose(description)}</p>`}
        ${deprecated
          ? html`<p>Its responses have the headers <code>Deprecation</code>, <code>Sunset</code> and
          <code>Link</code>. Log them in your client.</p>`
          : ""}
        <dl class="rows">
          ${inputsOf(operation).filter(({ name }) => name !== "Prefer").map(row)}
          <div>
            <dt>responses</dt>
            <dd>${Object.entries(answers).map(([status, { description }]) =>
              html`<p><code class="ok">${status}</code> ${prose(description)}</p>`
            )}</dd>
          </div>
          ${errors.size === 0 ? "" : html`
            <div>
              <dt>errors</dt>
              <dd>${links(errors)}</dd>
            </div>
          `}
        </dl>
      </article>
    </details>
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
function typeOf({ type, format, enum: values, ...rest }: InputMember["schema"]): string {
  // A schema has the bounds of one type only.
  const low = rest.minimum ?? rest.minLength;
  const high = rest.maximum ?? rest.maxLength ?? rest.maxItems;
  const unit = rest.maxLength ? " characters" : rest.maxItems ? " items" : "";
  const bounds = high === undefined ? "" : `, ${low === undefined ? "at most " : `${low} to `}${high}${unit}`;
  const otherwise = rest.default === undefined ? "" : `, default ${rest.default}`;
  return (values?.join(" | ") ?? `${format ?? String(type).replace(",", " or ")}${bounds}`) + otherwise;
}
