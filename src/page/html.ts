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
export type Content = string | number | Html | false | undefined | readonly Content[];

/**
 * Creates HTML from a template, without the whitespace around it, and without line breaks between its tags. Text is
 * escaped for elements and quoted attributes.
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
  const texts = strings.map((text) => text.replaceAll(/>\n\s+</g, "><").replaceAll(/\n\s+/g, "\n"));
  return new Html(texts.map((text, index) => text + render(contents[index])).join("").trim());
}

function render(content: Content): string {
  if (content === undefined || content === false) return "";
  if (content instanceof Html) return content.toString();
  if (typeof content === "object") return content.map(render).join("");
  return String(content).replaceAll(/[&<>"]/g, (character) => ENTITIES[character] ?? character);
}
