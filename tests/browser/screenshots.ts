import { print } from "../../src/process/process.ts";
import { IDS, PATH, SHIPPED, textField } from "../process/shipped.ts";
import { call, choose, paste, settle, signUp, visit } from "./browser.ts";
import type { Page } from "playwright-core";

const SIZES = [[320, 568], [390, 664], [820, 1180], [1280, 800], [1920, 1080], [2560, 1440]] as const;
const NAMES = ["Rex", "Bella", "Luna", "Tom"];
/** The field with the name of an item. */
const NAME = textField("Rex");
const MAX_BYTES = 150_000;
/** Images that the README shows. */
const PICTURES = { light: "page.png", dark: "page_dark.png" } as const;
const CLIP = { x: 0, y: 0, width: 1280, height: 712 };
const folder = Deno.args[0] ?? await Deno.makeTempDir({ prefix: "screenshots-" });

for (const [width, height] of SIZES) {
  for (const colorScheme of ["light", "dark"] as const) {
    const isMobile = width < 1_000;
    const options = { viewport: { width, height }, colorScheme, isMobile, hasTouch: isMobile };
    await using visitor = await visit(options);
    const { page, origin } = visitor;
    page.on("dialog", (dialog) => dialog.accept());
    const shoot = (state: string, fullPage = false) =>
      page.screenshot({
        path: `${folder}/${state}_${width}_${colorScheme}.png`,
        fullPage,
        animations: "disabled",
      });
    await addItems(origin);
    await page.mouse.move(0, 0);
    await shoot("first");
    await shoot("all", true);
    await signUp(page);
    await shoot("key_and_200");
    await choose(page, IDS.create);
    await page.locator(`#request-${IDS.create} textarea`).fill(
      JSON.stringify({ ...SHIPPED.examples.item, [NAME]: "" }, null, 2),
    );
    await call(page);
    await shoot("400");
    await choose(page, IDS.get);
    await page.locator(`#request-${IDS.get} [name=${SHIPPED.id}]`).fill("999");
    await call(page);
    await shoot("404");
    await choose(page, IDS.list);
    await page.locator("#race").click();
    await page.locator("#answer[data-kind=race]").waitFor();
    await settle(page);
    // Prints follow each other, 12 ms apart.
    await page.waitForTimeout(1_500);
    await shoot("race");
    if (width === 1280) {
      const path = `${import.meta.dirname}/../../src/page/${PICTURES[colorScheme]}`;
      await page.locator("#console").evaluate((console) => console.scrollTo(0, 0));
      await nameOrigin(page, origin, "http://localhost:8000");
      const { length } = await page.screenshot({ path, clip: CLIP, animations: "disabled" });
      if (length > MAX_BYTES) throw new Error(`${path} has ${length} bytes, more than ${MAX_BYTES}`);
    }
    await page.getByRole("radio", { name: "Python" }).check();
    await shoot("python");
    await page.route(
      `**${PATH}`,
      (route) =>
        route.fulfill({
          status: 503,
          json: { code: "overloaded", message: "Too many requests are in flight." },
        }),
      { times: 1 },
    );
    await paste(page, "as_test_another_key");
    await page.getByRole("radio", { name: "Request" }).check();
    await shoot("503");
    await paste(page, "as_test_wrong");
    await shoot("401");
    await page.locator("#limits").evaluate((section) => section.scrollIntoView());
    await shoot("limits");
    await page.evaluate(() => location.hash = IDS.create);
    await page.locator(`article#${IDS.create}`).waitFor();
    await shoot("reference");
  }
}
print(folder);

/** Replaces the origin in the samples, as if the service had its usual port. */
async function nameOrigin(page: Page, origin: string, shown: string): Promise<void> {
  await page.locator("pre").evaluateAll((samples, [origin = "", shown = ""]) => {
    for (const sample of samples) sample.textContent = sample.textContent.replaceAll(origin, shown);
  }, [origin, shown]);
}

/** Adds items, so that lists are not empty. */
async function addItems(origin: string): Promise<void> {
  const type = { "content-type": "application/json" };
  const account = await fetch(`${origin}/v1/accounts`, {
    method: "POST",
    headers: type,
    body: '{"name":"me"}',
  });
  const headers = { ...type, authorization: `Bearer ${(await account.json()).apiKey}` };
  for (const name of NAMES) {
    const body = JSON.stringify({ ...SHIPPED.examples.item, [NAME]: name });
    await (await fetch(`${origin}${PATH}`, { method: "POST", headers, body })).body?.cancel();
  }
}
