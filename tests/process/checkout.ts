// Copies of the checkout, for tests to change.
import { existsSync } from "node:fs";

const ROOT = `${import.meta.dirname}/../..`;

/** Copies the files that Git knows, and those that it could add, to a folder, but none that was removed. */
export async function copyCheckout(folder: string): Promise<void> {
  const args = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"];
  const { stdout } = await new Deno.Command("git", { args, cwd: ROOT }).output();
  for (const path of new TextDecoder().decode(stdout).split("\0").slice(0, -1)) {
    if (!existsSync(`${ROOT}/${path}`)) continue;
    await Deno.mkdir(`${folder}/${path}`.replace(/\/[^/]*$/, ""), { recursive: true });
    await Deno.copyFile(`${ROOT}/${path}`, `${folder}/${path}`);
  }
}

/** Leaves a part out of a copy: its folder, and its import and name in `PARTS`. */
export async function leaveOut(folder: string, part: string): Promise<void> {
  await Deno.remove(`${folder}/src/${part}`, { recursive: true });
  await rewrite(
    `${folder}/src/catalogue/parts.ts`,
    (text) => {
      const [line = "", names = ""] =
        new RegExp(`^import \\{ (.*) \\} from "\\.\\./${part}/.*\\n`, "m").exec(text) ?? [];
      const own = names.split(", ");
      const rest = (all: string) => all.split(", ").filter((name) => !own.includes(name)).join(", ");
      return text.replace(line, "").replace(/(?<=PARTS: .* = \[).*(?=\])/, rest);
    },
  );
}

/** Leaves `src/engine/remote` out of a copy: the folder, and its import and name in `REMOTE`. */
export async function leaveOutRemote(folder: string): Promise<void> {
  await Deno.remove(`${folder}/src/engine/remote`, { recursive: true });
  await rewrite(
    `${folder}/src/engine/open.ts`,
    (text) =>
      text.replace(/^import .* from "\.\/remote\/.*\n/m, "").replace(/(?<=REMOTE: .* = \[).*(?=\])/, ""),
  );
}

/** Changes the text of a file. */
export async function rewrite(path: string, change: (text: string) => string): Promise<void> {
  await Deno.writeTextFile(path, change(await Deno.readTextFile(path)));
}
