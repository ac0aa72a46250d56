import type { Page } from "playwright-core";
import { print } from "../../src/process/process.ts";
import { IDS, PATH, SHIPPED, textField } from "../process/shipped.ts";
import { ToyServer } from "../toys/toy_shop.ts";
import { call, choose, race, signUp, SIZES, visit, WIDE } from "./browser.ts";

/** Images that the README shows. */
const PICTURES = { light: "page.png", dark: "page_dark.png" } as const;
const MAX_BYTES = 200_000;
const folder = Deno.args[0] ?? await Deno.makeTempDir({ prefix: "screenshots-" });

const sizes = Deno.args[1] === undefined ? SIZES : SIZES.filter(([width]) => `${width}` === Deno.args[1]);
for (const [width, height] of sizes) {
  for (const colorScheme of ["light", "dark"] as const) {
    const isMobile = width < 700;
    const options = { viewport: { width, height }, colorScheme, isMobile, hasTouch: isMobile };
    await using visitor = await visit(options);
    const { page, origin } = visitor;
    const shoot = (state: string) =>
      page.screenshot({ path: `${folder}/${state}_${width}_${colorScheme}.png`, animations: "disabled" });
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
    if (width === 1280) await shootForReadme(page, origin, colorScheme);
    for (const [state, id] of [["6_reference", IDS.create], ["7_limits", "limits"]] as const) {
      await page.locator(`#${id}`).evaluate((part) => part.scrollIntoView());
      await shoot(state);
    }
  }
}

await using fork = await visit({ ...WIDE, start: () => ToyServer.start() });
await fork.page.evaluate(() => {
  for (const name of ["--hue", "--paper-hue"]) document.documentElement.style.setProperty(name, "150");
});
await signUp(fork.page);
await call(fork.page, "createToy");
await fork.page.screenshot({ path: `${folder}/8_fork_1280_light.png` });
print(folder);

/** Takes the picture for the README, as if the service had its usual port. */
async function shootForReadme(page: Page, origin: string, colorScheme: "light" | "dark"): Promise<void> {
  await page.locator("pre, code").evaluateAll((all, origin) => {
    for (const text of all) text.textContent = text.textContent.replaceAll(origin, "http://localhost:8000");
  }, origin);
  await page.locator("#console").evaluate((console) => console.scrollTo(0, 0));
  const path = `${import.meta.dirname}/../../src/page/${PICTURES[colorScheme]}`;
  const { length } = await page.screenshot({ path, animations: "disabled" });
  if (length > MAX_BYTES) throw new Error(`${path} has ${length} bytes, more than ${MAX_BYTES}`);
}

/** Adds items, so that lists are not empty. */
async function addItems(origin: string): Promise<void> {
  const type = { "content-type": "application/json" };
  const me = { method: "POST", headers: type, body: '{"name":"me"}' };
  const account = await fetch(`${origin}/v1/accounts`, me);
  const headers = { ...type, authorization: `Bearer ${(await account.json()).apiKey}` };
  for (const name of ["Rex", "Bella"]) {
    const body = JSON.stringify({ ...SHIPPED.examples.item, [textField("Rex")]: name });
    await (await fetch(`${origin}${PATH}`, { method: "POST", headers, body })).body?.cancel();
  }
}
