import { assertEquals } from "@std/assert";
import { MODULES, SCRIPT } from "../../src/page/page.ts";

const FOLDER = new URL("../../src/page/script/", import.meta.url);

Deno.test("MODULES has every module of the script after those that it imports", async () => {
  const files = (await Array.fromAsync(Deno.readDir(FOLDER))).map(({ name }) => name.replace(/\.js$/, ""));
  assertEquals([...MODULES].sort(), files.sort());
  const wrong = await Promise.all(MODULES.map(async (name, index) => {
    const text = await Deno.readTextFile(new URL(`${name}.js`, FOLDER));
    const imported = [...text.matchAll(/^(?:import|\}) .*from "\.\/(\w+)\.js";$/gm)].map(([, other = ""]) =>
      other
    );
    return imported.filter((other) => !MODULES.slice(0, index).includes(other));
  }));
  assertEquals(wrong.flat(), []);
});

Deno.test("SCRIPT is one module without imports, exports and lines that are comments", () => {
  assertEquals(SCRIPT.match(/^(?:import|export)\b.*|^\s*(?:\/\/|\/?\*).*|<\/script|<!--/gm), null);
  // A name that two modules declare would be a syntax error.
  new Function(`"use strict"; { ${SCRIPT} }`);
});
