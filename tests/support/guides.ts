// Programs in the guides.
import { assert } from "@std/assert";

/** The guide for operators. */
export const OPERATORS_GUIDE: URL = new URL("../../src/operator/README.md", import.meta.url);
/** The guide for clients. A fork without the page does not have it. */
export const CLIENTS_GUIDE: URL = new URL("../../src/page/guide.md", import.meta.url);

/** The first code of a section of a guide. */
export async function codeIn(guide: URL, heading: string): Promise<string> {
  const [, section = ""] = (await Deno.readTextFile(guide)).split(`\n${heading}\n`);
  const [, code = ""] = /^```\w+(?: ignore)?\n([^]*?)\n```$/m.exec(section) ?? [];
  return code;
}

/** A folder that is removed in the end. */
export async function temporaryFolder(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await Deno.makeTempDir({ prefix: "feed_" });
  return { path, [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }) };
}

/** Asserts that a program has the right types. */
export async function assertTypes(code: string): Promise<void> {
  await using folder = await temporaryFolder();
  await Deno.writeTextFile(`${folder.path}/code.ts`, code);
  const { success, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["check", "--no-config", `${folder.path}/code.ts`],
    env: { NO_COLOR: "1" },
  }).output();
  assert(success, new TextDecoder().decode(stderr));
}
