const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
};

/** HTML that is not escaped again. */
export class Html {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  toString(): string {
    return this.#text;
  }
}

/** Content of a template: text, which is escaped; HTML; a list of both; or nothing. */
export type Content = string | number | Html | undefined | readonly Content[];

/**
 * Creates HTML from a template, without whitespace around it. Text is escaped for elements and quoted attributes.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * const items = ["a<b", "c"].map((text) => html`<li>${text}</li>`);
 * assertEquals(String(html`<ul>${items}${undefined}</ul>`), "<ul><li>a&lt;b</li><li>c</li></ul>");
 * ```
 */
export function html(strings: TemplateStringsArray, ...contents: readonly Content[]): Html {
  return new Html(strings.map((text, index) => text + render(contents[index])).join("").trim());
}

/** Creates HTML from a sentence with `code` in backticks. */
export function prose(text: string): Html {
  return html`${text.split("`").map((part, index) => index % 2 === 1 ? html`<code>${part}</code>` : part)}`;
}

function render(content: Content): string {
  if (content === undefined) return "";
  if (content instanceof Html) return content.toString();
  if (typeof content === "object") return content.map(render).join("");
  return String(content).replaceAll(/[&<>"]/g, (character) => ENTITIES[character] ?? character);
}
