import { type Content, type Html, html } from "./html.ts";

/** Text with a button that copies it. Screen readers call the button "Copy" and `name`. */
export function copyable(id: string, name: string, text: Content): Html {
  return html`
    <div class="copyable">
      <button type="button" class="link scripted" data-copy="${id}"
        aria-label="Copy ${name}">Copy</button>
      <pre id="${id}">${text}</pre>
    </div>
  `;
}
