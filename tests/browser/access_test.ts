import { assert, assertEquals, assertMatch } from "@std/assert";
import axe from "axe-core";
import type { Page } from "playwright-core";
import { call, choose, visit } from "./browser.ts";

Deno.test("page can be used with the keyboard alone up to a first call", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  const tabTo = async (selector: string) => {
    for (let count = 0; count < 40; count++) {
      await page.keyboard.press("Tab");
      if (await page.locator(`${selector}:focus`).count() > 0) return;
    }
    throw new Error(`No Tab leads to ${selector}`);
  };
  await page.keyboard.press("Tab");
  assertEquals(await page.locator(":focus").textContent(), "Skip to the content");
  await page.keyboard.press("Enter");
  await tabTo("#sign-up-name");
  await page.keyboard.type("Zoë");
  await page.keyboard.press("Enter");
  await page.locator("#key-note").waitFor();
  assertEquals(await page.locator(":focus").getAttribute("id"), "key-input");
  await tabTo("#listPets-limit");
  await page.keyboard.type("5");
  await page.keyboard.press("Enter");

  await page.locator("#answer-status", { hasText: "200 OK" }).waitFor();
  assertMatch(await page.locator("#announcement").textContent() ?? "", /^200 OK, in \d+ milliseconds/);
});

Deno.test("page marks in its contents where the reader is, and takes what is tried to the console", async () => {
  await using visitor = await visit({ viewport: { width: 1280, height: 800 } });
  const { page } = visitor;
  const current = page.locator("#contents [aria-current]");
  await page.getByRole("link", { name: "Limits", exact: true }).click();
  await page.locator("#contents [aria-current]", { hasText: "Limits" }).waitFor();
  await page.getByRole("link", { name: "Reference", exact: true }).click();
  await page.locator("#contents [aria-current]", { hasText: "Reference" }).waitFor();
  assertEquals(await current.count(), 1);
  for (const name of ["Health", "Deprecation", "Call"]) {
    await page.locator("#contents").getByRole("link", { name }).click();
    await page.locator("#contents [aria-current]", { hasText: name }).waitFor();
  }
  await page.goto(`${visitor.origin}/#error-gone`);
  await page.locator("#contents [aria-current]", { hasText: "Errors" }).waitFor();
  await page.goto("about:blank");
  await page.goto(`${visitor.origin}/#health`);
  await page.locator("#contents [aria-current]", { hasText: "Health" }).waitFor();
  await page.getByRole("link", { name: "Reference", exact: true }).click();

  const before = await page.evaluate(() => scrollY);
  await page.locator("#reference").getByRole("link", { name: "Try it: List animals" }).click();

  assertEquals(await page.locator(":focus").getAttribute("id"), "operation");
  assertEquals(await page.locator("#operation").inputValue(), "listPets");
  assertEquals(await page.evaluate(() => scrollY), before);
});

Deno.test("page has all there is to read without script", async () => {
  await using visitor = await visit({ javaScriptEnabled: false });
  const { page } = visitor;
  assert(await page.getByRole("cell", { name: "10,000" }).isVisible());
  assert(await page.locator("#curl-listPets").isVisible());
  assert(await page.locator("#sign-up-curl").isVisible());
  assertEquals(await page.locator("#console").isVisible(), false);
});

for (const colorScheme of ["light", "dark"] as const) {
  for (const width of [320, 1280]) {
    Deno.test(`page has nothing that axe finds fault with, ${colorScheme}, ${width} px wide`, async () => {
      await using visitor = await visit({ colorScheme, viewport: { width, height: 800 } });
      const { page } = visitor;
      await choose(page, "createPet");
      await call(page);

      assertEquals(await violations(page), []);
      assert(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    });
  }
}

/** What axe finds, in words. */
async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const results = await page.evaluate(() => globalThis.axe.run());
  return results.violations.map(({ id, nodes }) => `${id}: ${nodes.length}, such as ${nodes[0]?.html}`);
}

declare global {
  var axe: { run(): Promise<import("axe-core").AxeResults> };
}
