import { inputsOf } from "../../../api/openapi.ts";
import type { Operation } from "../../../api/operation.ts";
import { buildRequest } from "../browser/request.ts";
import { curlSample } from "../browser/samples.ts";
import { type Html, html } from "../html.ts";

/** Media type of the operation's body; empty where there is none. */
export function bodyTypeOf({ body, bodyType = "application/json" }: Operation): string {
  return body === undefined ? "" : bodyType;
}

/** The operation as a command, with the examples of what it has to be told. */
export function curlOf(operation: Operation, base: string): string {
  const { method, path, access } = operation;
  const key = access === "key" ? "API_KEY" : "";
  const fields = inputsOf(operation).map(({ name, place, schema, example: value }) => {
    return { name, place, type: String(schema.type), value };
  });
  return curlSample(buildRequest({ base, method, path, bodyType: bodyTypeOf(operation), key }, fields));
}

/** A text to copy. */
export function copyable(id: string, text: string): Html {
  return html`
    <div class="copyable">
      <pre><code id="${id}">${text}</code></pre>
      <button type="button" class="needs-script" data-copy="${id}">Copy</button>
    </div>
  `;
}

/** A method and a path. */
export function endpoint({ method, path }: Operation): Html {
  return html`<span class="method">${method}</span> ${path}`;
}
