import { assert, assertEquals } from "@std/assert";
import { wcagContrast } from "culori";
import { IDS, LIST, PATH, SHIPPED } from "../process/shipped.ts";
import { check, checkFit } from "./axe.ts";
import { answer, call, paste, PHONE, press, race, shows, signUp, SIZES, test } from "./browser.ts";
import { until, visit, WIDE } from "./browser.ts";

/** Colours of texts and prints in a hue, each after its name and its ground. */
function colours(hue: number): string[][] {
  for (const name of ["--hue", "--paper-hue"]) document.documentElement.style.setProperty(name, `${hue}`);
  const probe = document.createElement("i");
  const colour = (name: string) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  const names = ["--ink", "--soft", "--accent", "--ok", "--bad", "--wait", "--edge", "--unused"];
  return ["main", "#console"].flatMap((part) => {
    document.querySelector(part)?.append(probe);
    return ["--paper", "--well"].flatMap((ground) =>
      names.map((name) => [`${part} ${ground} ${name}`, colour(ground), colour(name)])
    );
  });
}

for (const colorScheme of ["light", "dark"] as const) {
  const title = "page keeps a contrast of 7:1 with 24 hues, and 3:1 to 4:1 of unused prints";
  test(`${title}, ${colorScheme}`, { colorScheme }, async ({ page }) => {
    for (let hue = 0; hue < 360; hue += 15) {
      for (const [name = "", ground, colour] of await page.evaluate(colours, hue)) {
        const contrast = wcagContrast(ground, colour);
        const isOfUnused = name.endsWith("--unused");
        if (isOfUnused && !name.startsWith("#console --paper")) continue;
        const least = isOfUnused || name.endsWith("--edge") ? 3 : 7;
        assert(contrast >= least && (!isOfUnused || contrast < 4.2), `${hue}: ${name} has ${contrast}`);
      }
    }
    // axe does not look at placeholders.
    const [hint, soft] = await page.locator("#filter").evaluate((field) => {
      const { color, opacity } = getComputedStyle(field, "::placeholder");
      field.style.color = "var(--soft)";
      return [`${color} ${opacity}`, getComputedStyle(field).color];
    });
    assertEquals(hint, `${soft} 1`);
  });

  for (const options of [WIDE, { ...PHONE, viewport: { width: 320, height: 568 } }]) {
    const width = `${options.viewport.width} px wide`;
    const title = `page passes the checks of axe in every state, ${colorScheme}, ${width}`;
    test(title, { colorScheme, ...options }, async ({ page }) => {
      page.on("dialog", (dialog) => dialog.accept());
      for (const summary of await page.locator("article summary").all()) await summary.click();
      for (const id of ["code", "log"]) await page.locator(`#${id} > summary`).click();
      await check(page, "first load, all details open", "html");
      if ("isMobile" in options) {
        await page.getByRole("button", { name: "Contents" }).tap();
        await check(page, "contents", "nav");
        await page.keyboard.press("Escape");
        const targets = page.locator(
          ":is(main, #bar) :is(button, summary, input, select):visible",
        );
        const small = await targets.evaluateAll((all) =>
          all.filter((target) => Math.round(target.getBoundingClientRect().height) < 44).map(({ id }) => id)
        );
        assertEquals(small, []);
      }
      await signUp(page);
      await check(page, "key created, 200");
      assertEquals(await call(page, IDS.create), "201");
      await check(page, "201");
      assertEquals(await call(page, IDS.create, { body: "[]" }), "400");
      await page.locator("#headers > summary").click();
      await check(page, "400, headers open");
      assertEquals(await call(page, IDS.get, { [SHIPPED.id]: "999" }), "404");
      await check(page, "404");
      await race(page);
      await check(page, "race");
      for (const [status, code] of [[429, "key_banned"], [503, "overloaded"]] as const) {
        await answer(page, PATH, [status, code, "Try again.", { "retry-after": "9" }]);
        await paste(page, `as_test_${status}`);
        await check(page, code);
      }
      await page.unroute(`**${PATH}`);
      await paste(page, "as_test_wrong");
      await check(page, "wrong key");
    });
  }

  const plain = { colorScheme, javaScriptEnabled: false, viewport: PHONE.viewport };
  test(`page shows all its text without script, ${colorScheme}`, plain, async ({ page }) => {
    assert(await page.getByRole("cell", { name: "10,000" }).isVisible());
    assert(await page.getByText("replace THIS_HOST with the host of this page").isVisible());
    await shows(page, {
      "#first-call": true,
      [`#${IDS.create} > [open] > pre`]: true,
      "#console": false,
      "#filter": false,
    });
    await press(page, "Contents");
    await page.locator(`#contents [href="#${IDS.get}"]`).click();
    await page.waitForURL(`**/#${IDS.get}`);
    await checkFit(page, "no script");
    for (const [width, height] of SIZES) {
      await page.setViewportSize({ width, height });
      const at = await page.locator("h1, #start > h2").evaluateAll((all) =>
        all.map((head) => head.getBoundingClientRect().x)
      );
      assertEquals([width, at[0]], [width, at[1]]);
    }
  });
}

for (
  const [name, options] of [
    ["Chromium, sign-up closed", { variables: { SIGN_UP: "closed" } }],
    ["Firefox, light", { browser: "firefox", colorScheme: "light" }],
    ["Firefox, dark", { browser: "firefox", colorScheme: "dark" }],
    ["Firefox, forced colours", { browser: "firefox", forcedColors: "active" }],
    ["Firefox, 32 px", { browser: "firefox", rootSize: 32 }],
  ] as const
) {
  test(`page fits at each size, and passes the checks of axe: ${name}`, options, async ({ page }) => {
    if ("variables" in options) {
      await shows(page, {
        "#console .filled:visible": ["Use this key"],
        "#to-make": false,
        "#reset": "use a key to race",
        "#operation option:text('Sign up')": [],
      });
    } else await signUp(page);
    // axe reads the colours that are not forced.
    const without = "forcedColors" in options ? ["color-contrast", "color-contrast-enhanced"] : [];
    for (const [width, height] of SIZES) {
      await page.setViewportSize({ width, height });
      await checkFit(page, `${width} px`);
      if (width === 1_280 || width === 640) await check(page, `${width} px`, "html", without);
    }
  });
}

test("page is usable with only the keyboard up to the first call, and says what comes back", async ({ page }) => {
  const tabTo = async (selector: string) => {
    for (let count = 0; count < 60; count++) {
      await page.keyboard.press("Tab");
      if (await page.locator(`${selector}:focus`).count() > 0) return;
    }
    throw new Error(`No Tab leads to ${selector}`);
  };
  await page.keyboard.press("Tab");
  await shows(page, { ":focus": "Skip to the content" });
  await page.keyboard.press("Enter");
  await tabTo("#name");
  await page.keyboard.type("Zoë");
  await page.keyboard.press("Enter");
  await page.locator("#send:focus").waitFor();
  await shows(page, { "#news": /^Copy it: only this tab has it\. 200 OK .*There are none yet\.$/ });
  await tabTo(`#form-${IDS.list} [name=limit]`);
  await page.keyboard.type("5");
  await page.keyboard.press("Enter");
  await until(page, "#news", `${LIST}?limit=5`);
});

for (const { viewport } of [WIDE, PHONE]) {
  test(`page shifts nothing while it loads, ${viewport.width} px wide`, { viewport }, async ({ page }) => {
    const shifts = await page.evaluate(() =>
      new Promise<(PerformanceEntry & { value?: number })[]>((resolve) => {
        const observer = new PerformanceObserver((list) => resolve(list.getEntries()));
        observer.observe({ type: "layout-shift", buffered: true });
        setTimeout(() => resolve([]), 500);
      })
    );
    assert(shifts.reduce((sum, { value = 0 }) => sum + value, 0) < 0.02);
  });
}

const STILL = { reducedMotion: "reduce" } as const;
test("page changes nothing while idle, and moves nothing if that is preferred", STILL, async ({ page }) => {
  await page.clock.install();
  await page.reload();
  await page.evaluate(() => {
    globalThis.changes = 0;
    const all = { subtree: true, childList: true, attributes: true, characterData: true };
    new MutationObserver(({ length }) => globalThis.changes += length).observe(document, all);
  });
  const changesIn = async (ms: number) => {
    const before = await page.evaluate(() => globalThis.changes);
    await page.clock.runFor(ms);
    return await page.evaluate(() => globalThis.changes) - before;
  };
  assertEquals(await changesIn(10_000), 0);
  await signUp(page);
  // Until now, the clock followed the real time.
  await page.clock.pauseAt(await page.evaluate(() => Date.now() + 1_000));
  const counting = await changesIn(5_000);
  // One change a second, and a few more if the minute ends.
  assert(counting > 0 && counting <= 12, `${counting}`);
  await page.clock.runFor(61_000);
  assertEquals(await changesIn(60_000), 0);
  const durations = await page.locator("*").evaluateAll((all) =>
    all.map((one) => getComputedStyle(one).transitionDuration)
  );
  assertEquals(new Set(durations), new Set(["0s"]));
});

Deno.test("page has seven sizes of type that follow the reader's own, and is readable on paper", async () => {
  const sizes = async (rootSize: number) => {
    await using visitor = await visit({ rootSize, ...WIDE });
    const { page } = visitor;
    await signUp(page);
    await page.emulateMedia({ media: "print" });
    const shown = await page.locator("article details > :not(summary, .tools)").evaluateAll((all) =>
      all.map((part) => [part.checkVisibility(), part.matches(".errors > *")])
    );
    assert(shown.length > 40 && shown.every(([isShown, isOfErrors]) => isShown !== isOfErrors));
    if (rootSize === 16) {
      const margin = { top: "1cm", right: "1cm", bottom: "1cm", left: "1cm" };
      const pages = new TextDecoder("latin1").decode(await page.pdf({ format: "A4", margin })).match(
        /\/Type \/Page\b/g,
      );
      assert(pages && pages.length <= 18, `${pages?.length} pages`);
    }
    await shows(page, { ":is(#console, nav):visible": [] });
    await page.emulateMedia({ media: "screen" });
    const sizes = await page.locator("body :not(script, option, optgroup)").evaluateAll((all) =>
      all.filter(({ childNodes }) => [...childNodes].some((node) => node instanceof Text && node.data.trim()))
        .map((element) => parseFloat(getComputedStyle(element).fontSize))
    );
    return [...new Set(sizes)].sort((one, other) => one - other);
  };
  const [own, large] = [await sizes(16), await sizes(32)];
  assertEquals(own.length, 7, `${own}`);
  // The name also follows the width.
  assertEquals(large.slice(0, -1), own.slice(0, -1).map((size) => size * 2));
});

test("page tells prints apart by form with forced colours", { forcedColors: "active" }, async ({ page }) => {
  const looks = await page.locator("#legend svg, #prints > :first-child").evaluateAll((prints) =>
    prints.map((print) => {
      const style = getComputedStyle(print);
      const isCrossed = style.getPropertyValue("--cross") !== "";
      return `${style.fill === "none"} ${style.stroke === "none"} ${style.scale} ${isCrossed || style.color}`;
    })
  );
  assertEquals(new Set(looks).size, 5, looks.join("\n"));
  const [locked, ready] = await page.locator("#race, #to-make, #send").evaluateAll((buttons) =>
    ["[aria-disabled]", ":not([aria-disabled])"].map((state) =>
      buttons.filter((button) => button.matches(state)).map((button) => getComputedStyle(button).color)
    )
  );
  assertEquals([locked?.length, locked?.filter((color) => ready?.includes(color))], [1, []]);
});

test("page keeps its logo beside a long title, and Send as wide as its text", async ({ page }) => {
  const sizes = await page.evaluate(() => {
    for (const home of document.querySelectorAll(".home")) {
      home.append(" of an office with a name of many words");
    }
    const send = document.querySelector("#send");
    send?.replaceChildren("Wait 100 min");
    const logo = document.querySelector("nav .home svg")?.getBoundingClientRect();
    return [logo?.width, logo?.height, (send?.scrollWidth ?? 0) > (send?.clientWidth ?? 0)];
  });
  assertEquals(sizes, [28, 28, false]);
});

declare global {
  var changes: number;
}
