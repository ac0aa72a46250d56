// The guide for clients, src/page/README.md: sections of the page, in Markdown.
import { NodeHtmlMarkdown } from "node-html-markdown";

const SECTIONS = ["limits", "errors", "retries", "conditions", "integers", "health"];
const HEAD = "# Guide for clients\n\nOperations are in [README.md](../../README.md#operations).";

/** Translates the guide from the HTML of the page. */
export async function clientGuide(page: string): Promise<string> {
  const sections = SECTIONS.map((id) => {
    const [section = ""] = new RegExp(`<section id="${id}">.*?</section>`, "s").exec(page) ?? [];
    return NodeHtmlMarkdown.translate(plain(section), { bulletMarker: "-", strongDelimiter: "**" });
  });
  const written = sections.filter((section) => section !== "");
  return await formatted([HEAD, ...written].join("\n\n"));
}

/** HTML without buttons and the indentation of paragraphs, and with a list of points for one of terms. */
function plain(html: string): string {
  const parts = html.replaceAll(/<button.*?<\/button>/gs, "").split(/(<pre.*?<\/pre>)/s);
  const unindented = parts.map((part) =>
    part.startsWith("<pre")
      ? part.replace(/<pre[^>]*>/, "<pre><code>").replace("</pre>", "</code></pre>")
      : part.replaceAll(/\s+/g, " ").replaceAll(/(<(?:p|dt|dd|td|th)\b[^>]*>) | (<\/(?:p|dt|dd)>)/g, "$1$2")
  );
  return unindented.join("").replaceAll(/<sup>(.*?)<\/sup>/g, "^$1")
    .replaceAll(/<(\/?)dl[^>]*>/g, "<$1ul>")
    .replaceAll(/<div[^>]*> ?<dt>(.*?)<\/dt> ?<dd>(.*?)<\/dd> ?<\/div>/g, "<li>$1: $2</li>");
}

/** Markdown as `deno fmt` formats it. */
export async function formatted(markdown: string): Promise<string> {
  const command = new Deno.Command(Deno.execPath(), {
    args: ["fmt", "--ext", "md", "--line-width", "110", "-"],
    stdin: "piped",
    stdout: "piped",
  }).spawn();
  const writer = command.stdin.getWriter();
  await writer.write(new TextEncoder().encode(markdown));
  await writer.close();
  const { stdout } = await command.output();
  return new TextDecoder().decode(stdout);
}
