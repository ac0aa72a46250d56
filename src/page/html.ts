const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
};
/** It is there for those who read the templates. */
const INDENTATION = /\n\s+/g;

/** Text that is HTML already. */
export class Html {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  toString(): string {
    return this.#text;
  }
}

/** What may stand in a template: text, which is escaped, HTML, or several of them. */
export type Content = string | number | Html | readonly Content[];

/**
 * HTML from a template; text in it is escaped, for contents as for quoted attributes.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * const items = ["a<b", "c"].map((text) => html`<li>${text}</li>`);
 * assertEquals(String(html`<ul>${items}</ul>`), "<ul><li>a&lt;b</li><li>c</li></ul>");
 * ```
 */
export function html(strings: TemplateStringsArray, ...contents: readonly Content[]): Html {
  return new Html(
    strings.map((text, index) => text.replaceAll(INDENTATION, "\n") + render(contents[index] ?? "")).join(""),
  );
}

/**
 * Attributes of a tag. One that is true has no value; one that is false is left out.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * const input = html`<input${attributes({ name: "limit", required: true, disabled: false })}>`;
 * assertEquals(String(input), '<input name="limit" required>');
 * ```
 */
export function attributes(values: Readonly<Record<string, string | boolean>>): Html {
  const written = Object.entries(values).filter(([, value]) => value !== false)
    .map(([name, value]) => value === true ? ` ${name}` : ` ${name}="${escape(String(value))}"`);
  return new Html(written.join(""));
}

/** HTML of a sentence with `code` in backquotes. */
export function prose(text: string): Html {
  return html`${text.split("`").map((part, index) => index % 2 === 1 ? html`<code>${part}</code>` : part)}`;
}

function render(content: Content): string {
  if (content instanceof Html) return content.toString();
  if (typeof content === "object") return content.map(render).join("");
  return escape(String(content));
}

function escape(text: string): string {
  return text.replaceAll(/[&<>"]/g, (character) => ENTITIES[character] ?? character);
}
