import { assertEquals, assertThrows } from "@std/assert";
import { html } from "../../src/page/html.ts";
import { inline, sectionsOf } from "../../src/page/markdown.ts";

const NONE = { slots: {}, links: {} };

Deno.test("sectionsOf() renders paragraphs, lists, code, slots and links, and escapes text", () => {
  const text =
    "# Title\n\nLeft out.\n\n## Two words\n\nA `<b>` and\n**bold `x`** [link](#a).\n\n- one,\n  more\n- [two](b.md)\n\n" +
    "```js\nif (a < b) {\n\n  c();\n}\n```\n\n<!-- table -->\n\n## Next\n\nEnd & more.\n";
  const sections = sectionsOf(text, { slots: { table: html`<table></table>` }, links: { "b.md": "/b" } });

  assertEquals(sections.map(({ id, title, content }) => [id, title, `${html`${content}`}`]), [
    [
      "two-words",
      "Two words",
      '<p>A <code>&lt;b&gt;</code> and\n<b>bold <code>x</code></b> <a href="#a">link</a>.</p>' +
      '<ul><li>one,\n  more</li><li><a href="/b">two</a></li></ul>' +
      '<pre id="two-words-1" class="copyable">if (a &lt; b) {\n\n  c();\n}</pre><table></table>',
    ],
    ["next", "Next", "<p>End &amp; more.</p>"],
  ]);
});

Deno.test("sectionsOf() throws for a slot without content, and inline() keeps other characters", () => {
  assertThrows(() => sectionsOf("## A\n\n<!-- plans -->\n", NONE), Error, "nothing for <!-- plans -->");
  assertEquals(`${html`${inline("a*b_c [d] `*` (e) 2^53 −")}`}`, "a*b_c [d] <code>*</code> (e) 2^53 −");
});
