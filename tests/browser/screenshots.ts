import { print } from "../../src/process/process.ts";
import { IDS, PATH, SHIPPED, textField } from "../process/shipped.ts";
import { call, choose, race, signUp, SIZES, visit } from "./browser.ts";

/** Images that the README shows. */
const PICTURES = { light: "page.png", dark: "page_dark.png" } as const;
const folder = Deno.args[0] ?? await Deno.makeTempDir({ prefix: "screenshots-" });

for (const [width, height] of SIZES) {
  for (const colorScheme of ["light", "dark"] as const) {
    const isMobile = width < 700;
    const options = { viewport: { width, height }, colorScheme, isMobile, hasTouch: isMobile };
    await using visitor = await visit(options);
    const { page, origin } = visitor;
    const shoot = (state: string, path = `${folder}/${state}_${width}_${colorScheme}.png`) =>
      page.screenshot({ path, animations: "disabled" });
    await addItems(origin);
    await page.mouse.move(0, 0);
    await shoot("1_first");
    await signUp(page);
    await shoot("2_key");
    await call(page, IDS.create);
    await shoot("3_answer");
    await call(page, IDS.create, { body: JSON.stringify({ [textField("Rex")]: "" }) });
    await shoot("4_error");
    await choose(page, IDS.list);
    await race(page);
    await shoot("5_race");
    if (width === 1280) {
      // As if the service had its usual port.
      await page.locator("pre, code").evaluateAll((all, origin) => {
        for (const text of all) {
          text.textContent = text.textContent.replaceAll(origin, "http://localhost:8000");
        }
      }, origin);
      await page.locator("#console").evaluate((console) => console.scrollTo(0, 0));
      await shoot("", `${import.meta.dirname}/../../src/page/${PICTURES[colorScheme]}`);
    }
    for (const [state, id] of [["6_reference", IDS.create], ["7_limits", "limits"]] as const) {
      await page.locator(`#${id}`).evaluate((part) => part.scrollIntoView());
      await shoot(state);
    }
    await page.evaluate(() => {
      for (const name of ["--hue", "--paper-hue"]) document.documentElement.style.setProperty(name, "150");
    });
    await shoot("8_green");
  }
}
print(folder);

/** Adds items, so that lists are not empty. */
async function addItems(origin: string): Promise<void> {
  const headers = { "content-type": "application/json", authorization: "" };
  const post = async (path: string, json: unknown) =>
    await (await fetch(origin + path, { method: "POST", headers, body: JSON.stringify(json) })).json();
  const { apiKey } = await post("/v1/accounts", { name: "me" });
  headers.authorization = `Bearer ${apiKey}`;
  for (const name of ["Rex", "Bella"]) {
    await post(PATH, { ...SHIPPED.examples.item, [textField(name)]: name });
  }
}
