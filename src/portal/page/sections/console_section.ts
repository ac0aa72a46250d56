import type { Operation } from "../../../api/operation.ts";
import { attributes, type Html, html } from "../html.ts";
import { fields, option } from "./console_fields.ts";
import { copyable, curlOf } from "./parts.ts";

const LANGUAGES = [
  ["http", "Request"],
  ["curl", "curl"],
  ["javascript", "JavaScript"],
  ["python", "Python"],
] as const;

/**
 * Where the visitor calls the service.
 *
 * @param base What its URLs begin with in commands; the console calls the origin that it has the page from, unless
 * there is a public URL.
 */
export function consoleSection(
  base: string,
  publicUrl: string | undefined,
  operations: readonly Operation[],
): Html {
  const firstCalls = operations.filter(({ id }) => id === "listPets" || id === "createPet");
  return html`
    <section id="call">
      <form id="console" class="needs-script" data-base="${publicUrl ?? ""}" autocomplete="off">
        <h2>Call it</h2>
        <div class="row">
          <select id="operation" class="mono" aria-label="Operation">
            ${operations.map(option)}
          </select>
          <button id="send" class="primary">Send</button>
        </div>
        ${operations.map(fields)}
        <p id="no-key" class="small">Without a key this is answered with 401: get one first, or see what it says.</p>
        <div class="request">
          <fieldset class="tabs">
            <legend class="quiet">Show the request as</legend>
            ${LANGUAGES.map(language)}
            <button type="button" id="sample-copy">Copy</button>
          </fieldset>
          <pre><code id="sample"></code></pre>
        </div>
        <div class="meters">
          ${["minute", "day"].map(meter)}
        </div>
        ${answer()}
      </form>
      <noscript>
        <h2>Call it</h2>
        <p>Put your key in place of <code>API_KEY</code>; list the animals, and add one.</p>
        ${firstCalls.map((operation) => copyable(`first-${operation.id}`, curlOf(operation, base)))}
      </noscript>
    </section>
  `;
}

function language([value, label]: readonly [string, string], index: number): Html {
  const input = attributes({ type: "radio", name: "language", value, checked: index === 0 });
  return html`
    <label><input${input}> <span>${label}</span></label>
  `;
}

function meter(name: string): Html {
  return html`
    <div class="meter" id="meter-${name}" data-state="unknown">
      <span class="meter-name">${name}</span>
      <span id="meter-${name}-left">known after a call</span>
      <span class="meter-track"><span id="meter-${name}-bar"></span></span>
      <span id="meter-${name}-reset"></span>
    </div>
  `;
}

function answer(): Html {
  return html`
    <div id="answer" role="region" aria-label="Answer" tabindex="-1" hidden>
      <p class="answer-line"><strong id="answer-status"></strong> <span id="answer-time"></span>
        <button type="button" id="next-page" hidden>Next page</button></p>
      <p id="answer-advice"></p>
      <dl id="answer-headers" class="headers"></dl>
      <details id="answer-more">
        <summary id="answer-more-label"></summary>
        <dl id="answer-rest" class="headers"></dl>
      </details>
      <pre tabindex="0" role="group" aria-label="Body"><code id="answer-body"></code></pre>
    </div>
  `;
}
