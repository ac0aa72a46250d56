import { assertEquals, assertMatch } from "@std/assert";
import { call, choose, paste, prints, roomInMinute, settle, signUp, status, visit } from "./browser.ts";

Deno.test("page works in Firefox: first call, faults, links, race, and back after a 401", async () => {
  await roomInMinute();
  await using visitor = await visit({ browser: "firefox", viewport: { width: 1280, height: 800 } });
  const { page } = visitor;
  assertMatch(await signUp(page), /^as_test_\w{38}$/);
  assertEquals([await status(page), await page.locator("#answer-body").textContent()], ["200", "[]"]);
  await choose(page, "createPet");
  await page.locator("#request-createPet textarea").fill("{}");
  assertEquals(await call(page), "400");
  assertEquals(await page.locator("#requests [aria-invalid]").count(), 1);
  await page.locator("details:has(#getAccount) > summary").click();
  await page.locator("#getAccount .try").click();
  assertEquals(await page.locator("#operation").inputValue(), "getAccount");
  assertEquals(await call(page), "200");

  await page.getByRole("button", { name: "Race the limit" }).click();
  await page.locator("#answer[data-kind=race]").waitFor();
  await settle(page);

  assertMatch(
    await page.locator("#answer-head").textContent() ?? "",
    /^\d+ admitted, 12 refused, none over,/,
  );
  const { refused, bad } = await prints(page);
  assertEquals([refused, bad], [12, 1]);
  page.on("dialog", (dialog) => dialog.accept());
  await paste(page, "as_test_wrong");
  await page.locator("#key-note.fault").waitFor();
  assertEquals(await page.locator(":focus").getAttribute("id"), "key-input");
});

Deno.test("page fits in Firefox on a narrow dark screen, and with a reader's 32 px", async () => {
  for (const [width, rootSize, colorScheme] of [[320, 16, "dark"], [1280, 32, "light"]] as const) {
    await using visitor = await visit({
      browser: "firefox",
      colorScheme,
      rootSize,
      viewport: { width, height: 700 },
    });
    const { page } = visitor;
    await signUp(page);
    for (const summary of await page.locator("details.operation > summary").all()) await summary.click();

    const { content, room, size, scheme } = await page.evaluate(() => ({
      content: document.documentElement.scrollWidth,
      room: innerWidth,
      size: getComputedStyle(document.body).fontSize,
      scheme: matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light",
    }));

    assertEquals([size, scheme, content <= room], [`${rootSize}px`, colorScheme, true]);
  }
});
