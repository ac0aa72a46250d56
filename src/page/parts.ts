import { type Html, html } from "./html.ts";

/** A text to copy; `name` completes "Copy …" for those who do not see where the button is. */
export function copyable(id: string, name: string, text: string): Html {
  return html`
    <div class="copyable">
      <pre id="${id}">${text}</pre>
      <button type="button" class="link scripted" data-copy="${id}"
        aria-label="Copy ${name}">Copy</button>
    </div>
  `;
}
