import { KEY_PREFIXES } from "../accounts/api_key.ts";
import { PLAN_LIMITS } from "../accounts/account.ts";
import { type InputMember, inputsOf } from "../api/openapi.ts";
import type { Operation } from "../api/operation.ts";
import { bodyTypeOf, byTag, type Catalogue, exampleOf, type PageOptions } from "./catalogue.ts";
import { attributes, Html, html } from "./html.ts";

const LANGUAGES = [
  ["http", "Request"],
  ["curl", "curl"],
  ["javascript", "JavaScript"],
  ["python", "Python"],
] as const;
const PRINT = new Html(`<svg><use href="#paw"/></svg>`);

/**
 * Where the visitor makes a key and calls the service. It calls the origin that it has the page from, unless there is
 * a public URL.
 */
export function consoleSection({ operations }: Catalogue, options: PageOptions): Html {
  const { publicUrl = "", signUpIsOpen } = options;
  const section = attributes({
    "id": "console",
    "class": "scripted",
    "aria-label": "Console",
    "data-base": publicUrl,
    "data-key": signUpIsOpen ? "make" : "paste",
  });
  return html`
    <section${section}>
      ${keyForm(options)}
      <div class="meter">
        <div id="prints" role="img" aria-label="A paw print for each request of the minute, none of them used">
          ${Array.from({ length: PLAN_LIMITS.free.minute }, () => PRINT)}
        </div>
        <div class="row">
          <div>
            <p><b id="minute">${PLAN_LIMITS.free
              .minute} requests a minute</b> <span id="minute-end"></span></p>
            <p id="day" class="legend">A paw print for each: <b class="ok">answered</b> <b class="bad">failed</b> <b
                class="refused">refused</b></p>
            <p id="per"></p>
          </div>
          <button type="button" id="race" aria-describedby="race-note" hidden>Race the limit</button>
          <p id="race-note">The race sends what is left at once, and a few more.</p>
        </div>
      </div>
      <form id="call" autocomplete="off">
        <div class="row">
          <select id="operation" aria-label="Operation">
            ${byTag(operations).map(([tag, own]) =>
              html`<optgroup label="${tag}">${
                own.map(({ id, summary }) => html`<option value="${id}">${summary}</option>`)
              }</optgroup>`
            )}
          </select>
          <button id="send">Send</button>
        </div>
        <fieldset class="tabs">
          <legend class="quiet">Show the request as</legend>
          ${LANGUAGES.map(([value, label], index) => {
            const radio = attributes({ type: "radio", name: "language", value, checked: index === 0 });
            return html`<label><input${radio}><span>${label}</span></label>`;
          })}
          <button type="button" id="copy-request" class="link" aria-label="Copy the request">Copy</button>
        </fieldset>
        <div id="requests">${operations.map(requestFields)}</div>
        <pre id="sample" hidden></pre>
      </form>
      <section id="answer" aria-label="Answer" tabindex="-1">
        <div class="row"><p id="answer-head"></p>
          <button type="button" id="first-animal" class="link" data-try="createPet" hidden>Add an animal</button>
          <button type="button" id="next-page" class="link" hidden>Next page</button></div>
        <p id="answer-message"></p>
        <p id="answer-advice"></p>
        <pre id="answer-body"></pre>
        <details id="answer-headers"><summary></summary><dl></dl></details>
      </section>
    </section>
  `;
}

/** The visitor has one of three things: a name to make a key for, a key to paste, or a key. */
function keyForm({ environment, signUpIsOpen }: PageOptions): Html {
  const input = (own: Readonly<Record<string, string>>) =>
    html`<input${
      attributes({ ...own, type: "text", autocomplete: "off", autocapitalize: "off", spellcheck: "false" })
    }>`;
  return html`
    <form id="key-form" autocomplete="off">
      <div data-when="make">
        <div class="row">
          <label for="name">Your name</label> ${input({ id: "name", value: "me", maxlength: "100" })}
          <button class="filled">Make a key and call</button>
        </div>
        <p class="row small"><span>The key stays in this page.</span>
          <button type="button" class="link" data-show="paste">I have a key</button></p>
      </div>
      <div data-when="paste">
        <div class="row">
          <label for="key-input">API key</label>
          ${input({ id: "key-input", placeholder: `${KEY_PREFIXES[environment]}...` })}
          <button class="filled">Call with it</button>
        </div>
        <p id="may-sign-up" class="row small" ${attributes({ hidden: !signUpIsOpen })}>
          <span>The key stays in this page.</span>
          <button type="button" id="make-one" class="link" data-show="make">Make a key</button></p>
        <p id="no-sign-up" class="small" ${attributes({ hidden: signUpIsOpen })}>
          No key can be made here now. The operator of the service makes one with
          <code>deno task accounts create</code>.</p>
      </div>
      <div data-when="held">
        <div class="row"><code id="key"></code>
          <button type="button" id="copy-key" aria-label="Copy the key">Copy</button></div>
        <p class="row small"><span id="key-note"></span>
          <button type="button" class="link" data-show="paste">Use another</button></p>
      </div>
    </form>
  `;
}

/** The request of an operation, in which what may be changed is a field. The first one is shown first. */
function requestFields(operation: Operation, index: number): Html {
  const { id, method, path, access, summary } = operation;
  const [[status = "", answer] = []] = Object.entries(operation.answers);
  const bodyType = bodyTypeOf(operation);
  const body = exampleOf(operation.body, 2);
  const at = (place: string) => inputsOf(operation).filter((input) => input.place === place);
  const [before = "", after = ""] = path.split(/\{\w+\}/);
  const fieldset = attributes({
    "id": `request-${id}`,
    "data-method": method,
    "data-path": path,
    "data-access": access,
    "data-body-type": bodyType,
    "data-status": status,
    "data-example": exampleOf(answer?.body),
    "hidden": index > 0,
  });
  const area = attributes({
    "aria-label": "Body",
    "rows": `${body.split("\n").length}`,
    "spellcheck": "false",
  });
  const optional = at("body").filter(({ name }) => !body.includes(`"${name}"`));
  return html`
    <fieldset${fieldset}>
      <legend class="quiet">${summary}</legend>
      <p><b>${method}</b> ${before}${at("path").map(field)}${after}${at("query").map((input) =>
        html`<label><i>&amp;</i>${input.name}=${field(input)}</label>`
      )}</p>
      ${access === "key" ? html`<p class="credentials">Authorization: <span></span></p>` : ""}
      ${bodyType === "" ? "" : html`<p>Content-Type: ${bodyType}</p>`}
      ${at("header").map((input) => html`<p><label>${input.name}: ${field(input)}</label></p>`)}
      ${bodyType === "" ? "" : html`<textarea${area}>${body}</textarea>`}
      ${optional.map(({ name, schema }) =>
        html`<p class="left-out">"${name}": ${schema.enum?.join(" | ") ?? String(schema.type)}, left out</p>`
      )}
    </fieldset>
  `;
}

function field({ name, place, schema, example }: InputMember): Html {
  const control = { "name": name, "aria-label": name, "data-place": place };
  if (schema.enum) {
    return html`<select${attributes(control)}><option value="">any</option>${
      schema.enum.map((value) => html`<option>${value}</option>`)
    }</select>`;
  }
  const input = attributes({
    ...control,
    type: "text",
    value: example,
    placeholder: String(schema.default ?? "none"),
    autocapitalize: "off",
    spellcheck: "false",
    inputmode: schema.type === "integer" && "numeric",
  });
  return html`<input${input}>`;
}
