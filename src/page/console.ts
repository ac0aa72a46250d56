// The console, before its script starts: a form for a key, the prints, and a form for each operation's requests.
import { keyStart } from "../accounts/api_key.ts";
import { planOf } from "../accounts/plans.ts";
import { IDENTITY } from "../catalogue/identity.ts";
import type { PageOptions } from "./guide.ts";
import { type Html, html } from "./html.ts";
import { perPrint } from "./script/limits.js";

/** Kinds of prints, in the order of the legend. */
const LEGEND = [["refused", "refused"], ["ok", "ok"], ["bad", "failed"], ["other", "by others"]] as const;

/** The console. The first operation of the reference must be a list: it is the first call, and the race repeats it. */
export function consoleSection({ publicUrl = "", environment, signUpIsOpen, catalogue }: PageOptions): Html {
  const { minute } = planOf(catalogue.plans, {}).limits;
  const form = signUpIsOpen ? "make" : "paste";
  return html`
    <section id="console" class="scripted" aria-label="Console" spellcheck="false" data-base="${publicUrl}"
      data-form="${form}" data-limit="${minute}">
      ${keyForm(keyStart(catalogue.keyPrefix, environment), signUpIsOpen)}
      <div id="strip">
        ${prints(minute)}
        <div id="refused"></div>
        <p id="ahead"></p>
        <p id="legend">${LEGEND.map(([kind, text]) =>
          html`<span><svg class="${kind}"><use href="#print" /></svg><b></b> ${text}</span>`
        )}<span id="per"></span><span id="pointed"></span></p>
        <div class="row">
          <p><b id="left"></b><span id="reset"></span></p>
          <button type="button" id="race" aria-describedby="race-note">Race the limit</button>
        </div>
        <div class="row">
          <select id="operation" form="call" aria-label="Operation"></select>
          <button id="send" form="call">Send</button>
        </div>
      </div>
      <form id="call" autocomplete="off" autocapitalize="off">
        <p class="line"><b id="method"></b> <code id="target"></code></p>
        <p id="deprecated" class="small"></p>
        <details id="code">
          <summary>As code</summary>
          <pre id="sample"></pre>
        </details>
      </form>
      ${answerSection()}
      <p id="race-note" class="small"></p>
      <details id="log"><summary>Requests of this minute</summary><ol id="entries"></ol></details>
    </section>
  `;
}

/** Where a response is shown, or an example of it. */
export function answerSection(): Html {
  return html`
    <section id="answer" aria-label="Response" tabindex="-1" data-kind="example">
      <p id="head"></p>
      <p id="message"></p>
      <p id="advice"><a id="error"></a> <span id="todo"></span></p>
      <p id="next"></p>
      <pre id="body"></pre>
      <details id="headers">
        <summary id="count"></summary>
        <pre id="raw"></pre>
      </details>
    </section>
  `;
}

/** A print for each request of the minute or, with large limits, for several. */
function prints(limit: number): Html {
  const all = Array(Math.ceil(limit / perPrint(limit))).fill(html`
    <svg>
      <use href="#print" />
    </svg>
  `);
  const label = `A ${IDENTITY.print.name} print for each request of the minute`;
  return html`<div id="prints" role="img" aria-label="${label}">${all}</div>`;
}

function keyForm(prefix: string, signUpIsOpen: boolean): Html {
  const first = signUpIsOpen ? "make" : "paste";
  const when = (form: string) => [html`data-when="${form}"`, form !== first && [" ", html`hidden`]];
  const toMake = html`
    <button type="button" id="to-make" class="link" data-form="make" ${when("paste")}>Make a key</button>
  `;
  return html`
    <form id="key-form" autocomplete="off" autocapitalize="off">
      <div ${when("make")}>
        <label for="name">Your name</label>
        <div class="row">
          <input id="name" value="me" maxlength="100" aria-describedby="key-note">
          <button id="make" class="filled">Make a key and call</button>
        </div>
      </div>
      <div ${when("paste")}>
        <label for="pasted">Your API key</label>
        <div class="row">
          <input id="pasted" placeholder="${prefix}…" aria-describedby="key-note">
          <button id="use" class="filled">Use this key</button>
        </div>
      </div>
      <div ${when("held")}>
        <p>Your API key</p>
        <div class="row"><code id="key"></code></div>
      </div>
      <div class="row small">
        <p id="key-note"></p>
        <button type="button" class="link" data-form="paste" ${when("make")}>I have a key</button>
        ${signUpIsOpen && toMake}
        <button type="button" class="link" data-form="paste" ${when("held")}>Use another</button>
      </div>
    </form>
  `;
}
