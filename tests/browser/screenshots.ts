import { print } from "../../src/stdio.ts";
import { call, choose, signUp, visit } from "./browser.ts";

const WIDTHS = [[390, 844], [820, 1180], [1280, 800]] as const;
const folder = await Deno.makeTempDir({ prefix: "screenshots-" });

for (const [width, height] of WIDTHS) {
  for (const colorScheme of ["light", "dark"] as const) {
    await using visitor = await visit({ viewport: { width, height }, colorScheme });
    const { page } = visitor;
    const shoot = (name: string, fullPage = false) =>
      page.screenshot({ path: `${folder}/${width}-${colorScheme}-${name}.png`, fullPage });
    await shoot("first");
    await shoot("all", true);
    if (colorScheme === "light") await signUp(page);
    await choose(page, "createPet");
    await call(page);
    await shoot("answer");
  }
}
print(folder);
