// Markdown, as far as the guide and descriptions use it, as HTML.
import { type Content, type Html, html } from "./html.ts";

/** A section of a document: a heading of the second level, and what follows it. */
export interface Section {
  /** Its anchor, as on GitHub. */
  readonly id: string;
  readonly title: string;
  readonly content: Content;
}

/** What a document leaves to its reader. */
export interface Fillings {
  /** Content for comments, such as `<!-- plans -->`, by their text. */
  readonly slots: Readonly<Record<string, Content>>;
  /** Targets for links that lead elsewhere on GitHub. */
  readonly links: Readonly<Record<string, string>>;
}

/** Code, bold text, or a link. */
const INLINE = /`([^`]+)`|\*\*(.+?)\*\*|\[(.+?)\]\((.+?)\)/g;

/**
 * The sections of a document. What precedes the first is left out.
 *
 * @throws {Error} if the document has a comment without content.
 */
export function sectionsOf(markdown: string, fillings: Fillings): Section[] {
  const [, ...parts] = markdown.split(/^## /m);
  return parts.map((part) => {
    const [title = ""] = part.split("\n", 1);
    const id = title.toLowerCase().replaceAll(" ", "-");
    const pieces = part.slice(title.length).split(/^```\w*\n([^]*?)\n```$/m);
    const content = pieces.map((text, index) =>
      index % 2 === 1 ? copyable(text) : text.trim().split(/\n{2,}/).map((text) => block(text, fillings))
    );
    return { id, title, content };
  });
}

/** A paragraph, a list, or the content of a comment. */
function block(text: string, fillings: Fillings): Content {
  if (text === "") return undefined;
  const [, name] = /^<!-- (.+) -->$/.exec(text) ?? [];
  if (name !== undefined) {
    if (!(name in fillings.slots)) throw new Error(`There is nothing for <!-- ${name} -->`);
    return fillings.slots[name];
  }
  if (text.startsWith("|")) return table(text, fillings);
  if (!text.startsWith("- ")) return html`<p>${inline(text, fillings.links)}</p>`;
  const [, ...items] = text.split(/^- /m);
  return html`<ul>${items.map((item) => html`<li>${inline(item, fillings.links)}</li>`)}</ul>`;
}

/** A table. The first cell of each row names it. */
function table(text: string, { links }: Fillings): Html {
  const [head = [], , ...rows] = text.split("\n").map((line) => line.split("|").slice(1, -1));
  const heads = head.map((cell) => html`<th>${inline(cell, links)}</th>`);
  const body = rows.map(([name = "", ...cells]) => {
    const others = cells.map((cell) => html`<td>${inline(cell, links)}</td>`);
    return html`<tr><th scope="row">${name.trim()}</th>${others}</tr>`;
  });
  return html`
    <table>
      <thead>
        <tr>${heads}</tr>
      </thead>
      <tbody>${body}</tbody>
    </table>
  `;
}

/** A sentence with code, bold text and links, in one line. */
export function inline(text: string, links: Fillings["links"] = {}): Content {
  const line = text.trim().replaceAll(/\s+/g, " ");
  let end = 0;
  const pieces = [...line.matchAll(INLINE)].flatMap(
    ({ 0: all, 1: code, 2: bold, 3: label = "", 4: target = "", index }) => {
      const before = line.slice(end, index);
      end = index + all.length;
      if (code !== undefined) return [before, html`<code>${code}</code>`];
      if (bold !== undefined) return [before, html`<b>${inline(bold, links)}</b>`];
      return [before, html`<a href="${links[target] ?? target}">${inline(label, links)}</a>`];
    },
  );
  return [...pieces, line.slice(end)];
}

/** Text that the script makes ready to copy. */
export function copyable(text: Content, attributes?: Content): Html {
  return html`<pre ${attributes}>${text}</pre>`;
}
