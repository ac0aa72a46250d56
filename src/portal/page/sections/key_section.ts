import { type Environment, KEY_PREFIXES } from "../../../accounts/api_key.ts";
import { type Html, html } from "../html.ts";
import { copyable } from "./parts.ts";

/** What the visitor is told about keys. */
export interface KeyOptions {
  readonly base: string;
  readonly environment: Environment;
  readonly signUpIsOpen: boolean;
}

/** How to come by an API key, or use the one that the visitor has. */
export function keySection({ base, environment, signUpIsOpen }: KeyOptions): Html {
  const prefix = KEY_PREFIXES[environment];
  return html`
    <section id="key">
      <h2>Get a key</h2>
      <p>
        Every call carries an API key, as <code>Authorization: Bearer API_KEY</code>. Keys of this
        service, which is ${environment}, begin with <code>${prefix}</code>.
      </p>
      ${signUpIsOpen ? signUp(base) : html`
        <p>Sign-up is closed here: ask the operator of this service for a key.</p>
      `}
      <div class="needs-script">
        <label class="label" for="key-input">${signUpIsOpen
          ? "Or paste a key you have"
          : "Paste your key"}</label>
        <div class="row">
          <input id="key-input" class="mono" type="text" placeholder="${prefix}…" autocomplete="off"
            autocapitalize="off" spellcheck="false">
          <button type="button" id="key-copy" class="primary" hidden>Copy</button>
        </div>
        <p id="key-note" class="notice" hidden>
          This is your key. It is shown only this once: copy it now and keep it somewhere safe.
        </p>
        <p class="small">The key stays in the memory of this page, and goes to this service alone.</p>
      </div>
    </section>
  `;
}

function signUp(base: string): Html {
  const command = `curl '${base}/v1/accounts' \\
  -H 'Content-Type: application/json' \\
  -d '{"name":"me"}'`;
  return html`
    <form id="sign-up" class="needs-script">
      <label class="label" for="sign-up-name">Your name, or that of your program</label>
      <div class="row">
        <input id="sign-up-name" name="name" type="text" required maxlength="100" autocomplete="off">
        <button class="primary">Make a key</button>
      </div>
      <p id="sign-up-problem" class="problem" role="alert"></p>
    </form>
    <noscript>
      <p>Sign up from a shell. The answer shows the key, only this once:</p>
      ${copyable("sign-up-curl", command)}
    </noscript>
  `;
}
