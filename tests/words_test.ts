import { assertEquals } from "@std/assert";

/** Phrases that are old-fashioned, or treat requests as people. */
const PHRASES =
  /\b(?:whoever|lest|of late|unless told|(?:is|are|be) told|so many|who asks?|those who|for want of)\b/i;
const ROOT = new URL("..", import.meta.url);
const READ = /(?:\.(?:ts|js|html|md|yml)|deno\.json)$/;

/** The source files and documents below a folder. */
async function filesIn(folder: string): Promise<string[]> {
  const entries = await Array.fromAsync(Deno.readDir(new URL(folder, ROOT)));
  const files = entries.map(({ name, isDirectory }) => {
    if (isDirectory) return filesIn(`${folder}${name}/`);
    return READ.test(name) ? [`${folder}${name}`] : [];
  });
  return (await Promise.all(files)).flat();
}

Deno.test("code and guides use plain words", async () => {
  const files = ["README.md", "main.ts", "deno.json", ...await filesIn("src/"), ...await filesIn("tests/")];
  const texts = await Promise.all(files.map((file) => Deno.readTextFile(new URL(file, ROOT))));

  const found = files.flatMap((file, index) =>
    (texts[index] ?? "").split("\n").flatMap((line, row) =>
      PHRASES.test(line) ? [`${file}:${row + 1} ${line.trim()}`] : []
    )
  );

  assertEquals(found.filter((line) => !line.startsWith("tests/words_test.ts:")), []);
});
