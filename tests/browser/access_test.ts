import { assert, assertEquals } from "@std/assert";
import axe from "axe-core";
import type { Page } from "playwright-core";
import { call, choose, paste, settle, signUp, status, visit } from "./browser.ts";

const MAX_HEIGHT = 10_000;
const MAX_PAGES = 8;
/** The rules of axe for WCAG 2 up to level AAA, and for good practice. */
const RULES = ["wcag2a", "wcag2aa", "wcag2aaa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

Deno.test("page is usable with only the keyboard up to the first call", async () => {
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
  await tabTo("#name");
  await page.keyboard.type("Zoë");
  await page.keyboard.press("Enter");
  await page.locator("#key-note", { hasText: "Your key is shown only once" }).waitFor();
  await settle(page);
  assertEquals(await page.locator(":focus").getAttribute("id"), "send");
  await tabTo("#request-listPets [name=limit]");
  await page.keyboard.type("5");
  await page.keyboard.press("Enter");

  await page.locator("#answer-head", { hasText: "GET /v1/pets" }).waitFor();
  await settle(page);
  const shown = await page.locator("#answer-head, #answer-message, #answer-advice").allTextContents();
  const said = shown.map((text) => text.trim()).filter((text) => text !== "").join(". ");
  assertEquals(await page.locator("#announcement").textContent(), said);
});

Deno.test("page marks the current section in its contents", async () => {
  await using visitor = await visit({ viewport: { width: 1280, height: 800 } });
  const { page } = visitor;
  for (const name of ["Limits", "Reference", "Health", "Integers"]) {
    await page.locator("#contents").getByRole("link", { name }).click();
    await page.locator("#contents [aria-current]", { hasText: name }).waitFor();
    assertEquals(await page.locator("#contents [aria-current]").count(), 1);
  }
  await page.goto(`${visitor.origin}/#error-gone`);
  await page.locator("#contents [aria-current]", { hasText: "Errors" }).waitFor();
});

Deno.test(`page is at most ${MAX_HEIGHT} px high on a wide screen, and ${MAX_PAGES} pages long on paper`, async () => {
  await using visitor = await visit({ viewport: { width: 1280, height: 800 } });
  const { page } = visitor;
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  const pdf = new TextDecoder("latin1").decode(await page.pdf({ format: "A4" }));

  assert(height <= MAX_HEIGHT, `${height} px`);
  const pages = pdf.match(/\/Type \/Page\b/g)?.length ?? 0;
  assert(pages >= 1 && pages <= MAX_PAGES, `${pages} pages`);
});

Deno.test("page has no transitions for visitors who prefer reduced motion", async () => {
  await using visitor = await visit({ reducedMotion: "reduce" });

  const durations = await visitor.page.evaluate(() =>
    [...document.querySelectorAll("*")].map((element) => getComputedStyle(element).transitionDuration)
  );

  assertEquals(durations.filter((duration) => duration !== "0s"), []);
});

for (const colorScheme of ["light", "dark"] as const) {
  for (const [width, height] of [[320, 568], [390, 664], [820, 1180], [1280, 800]] as const) {
    Deno.test(`page passes the checks of axe in every state, ${colorScheme}, ${width} px wide`, async () => {
      const isMobile = width < 1_000;
      const options = { colorScheme, viewport: { width, height }, hasTouch: isMobile, isMobile };
      await using visitor = await visit(options);
      const { page } = visitor;
      await check(page, "first load", "html");
      await page.getByRole("button", { name: "I have a key" }).click();
      await check(page, "a key to paste");
      await page.locator("#make-one").click();
      await signUp(page);
      await check(page, "key created, 200");
      await choose(page, "createPet");
      assertEquals(await call(page), "201");
      await page.locator("#answer-headers summary").click();
      await check(page, "201, headers open");
      await page.locator("#request-createPet textarea").fill("{}");
      assertEquals(await call(page), "400");
      await check(page, "400");
      await choose(page, "getPet");
      await page.locator("#request-getPet [name=petId]").fill("999");
      assertEquals(await call(page), "404");
      assert((await page.locator("#answer-head").textContent())?.includes("GET /v1/pets/999"));
      await page.getByRole("radio", { name: "JavaScript" }).check();
      await check(page, "404, JavaScript");
      await race(page);
      await settle(page);
      await check(page, "race");
      for (const code of [429, 503]) {
        const json = {
          code: code === 429 ? "key_banned" : "overloaded",
          message: "Try again.",
          status: code,
        };
        await page.route(
          "**/v1/pets",
          (route) => route.fulfill({ status: code, headers: { "retry-after": "9" }, json }),
        );
        page.once("dialog", (dialog) => dialog.accept());
        await paste(page, `as_test_${code}`);
        assertEquals(await status(page), `${code}`);
        await check(page, `${code}`);
      }
    });
  }

  Deno.test(`page shows all its text without script, ${colorScheme}`, async () => {
    await using visitor = await visit({
      colorScheme,
      javaScriptEnabled: false,
      viewport: { width: 390, height: 664 },
    });
    const { page } = visitor;
    assert(await page.getByRole("cell", { name: "10,000" }).isVisible());
    assert(await page.locator("#sign-up-curl").isVisible());
    assert(await page.locator("#first-curl").isVisible());
    assert(await page.locator("article#listPets").isVisible());
    assertEquals(await page.locator("#console").isVisible(), false);
    assertEquals(await page.locator("button:visible").count(), 0);
    await checkWithoutScript(visitor.origin, page);
  });
}

/** Races the limit. The page offers a race only during a minute with calls, so this calls first. */
async function race(page: Page): Promise<void> {
  for (let tries = 0; tries < 3; tries++) {
    await call(page);
    const isOffered = await page.locator("#race").click({ timeout: 2_000 }).then(() => true, () => false);
    if (isOffered) return await page.locator("#answer[data-kind=race]").waitFor();
  }
  throw new Error("No race was offered");
}

/** Asserts that axe finds nothing and nothing scrolls sideways. Most states differ only in the console. */
async function check(page: Page, state: string, within = "#console"): Promise<void> {
  await page.evaluate(axe.source);
  const results = await page.evaluate(
    // Elements that fade during a request take 150 ms to reappear.
    async ([within, values]) => {
      await Promise.all(document.getAnimations().map(({ finished }) => finished));
      return await globalThis.axe.run(within, { runOnly: { type: "tag", values } });
    },
    [within, RULES] as const,
  );
  const violations = results.violations.map(({ id, nodes }) =>
    `${state}: ${id}, ${nodes.length} times, such as ${nodes[0]?.html}: ${nodes[0]?.failureSummary}`
  );
  assertEquals(violations, []);
  const [content, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert((content ?? 0) <= (room ?? 0), `${state}: ${content} px wide`);
}

/** Checks the page without its own script. Scripts stay enabled, because axe is one. */
async function checkWithoutScript(origin: string, page: Page): Promise<void> {
  const served = await (await fetch(origin)).text();
  const html = served.replace(/<script[^]*<\/script>/, "").replace("(scripting: none)", "all");
  const other = await page.context().browser()?.newPage({
    viewport: page.viewportSize(),
    colorScheme: await page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") ? "dark" : "light",
  });
  assert(other);
  await other.route(origin + "/", (route) => route.fulfill({ contentType: "text/html", body: html }));
  await other.goto(origin);
  assertEquals(await other.locator("#console").isVisible(), false);
  await check(other, "no script", "html");
}

declare global {
  var axe: { run(within: string, options: object): Promise<import("axe-core").AxeResults> };
}
