import { type InputMember as Input, inputsOf } from "../../../api/openapi.ts";
import type { Operation } from "../../../api/operation.ts";
import { attributes, type Html, html } from "../html.ts";
import { bodyTypeOf } from "./parts.ts";

/** An operation to choose. */
export function option({ id, method, path, summary }: Operation): Html {
  const name = `${method} ${path}`;
  const choice = attributes({ value: id, label: `${name}: ${summary}` });
  return html`<option${choice}>${name}</option>`;
}

/** The fields of an operation, of which the console shows those of the chosen one; at first, of the first. */
export function fields(operation: Operation, index: number): Html {
  const { id, method, path, access, summary } = operation;
  const inputs = inputsOf(operation);
  const aside = inputs.filter(isAside);
  const fieldset = attributes({
    "id": `fields-${id}`,
    "class": "fields",
    "data-method": method,
    "data-path": path,
    "data-body-type": bodyTypeOf(operation),
    "data-access": access,
    "hidden": index > 0,
    "disabled": index > 0,
  });
  return html`
    <fieldset${fieldset}>
      <legend class="quiet">${summary}</legend>
      ${inputs.filter((input) => !isAside(input)).map((input) => field(id, input))}
      ${aside.length === 0 ? "" : html`
        <details>
          <summary>${aside.map(({ name }) => name).join(", ")}</summary>
          ${aside.map((input) => field(id, input))}
        </details>
      `}
    </fieldset>
  `;
}

/** What few callers need. */
function isAside({ place, name }: Input): boolean {
  return place === "header" || name === "cursor";
}

function field(operation: string, { name, place, isRequired, schema, example }: Input): Html {
  const id = `${operation}-${name}`;
  const hint = schema.default === undefined ? isRequired ? "" : "not sent" : String(schema.default);
  const control = { id, name, "data-place": place, "data-type": String(schema.type) };
  const label = html`<label for="${id}">${name}</label>`;
  if (schema.enum) {
    return html`${label}<select${attributes(control)}>${choices(schema.enum, hint, example)}</select>`;
  }
  const input = attributes({
    ...control,
    type: "text",
    value: example,
    placeholder: hint,
    autocapitalize: "off",
    spellcheck: "false",
    inputmode: schema.type === "integer" && "numeric",
    required: place === "path",
  });
  return html`${label}<input${input}>`;
}

function choices(values: readonly string[], hint: string, chosen: string): Html[] {
  const others = values.map((value) =>
    html`<option${attributes({ selected: value === chosen })}>${value}</option>`
  );
  return [html`<option value="">${hint}</option>`, ...others];
}
