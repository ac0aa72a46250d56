import { assert, assertEquals, assertMatch } from "@std/assert";
import { check, checkFit, openAll } from "./axe.ts";
import { IDS } from "../process/shipped.ts";
import {
  armEach,
  call,
  choose,
  isInView,
  paste,
  prints,
  roomInMinute,
  settle,
  signUp,
  SIZES,
  status,
  visit,
} from "./browser.ts";

Deno.test("page works in Firefox: first call, faults, race, and back after a 401", async () => {
  await roomInMinute();
  await using visitor = await visit({ browser: "firefox", viewport: { width: 1280, height: 800 } });
  const { page } = visitor;
  assertMatch(await signUp(page), /^as_test_\w{38}$/);
  assertEquals([await status(page), await page.locator("#answer-body").textContent()], ["200", "[]"]);
  await choose(page, IDS.create);
  await page.locator(`#request-${IDS.create} textarea`).fill("[]");
  assertEquals(await call(page), "400");
  assertEquals(await page.locator("#requests [aria-invalid]").count(), 1);
  await check(page, "400");

  await page.getByRole("button", { name: "Race the limit" }).click();
  await page.locator("#answer[data-kind=race]").waitFor();
  await settle(page);

  assertMatch(
    await page.locator("#answer-head").textContent() ?? "",
    /^\d+ admitted, 12 refused, none over,/,
  );
  const { refused, bad } = await prints(page);
  assertEquals([refused, bad], [12, 1]);
  await check(page, "race");
  page.on("dialog", (dialog) => dialog.accept());
  await paste(page, "as_test_wrong");
  await page.locator("#key-note.fault").waitFor();
  assertEquals(await page.locator(":focus").getAttribute("id"), "key-input");
  await check(page, "401");
});

Deno.test("page arms the operation of each link in Firefox", async () => {
  await using visitor = await visit({ browser: "firefox" });
  const { page } = visitor;
  for (const [width, height] of SIZES.slice(-3)) {
    await page.setViewportSize({ width, height });
    await page.goto(visitor.origin);
    await armEach(page);
  }
});

for (
  const [name, options] of [
    ["light", { colorScheme: "light" }],
    ["dark", { colorScheme: "dark" }],
    ["forced colours", { forcedColors: "active" }],
    ["32 px", { rootSize: 32 }],
  ] as const
) {
  Deno.test(`page fits at each width and passes the checks of axe in Firefox, ${name}`, async () => {
    await using visitor = await visit({ browser: "firefox", ...options });
    const { page } = visitor;
    const seen = await page.evaluate(() => ({
      dark: matchMedia("(prefers-color-scheme: dark)").matches,
      "forced colours": matchMedia("(forced-colors: active)").matches,
      "32 px": getComputedStyle(document.body).fontSize === "32px",
      light: true,
    }));
    assert(seen[name]);
    await signUp(page);
    await openAll(page);
    // axe reads the colours that are not forced.
    const without = name === "forced colours" ? ["color-contrast", "color-contrast-enhanced"] : [];
    for (const [width, height] of SIZES) {
      await page.setViewportSize({ width, height });
      await checkFit(page, `${width} px`);
      if (width === 1_280) await check(page, `${width} px`, "html", without);
    }
    assert(await isInView(page, "#key"));
  });
}
