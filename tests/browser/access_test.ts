import { assert, assertEquals, assertMatch } from "@std/assert";
import { Buffer } from "node:buffer";
import type { Page } from "playwright-core";
import { check, openAll } from "./axe.ts";
import { IDS, LIST, PATH, SHIPPED } from "../process/shipped.ts";
import { call, choose, paste, settle, signUp, SIZES, status, visit } from "./browser.ts";

const MAX_HEIGHT = 7_000;
const MAX_PAGES = 8;

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
  await tabTo(`#request-${IDS.list} [name=limit]`);
  await page.keyboard.type("5");
  await page.keyboard.press("Enter");

  await page.locator("#answer-head", { hasText: LIST }).waitFor();
  await settle(page);
  const shown = await page.locator("#answer-head, #answer-message, #answer-todo").allTextContents();
  const said = shown.map((text) => text.trim()).filter((text) => text !== "").join(". ");
  assertEquals(await page.locator("#announcement").textContent(), said);
});

Deno.test("page marks the current section in its contents", async () => {
  await using visitor = await visit({ viewport: { width: 1280, height: 800 } });
  const { page } = visitor;
  for (const name of ["Limits", "Operations", "Health", "Retries"]) {
    await page.locator("#contents").getByRole("link", { name }).click();
    await page.locator("#contents [aria-current]", { hasText: name }).waitFor();
    assertEquals(await page.locator("#contents [aria-current]").count(), 1);
  }
  await page.goto(`${visitor.origin}/#error-rate_limit_minute`);
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

Deno.test("page prints the reference of every operation, and its text in one size", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  await page.emulateMedia({ media: "print" });
  const articles = page.locator("details.operation:not([open]) > article");
  const shown = await articles.evaluateAll((all) => all.map((article) => article.checkVisibility()));
  assertEquals(shown, Array(await page.locator("#operation option").count()).fill(true));
  const sizes = await page.locator(".words").locator("p, li, td, dt, dd, pre, code").evaluateAll((all) =>
    new Set(all.filter((text) => text.className !== "lead").map((text) => getComputedStyle(text).fontSize))
      .size
  );
  assertEquals(sizes, 1);
});

Deno.test("page has no transitions and animations for visitors who prefer reduced motion", async () => {
  await using visitor = await visit({ reducedMotion: "reduce" });
  const { page } = visitor;
  const limited = { "retry-after": "9" };
  await page.route(`**${PATH}`, (route) => route.fulfill({ status: 503, headers: limited, json: {} }));
  await paste(page, "as_test_a");
  assertMatch(await page.locator("#send").textContent() ?? "", /^Wait/);

  const durations = await page.evaluate(() =>
    [...document.querySelectorAll("*")].flatMap((element) =>
      [null, "::before", "::after"].map((part) => getComputedStyle(element, part).transitionDuration)
    )
  );

  assertEquals(durations.filter((duration) => duration !== "0s"), []);
  assertEquals(await page.evaluate(() => document.getAnimations().length), 0);
});

Deno.test("page changes nothing in the document while it is idle, and a second's text while it counts", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  await page.clock.install();
  await page.reload();
  const changesIn = async (ms: number) => {
    await page.evaluate(() => {
      globalThis.changes = 0;
      globalThis.observer?.disconnect();
      globalThis.observer = new MutationObserver((records) => globalThis.changes += records.length);
      globalThis.observer.observe(document, {
        subtree: true,
        childList: true,
        attributes: true,
        characterData: true,
      });
    });
    await page.clock.runFor(ms);
    return await page.evaluate(() => globalThis.changes);
  };
  assertEquals(await changesIn(10_000), 0);
  await signUp(page);
  await page.clock.pauseAt(await page.evaluate(() => Date.now() + 1_000)); // Until now, it followed the real time.
  const counting = await changesIn(5_000);
  assert(counting > 0 && counting <= 6, `${counting}`);
  await page.clock.runFor(60_000);
  assertEquals(await page.locator("#minute-end").textContent(), "");
  assertEquals(await changesIn(60_000), 0);
});

Deno.test("page has seven sizes of type, and all of them follow the reader's own size", async () => {
  const sizes = async (rootSize: number) => {
    await using visitor = await visit({ rootSize, viewport: { width: 1280, height: 800 } });
    const { page } = visitor;
    await signUp(page);
    await openAll(page);
    const [content, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert((content ?? 0) <= (room ?? 0), `${content} px wide at ${rootSize} px`);
    return await page.evaluate(() => {
      const texts = [...document.querySelectorAll("body *:not(script, option, optgroup)")].filter((element) =>
        [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.textContent?.trim())
      );
      return [...new Set(texts.map((element) => parseFloat(getComputedStyle(element).fontSize)))].sort((
        one,
        other,
      ) => one - other);
    });
  };
  const [own, large] = [await sizes(16), await sizes(32)];
  assertEquals([own.length, large.length], [7, 7]);
  // The name also follows the width.
  assertEquals(large.slice(0, -1), own.slice(0, -1).map((size) => size * 2));
});

for (const colorScheme of ["light", "dark"] as const) {
  Deno.test(`page shows each kind of print by its lightness and its form, ${colorScheme}`, async () => {
    await using visitor = await visit({ colorScheme });
    const { page } = visitor;
    const looks = await page.evaluate(() => {
      const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
      /** Relative luminance of a colour (WCAG 2). */
      const luminance = (colour: string) => {
        if (!canvas) throw new Error("There is no canvas");
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        const [red = 0, green = 0, blue = 0] = [...canvas.getImageData(0, 0, 1, 1).data].map((byte) => {
          const value = byte / 255;
          return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
      };
      const contrast = (one: string, other: string) => {
        const [low = 0, high = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
        return (high + 0.05) / (low + 0.05);
      };
      const style = (selector: string, part?: string) =>
        getComputedStyle(document.querySelector(selector) ?? document.body, part);
      const ground = style("#console").backgroundColor;
      const unused = style("#admitted > span").color;
      const legend = (kind: string) => style(`#legend .${kind} svg`);
      return {
        unused: contrast(unused, ground),
        ok: contrast(style("#legend .ok").color, unused),
        page: contrast(style("html").backgroundColor, ground),
        theme: contrast(
          style("html").backgroundColor,
          [...document.querySelectorAll<HTMLMetaElement>("meta[name=theme-color]")].find(({ media }) =>
            matchMedia(media).matches
          )?.content ?? "",
        ),
        outlined: [legend("refused").fill, legend("refused").stroke !== "none"],
        plain: legend("ok").stroke,
      };
    });
    assert(looks.unused >= 3 && looks.unused < 4, `unused: ${looks.unused}`);
    assert(looks.ok >= 2, `used: ${looks.ok}`);
    assert(looks.page >= 1.4, `console: ${looks.page}`);
    assertEquals(looks.theme, 1);
    assertEquals([looks.outlined, looks.plain], [["rgba(0, 0, 0, 0)", true], "none"]);
    await assertCrossed(page);
  });
}

Deno.test("page can be used with forced colours", async () => {
  await using visitor = await visit({ forcedColors: "active" });
  const { page } = visitor;
  const look = (selector: string, name: string) =>
    page.locator(selector).first().evaluate(
      (element, name) => getComputedStyle(element).getPropertyValue(name),
      name,
    );
  const filled = await look("#make-key", "background-color");
  assert(await look("#race", "color") !== await look("#send", "color"));
  assert(filled !== await look("#send", "background-color") && !filled.includes("oklch"), filled);
  await signUp(page);
  assertEquals(await look("#send", "background-color"), filled);
  assert(await look("#admitted .ok svg", "fill") !== await look("#admitted :not(.ok) svg", "fill"));
  assertEquals(await look(".tabs :checked + span", "border-bottom-width"), "2px");
  assertEquals(await look("#requests input:visible", "border-bottom-style"), "dashed");
  // axe reads the colours that are not forced.
  await check(page, "forced colours", "html", ["color-contrast", "color-contrast-enhanced"]);
  await assertCrossed(page);
});

/** Asserts that the print of a failed request has a cross, and no other has. Removes it. */
async function assertCrossed(page: Page): Promise<void> {
  const pictures = () =>
    Promise.all(["ok", "bad", "refused"].map((kind) => page.locator(`#legend .${kind}`).screenshot()));
  const before = await pictures();
  await page.locator("#print .cross").evaluate((cross) => cross.remove());
  const after = await pictures();
  assertEquals(before.map((picture, index) => Buffer.compare(picture, after[index] ?? picture) === 0), [
    true,
    false,
    true,
  ]);
}

for (const colorScheme of ["light", "dark"] as const) {
  for (const [width, height] of SIZES.filter(([width]) => width === 320 || width === 1_280)) {
    Deno.test(`page passes the checks of axe in every state, ${colorScheme}, ${width} px wide`, async () => {
      const isMobile = width < 1_000;
      const options = { colorScheme, viewport: { width, height }, hasTouch: isMobile, isMobile };
      await using visitor = await visit(options);
      const { page } = visitor;
      await openAll(page);
      await check(page, "first load, all operations open", "html");
      await page.context().setOffline(true);
      await page.locator("#make-key").click();
      await page.locator("#key-note.fault", { hasText: "No response" }).waitFor();
      await page.locator("#send").click();
      await page.locator("#answer[data-kind='0']").waitFor();
      await check(page, "no response");
      await page.context().setOffline(false);
      await page.getByRole("button", { name: "I have a key" }).click();
      await check(page, "a key to paste");
      await page.locator("#make-one").click();
      await signUp(page);
      await check(page, "key created, 200");
      await choose(page, IDS.create);
      assertEquals(await call(page), "201");
      await page.locator("#answer-headers summary").click();
      await check(page, "201, headers open");
      await page.locator(`#request-${IDS.create} textarea`).fill("[]");
      assertEquals(await call(page), "400");
      await check(page, "400");
      await choose(page, IDS.get);
      await page.locator(`#request-${IDS.get} [name=${SHIPPED.id}]`).fill("999");
      assertEquals(await call(page), "404");
      assert((await page.locator("#answer-head").textContent())?.includes(`${LIST}/999`));
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
          `**${PATH}`,
          (route) => route.fulfill({ status: code, headers: { "retry-after": "9" }, json }),
        );
        page.once("dialog", (dialog) => dialog.accept());
        await paste(page, `as_test_${code}`);
        assertEquals(await status(page), `${code}`);
        await check(page, `${code}`);
      }
      await page.unroute(`**${PATH}`);
      await paste(page, "as_test_wrong");
      await check(page, "401, back at the form");
      const json = { code: "sign_up_limit", message: "At most 5 accounts can be created.", status: 429 };
      await page.route(
        "**/v1/accounts",
        (route) => route.fulfill({ status: 429, headers: { "retry-after": "600" }, json }),
      );
      await page.locator("#make-one").click();
      await page.locator("#make-key").click();
      await page.locator("#make-key", { hasText: "Wait 10 min" }).waitFor();
      await check(page, "sign-up limit");
    });
  }

  Deno.test(`page fits and passes the checks of axe at other widths, zoomed, and if sign-up is closed, ${colorScheme}`, async () => {
    await using visitor = await visit({ colorScheme }, { SIGN_UP: "closed" });
    const { page } = visitor;
    await openAll(page);
    await paste(page, "as_test_wrong");
    // At 200 %, 1280 by 800 px are 640 by 400.
    for (
      const [width, height] of [...SIZES.filter(([width]) => width !== 320 && width !== 1_280), [
        640,
        400,
      ]] as const
    ) {
      await page.setViewportSize({ width, height });
      await check(page, `${width} px`, "html");
    }
  });

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
    assert(await page.getByText("replace THIS_HOST with the host of this page").isVisible());
    await page.locator(`details:has(#${IDS.list}) > summary`).click();
    assert(await page.locator(`article#${IDS.list}`).isVisible());
    assertEquals(await page.locator("#console").isVisible(), false);
    assertEquals(await page.locator("button:visible").count(), 0);
    await checkWithoutScript(visitor.origin, page);
  });
}

/** Races the limit. The page offers a race only during a minute with calls, so this calls first. */
async function race(page: Page): Promise<void> {
  for (let tries = 0; tries < 3; tries++) {
    await call(page);
    const isOffered = await page.locator("#race").getAttribute("aria-disabled") === null;
    if (!isOffered) continue;
    await page.locator("#race").click();
    return await page.locator("#answer[data-kind=race]").waitFor();
  }
  throw new Error("No race was offered");
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
  await openAll(other);
  await check(other, "no script", "html");
}

declare global {
  var changes: number;
  var observer: MutationObserver | undefined;
}
