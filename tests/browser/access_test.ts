import { assert, assertEquals, assertMatch } from "@std/assert";
import { IDS, LIST, PATH, SHIPPED } from "../process/shipped.ts";
import { check, checkFit } from "./axe.ts";
import { answer, call, paste, settle, signUp, SIZES, text, visit } from "./browser.ts";

const WIDE = { viewport: { width: 1280, height: 800 } };

/** Contrasts (WCAG 2) of the page's texts and prints, by what they are of. */
function contrasts() {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
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
  const probe = document.body.appendChild(document.createElement("i"));
  const colour = (parent: string, name: string) => {
    document.querySelector(parent)?.append(probe);
    probe.style.color = `var(${name})`;
    return luminance(getComputedStyle(probe).color);
  };
  const found: [string, number][] = [];
  for (const parent of ["main", "#console"]) {
    for (const ground of ["--paper", "--well"]) {
      for (const name of ["--ink", "--soft", "--accent", "--ok", "--bad", "--wait", "--edge", "--unused"]) {
        const [low = 0, high = 0] = [colour(parent, ground), colour(parent, name)].sort((one, other) =>
          one - other
        );
        found.push([`${parent} ${ground} ${name}`, (high + 0.05) / (low + 0.05)]);
      }
    }
  }
  probe.remove();
  return found;
}

for (const colorScheme of ["light", "dark"] as const) {
  Deno.test(`page keeps a contrast of 7:1 with 24 hues, and 3:1 to 4:1 of unused prints, ${colorScheme}`, async () => {
    await using visitor = await visit({ colorScheme });
    for (let hue = 0; hue < 360; hue += 15) {
      await visitor.page.evaluate((hue) => {
        for (const name of ["--hue", "--paper-hue"]) {
          document.documentElement.style.setProperty(name, `${hue}`);
        }
      }, hue);
      for (const [name, contrast] of await visitor.page.evaluate(contrasts)) {
        const least = /unused|edge/.test(name) ? 3 : 7;
        if (/unused/.test(name) && !/console --paper/.test(name)) continue;
        assert(contrast >= least, `${hue}: ${name} has ${contrast}`);
        if (/unused/.test(name)) assert(contrast < 4.2, `${hue}: ${name} has ${contrast}`);
      }
    }
  });

  for (const [width, height] of [[320, 568], [1280, 800]] as const) {
    Deno.test(`page passes the checks of axe in every state, ${colorScheme}, ${width} px wide`, async () => {
      const isMobile = width < 1_000;
      await using visitor = await visit({
        colorScheme,
        viewport: { width, height },
        hasTouch: isMobile,
        isMobile,
      });
      const { page } = visitor;
      page.on("dialog", (dialog) => dialog.accept());
      for (const summary of await page.locator("article summary").all()) await summary.click();
      for (const id of ["code", "log"]) await page.locator(`#${id} > summary`).click();
      await check(page, "first load, all details open", "html");
      if (isMobile) {
        await page.getByRole("button", { name: "Contents" }).tap();
        await check(page, "contents", "nav");
        await page.keyboard.press("Escape");
        const heights = await page.locator("main, #bar").locator(
          "button:visible, summary:visible, input:visible, select:visible",
        )
          .evaluateAll((all) =>
            all.filter((target) => target.getAttribute("type") !== "radio").map((target) =>
              Math.round(target.getBoundingClientRect().height)
            )
          );
        assertEquals(heights.filter((height) => height < 44), []);
      }
      await page.context().setOffline(true);
      await page.locator("#make").click();
      await page.locator("#key-note.bad").waitFor();
      await check(page, "no key, no response");
      await page.context().setOffline(false);
      await signUp(page);
      await check(page, "key created, 200");
      assertEquals(await call(page, IDS.create), "201");
      await check(page, "201");
      assertEquals(await call(page, IDS.create, { body: "[]" }), "400");
      await page.locator("#headers > summary").click();
      await check(page, "400, headers open");
      assertEquals(await call(page, IDS.get, { [SHIPPED.id]: "999" }), "404");
      await check(page, "404");
      await page.locator("#race").click();
      await page.locator("[data-kind=race]").waitFor();
      await settle(page);
      await check(page, "race");
      for (const [status, code] of [[429, "key_banned"], [503, "overloaded"]] as const) {
        await page.unroute(`**${PATH}`);
        await answer(page, PATH, [status, code, "Try again.", { "retry-after": "9" }]);
        await paste(page, `as_test_${status}`);
        await check(page, code);
      }
      await page.unroute(`**${PATH}`);
      await paste(page, "as_test_wrong");
      await check(page, "wrong key");
    });
  }

  Deno.test(`page shows all its text without script, ${colorScheme}`, async () => {
    await using visitor = await visit({
      colorScheme,
      javaScriptEnabled: false,
      viewport: { width: 390, height: 844 },
    });
    const { page } = visitor;
    assert(await page.getByRole("cell", { name: "10,000" }).isVisible());
    assert(await page.locator("#first-call").isVisible());
    assert(await page.getByText("replace THIS_HOST with the host of this page").isVisible());
    assert(await page.locator(`#${IDS.create}-201`).isVisible());
    assertEquals(await page.locator("#console, #filter").locator("visible=true").count(), 0);
    await page.getByRole("button", { name: "Contents" }).click();
    await page.locator(`#contents [href="#${IDS.get}"]`).click();
    assertEquals(new URL(page.url()).hash, `#${IDS.get}`);
    await checkFit(page, "no script");
  });
}

for (
  const [name, options] of [
    ["Chromium, sign-up closed", {}],
    ["Firefox, light", { browser: "firefox", colorScheme: "light" }],
    ["Firefox, dark", { browser: "firefox", colorScheme: "dark" }],
    ["Firefox, forced colours", { browser: "firefox", forcedColors: "active" }],
    ["Firefox, 32 px", { browser: "firefox", rootSize: 32 }],
  ] as const
) {
  Deno.test(`page fits at each size, and passes the checks of axe: ${name}`, async () => {
    await using visitor = await visit(options, name.includes("closed") ? { SIGN_UP: "closed" } : {});
    const { page } = visitor;
    if (!name.includes("closed")) await signUp(page);
    for (const [width, height] of SIZES) {
      await page.setViewportSize({ width, height });
      await checkFit(page, `${width} px`);
      // axe reads the colours that are not forced.
      const without = name.includes("forced") ? ["color-contrast", "color-contrast-enhanced"] : [];
      if (width === 1_280 || width === 640) await check(page, `${width} px`, "html", without);
    }
  });
}

Deno.test("page is usable with only the keyboard up to the first call, and says what comes back", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  const tabTo = async (selector: string) => {
    for (let count = 0; count < 60; count++) {
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
  await page.locator("#send:focus").waitFor();
  assertMatch(
    await text(page, "#news"),
    /^Copy it: only this tab has it\. 200 OK .*There are none yet\.$/,
  );
  await tabTo(`#form-${IDS.list} [name=limit]`);
  await page.keyboard.type("5");
  await page.keyboard.press("Enter");
  await page.locator("#news", { hasText: `${LIST}?limit=5` }).waitFor();
});

Deno.test("page shifts nothing while it loads", async () => {
  for (const viewport of [WIDE.viewport, { width: 390, height: 844 }]) {
    await using visitor = await visit({ viewport });
    const { page } = visitor;
    const shifts = await page.evaluate(() =>
      new Promise<number>((resolve) => {
        const sum = (list: PerformanceObserverEntryList) =>
          resolve(
            list.getEntries().reduce(
              (sum, entry) => sum + (entry as PerformanceEntry & { value: number }).value,
              0,
            ),
          );
        new PerformanceObserver(sum).observe({ type: "layout-shift", buffered: true });
        setTimeout(() => resolve(0), 500);
      })
    );
    assert(shifts < 0.02, `${shifts}`);
  }
});

Deno.test("page changes nothing in the document while it is idle, and moves nothing for visitors who prefer that", async () => {
  await using visitor = await visit({ reducedMotion: "reduce" });
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
  // One change a second, and a few more if the minute ends.
  assert(counting > 0 && counting <= 12, `${counting}`);
  await page.clock.runFor(61_000);
  assertEquals(await changesIn(60_000), 0);
  const durations = await page.locator("*").evaluateAll((all) =>
    all.map((one) => getComputedStyle(one).transitionDuration)
  );
  assertEquals(durations.filter((duration) => duration !== "0s"), []);
});

Deno.test("page has seven sizes of type that follow the reader's own, and is readable on paper", async () => {
  const sizes = async (rootSize: number) => {
    await using visitor = await visit({ rootSize, ...WIDE });
    const { page } = visitor;
    await signUp(page);
    await page.emulateMedia({ media: "print" });
    const shown = await page.locator("article details:not([open]) dl").evaluateAll((all) =>
      all.map((list) => list.checkVisibility())
    );
    assertEquals(new Set(shown), new Set([true]));
    assertEquals(await page.locator("#console, nav").locator("visible=true").count(), 0);
    await page.emulateMedia({ media: "screen" });
    return await page.evaluate(() => {
      const texts = [...document.querySelectorAll("body *:not(script, option, optgroup)")].filter((element) =>
        [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.textContent?.trim())
      );
      const sizes = new Set(texts.map((element) => parseFloat(getComputedStyle(element).fontSize)));
      return [...sizes].sort((one, other) => one - other);
    });
  };
  const [own, large] = [await sizes(16), await sizes(32)];
  assertEquals(own.length, 7, `${own}`);
  // The name also follows the width.
  assertEquals(large.slice(0, -1), own.slice(0, -1).map((size) => size * 2));
});

Deno.test("page shows each kind of print by its form, also with forced colours", async () => {
  await using visitor = await visit({ forcedColors: "active" });
  const { page } = visitor;
  const looks = await page.evaluate(() => {
    const prints = [...document.querySelectorAll<SVGElement>("#legend svg")];
    document.querySelector("#prints")?.prepend(...prints.map((print) => print.cloneNode(true)));
    return [...document.querySelectorAll("#prints > svg")].slice(0, 5).map((print) => {
      const { fill, stroke, scale, color } = getComputedStyle(print);
      const cross = getComputedStyle(print).getPropertyValue("--cross") !== "";
      return JSON.stringify([fill !== "none", stroke !== "none", scale, cross || color]);
    });
  });
  assertEquals(new Set(looks).size, 5, looks.join("\n"));
});

declare global {
  var changes: number;
  var observer: MutationObserver | undefined;
}
