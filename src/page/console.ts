// The console, before its script starts: the form for a key, the meter, and a form for each operation's requests.
import type { DeclaredOperation } from "../web/mod.ts";
import { bodyTypeOf, type InputMember, inputsOf } from "../web/openapi.ts";
import { resolved, type Schema, stringifyJson } from "../web/schema.ts";
import { ACCESS } from "../resource/mod.ts";
import type { Catalogue } from "../resource/mod.ts";
import { type Environment, keyStart } from "../accounts/api_key.ts";
import { planOf } from "../accounts/plans.ts";
import { type Html, html } from "./html.ts";
import { PRINT } from "../catalogue/identity.ts";

/** Questions to the visitor before an operation is sent. */
const QUESTIONS: Readonly<Record<string, string>> = {
  closeAccount: "This closes your account permanently. Continue?",
  rotateKey: "This makes a new key, and your key stops working soon. Continue?",
};

/** Options of {@linkcode consoleSection}. */
export interface ConsoleOptions {
  readonly publicUrl: string;
  readonly environment: Environment;
  readonly catalogue: Catalogue;
  readonly signUpIsOpen: boolean;
}

/** The console for these operations. The first one must be a list: it is the first call, and the race repeats it. */
export function consoleSection(
  operations: readonly DeclaredOperation[],
  { publicUrl, environment, catalogue, signUpIsOpen }: ConsoleOptions,
): Html {
  const [first] = operations;
  const adding = operations.find(({ method, path }) => method === "POST" && path === first?.path);
  return html`
    <section id="console" class="scripted" aria-label="Console"
      data-base="${publicUrl}" data-key="${signUpIsOpen ? "make" : "paste"}">
      ${keyForm(keyStart(catalogue.keyPrefix, environment))}
      ${meter(planOf(catalogue.plans, {}).limits.minute)}
      ${callForm(operations)}
      <section id="answer" aria-label="Response" tabindex="-1" data-kind="example">
        <div class="row">
          <p id="answer-head"></p>
          <button type="button" id="first-item" class="link" data-try="${adding?.id}" hidden>${adding
            ?.summary}</button>
          <button type="button" id="next-page" class="link" value="">Next page</button>
          <button type="button" id="copy-answer" class="link" aria-label="Copy the response" hidden>Copy</button>
        </div>
        <p id="answer-message"></p>
        <p id="answer-advice"><a id="answer-code" href="#errors"></a> <span id="answer-todo"></span></p>
        <pre id="answer-body"></pre>
        <details id="answer-headers"><summary></summary><pre id="answer-raw"></pre><dl></dl></details>
      </section>
    </section>
  `;
}

function keyForm(prefix: string): Html {
  return html`
    <form id="key-form" autocomplete="off" autocapitalize="off" spellcheck="false">
      <label class="label" for="name" data-when="make">Your name</label>
      <label class="label" for="key-input" data-when="paste">API key</label>
      <p class="label" data-when="held">API key</p>
      <div class="row">
        <input id="name" value="me" maxlength="100" aria-describedby="key-note" data-when="make">
        <button id="make-key" class="filled" value="Make a key and call"
          data-when="make">Make a key and call</button>
        <input id="key-input" placeholder="${prefix}..." aria-describedby="key-note" data-when="paste">
        <button class="filled" data-when="paste">Use this key</button>
        <code id="key" data-when="held"></code>
        <span data-when="held"><button type="button" id="copy-key" aria-label="Copy the key">Copy</button></span>
      </div>
      <p id="key-note">The key stays on this page.</p>
      <p id="no-sign-up" class="if-closed" data-when="paste">
        Sign-up is closed. The operator of the service can create a key with
        <code>deno task accounts create</code>.
      </p>
      <div class="row small">
        <label class="check"><input type="checkbox" id="keep"> Keep in this tab</label>
        <button type="button" class="link" data-show="paste" data-when="make">I have a key</button>
        <button type="button" id="make-one" class="link if-open" data-show="make"
          data-when="paste">Make a key</button>
        <button type="button" class="link" data-show="paste" data-when="held">Use another key</button>
      </div>
    </form>
  `;
}

/** A print for each request of the minute of the plan that sign-up gives. */
function meter(limit: number): Html {
  const prints = Array.from(
    { length: limit },
    (_, index) =>
      html`<span role="option" id="print-${index + 1}" aria-label="${index + 1}: not used">${print()}</span>`,
  );
  const legend = [["ok", "succeeded"], ["bad", "failed"], ["refused", "refused"]].map((
    [kind = "", text = ""],
  ) => html`<b><span class="${kind}">${print()}</span> ${text}</b>`);
  return html`
    <div id="meter">
      <div id="prints" role="listbox" tabindex="0" aria-orientation="horizontal"
        aria-label="A ${PRINT} print for each request this minute, none of them used">
        <div id="admitted" class="prints" role="group" aria-label="Admitted">${prints}</div>
        <div id="refused" class="prints" role="group" aria-label="Refused"
          data-hint="Request ${limit + 1} would land here, refused."></div>
      </div>
      <div class="row small">
        <p id="legend">${legend}<span id="pointed"></span></p>
        <details id="log">
          <summary>As a list</summary>
          <ol id="log-list"></ol>
        </details>
      </div>
      <div class="row">
        <p><b id="minute">${limit} requests a minute</b> <span id="minute-end"></span></p>
        <button type="button" id="race" aria-describedby="race-note">Race the limit</button>
      </div>
      <div class="row small">
        <p><span id="day"></span> <span id="per"></span></p>
        <p id="race-note"></p>
      </div>
    </div>
  `;
}

function print(): Html {
  return html`
    <svg>
      <use href="#print" />
    </svg>
  `;
}

function callForm(operations: readonly DeclaredOperation[]): Html {
  const groups = [...Map.groupBy(operations, ({ tag }) => tag?.name ?? "")].map(([tag, own]) =>
    html`<optgroup label="${tag}">${
      own.map(({ id, summary }) => html`<option value="${id}">${summary}</option>`)
    }</optgroup>`
  );
  const languages = [["http", "Request"], ["curl", "curl"], ["javascript", "JavaScript"], [
    "python",
    "Python",
  ]].map(
    ([value = "", label = ""]) =>
      html`<label><input type="radio" name="language" value="${value}"
        ${value === "http" ? html`checked` : ""}><span>${label}</span></label>`,
  );
  return html`
    <form id="call" autocomplete="off" autocapitalize="off" spellcheck="false">
      <div id="call-top"></div>
      <div class="row" id="call-row">
        <select id="operation" aria-label="Operation">${groups}</select>
        <button id="send" value="Send">Send</button>
      </div>
      <fieldset class="tabs">
        <legend class="quiet">Show the request as</legend>
        ${languages}
        <span><button type="button" id="copy-request" class="link" aria-label="Copy the request"
          aria-describedby="copy-note">Copy</button> <span id="copy-note" hidden>with your key</span></span>
      </fieldset>
      <div id="requests">${operations.map(requestFields)}</div>
      <pre id="sample"></pre>
    </form>
  `;
}

/** The request of an operation as a form. Only the first form is visible initially. */
function requestFields(operation: DeclaredOperation, index: number): Html {
  const { id, method, path, access, summary } = operation;
  const [[status = "", answer] = []] = Object.entries(operation.answers);
  const bodyType = bodyTypeOf(operation);
  const body = exampleOf(operation.body, 2);
  const rows = body.split("\n").length;
  const at = (place: string) => inputsOf(operation).filter((input) => input.place === place);
  const [before = "", after = ""] = path.split(/\{\w+\}/);
  const question = QUESTIONS[id];
  return html`
    <fieldset id="request-${id}" data-method="${method}" data-path="${path}" data-access="${access.name}"
      data-body-type="${bodyType}" data-status="${status}" data-example="${exampleOf(answer?.body)}"
      ${question === undefined ? "" : html`data-confirm="${question}"`}
      ${access === ACCESS.address ? html`data-discards-key` : ""} ${index > 0 ? html`hidden` : ""}>
      <legend class="quiet">${summary}</legend>
      <p><b>${method}</b> ${before}${at("path").map(field)}${after}${at("query").map((input) =>
        html`<label><i>&amp;</i>${input.name}=${field(input)}</label>`
      )}</p>
      ${access === ACCESS.key ? html`<p class="credentials">Authorization: <span></span></p>` : ""}
      ${bodyType === "" ? "" : html`<p>Content-Type: ${bodyType}</p>`}
      ${at("header").map((input) => html`<p><label>${input.name}: ${field(input)}</label></p>`)}
      ${bodyType === "" ? "" : html`
        <textarea aria-label="Body" aria-describedby="answer-message"
          data-place="body" rows="${rows}">${body}</textarea>
      `}
      ${at("body").map(({ name, schema }) =>
        html`
          <p class="left-out" data-member="${name}">"${name}": ${schema.enum?.map(String).join(" | ") ??
            String(schema.type).replace(",", " | ")}, omitted</p>
        `
      )}
    </fieldset>
  `;
}

function field({ name, place, schema }: InputMember): Html {
  const common =
    html`name="${name}" aria-label="${name}" aria-describedby="answer-message" data-place="${place}"`;
  const choices = schema.type === "boolean" ? ["true", "false"] : schema.enum;
  if (choices) {
    const options = choices.map((value) => html`<option>${String(value)}</option>`);
    return html`<select ${common}><option value="">any</option>${options}</select>`;
  }
  const [example = ""] = schema.examples ?? [];
  const otherwise = String(schema.default ?? "none");
  const keyboard = schema.type === "integer" ? "numeric" : "text";
  return html`<input ${common} value="${
    String(example)
  }" placeholder="${otherwise}" inputmode="${keyboard}">`;
}

/** The schema's example as JSON text, indented by `indent` spaces; empty if there is none. */
export function exampleOf(schema: Schema | undefined, indent = 0): string {
  const [example] = (schema && resolved(schema).examples) ?? [];
  return example === undefined ? "" : stringifyJson(example, indent);
}
