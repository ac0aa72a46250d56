import { assert, assertEquals, assertMatch } from "@std/assert";
import type { Page } from "playwright-core";
import { runCommand } from "../process/process.ts";
import { IDS, PATH, SHIPPED } from "../process/shipped.ts";
import { call, choose, isInView, paste, prints, roomInMinute, signUp, visit } from "./browser.ts";

/** In ms. */
const MINUTE = 60_000;

/** Whether the page offers a race. */
async function isOffered(page: Page): Promise<boolean> {
  return await page.locator("#race").getAttribute("aria-disabled") === null;
}

/** Numbers of requests that were answered and refused, according to the page. */
function outcome(head: string): number[] {
  const [, ...numbers] = /^(\d+) admitted, (\d+) refused, none over, in \d+ ms$/.exec(head) ?? [];
  return numbers.map(Number);
}

Deno.test("page races the limit of a free plan once a minute, without excess or a ban", async () => {
  await roomInMinute();
  await using visitor = await visit({
    viewport: { width: 390, height: 664 },
    hasTouch: true,
    isMobile: true,
  });
  const { page } = visitor;
  const race = page.getByRole("button", { name: "Race the limit" });
  const note = page.locator("#race-note");
  assertEquals([await isOffered(page), await note.textContent()], [false, "Ready after your first request."]);
  const key = await signUp(page);
  assertEquals(await isOffered(page), true);
  // The form of the Send button, because the button sticks to the bar when the page scrolls.
  const sendAt = () => page.locator("#call").evaluate((form) => form.getBoundingClientRect().top + scrollY);
  const before = await sendAt();
  const seen = page.locator("#prints").evaluate((prints) =>
    new Promise((resolve) =>
      new MutationObserver(() => {
        const { top, bottom } = prints.getBoundingClientRect();
        resolve(top >= 0 && bottom <= innerHeight);
      }).observe(prints, { subtree: true, attributeFilter: ["class"] })
    )
  );

  await race.click();
  await page.locator("#answer[data-kind=race]").waitFor();
  assertEquals(await seen, true);

  const head = (await page.locator("#answer-head").textContent() ?? "").trim();
  assertEquals(outcome(head), [59, 12]);
  assertEquals(await prints(page), { ok: 60, refused: 12 });
  assertEquals(await page.locator("#minute").textContent(), "0 of 60 left");
  assertEquals(await page.locator("#day").textContent(), "940 of 1,000 today");
  assertMatch(await page.locator("#send").textContent() ?? "", /^Wait \d+ s$/);
  assertEquals([await isOffered(page), await note.textContent()], [false, "Again in the next minute."]);
  assertEquals(await sendAt(), before);
  const delays = await page.locator("#prints .ok, #prints .refused").evaluateAll((all) =>
    all.map((print) => parseFloat((print as HTMLElement).style.transitionDelay))
  );
  assert(Math.max(...delays) > 60 && delays.every((delay) => delay <= 72 * 12), `${delays}`);
  await page.waitForFunction(() => {
    const { top = -1, bottom = 0 } = document.querySelector("#answer-message")?.getBoundingClientRect() ?? {};
    return top >= 0 && bottom <= innerHeight;
  });
  assert(await isInView(page, "#answer-head"));
  const said = await page.locator("#announcement").textContent() ?? "";
  assert(said.startsWith(head) && said.includes("are banned"), said);
  assertMatch(
    await page.locator("#prints").getAttribute("aria-label") ?? "",
    /^0 of 60 requests left this minute: 60 succeeded, 0 failed, 0 came from other clients; 12 were refused$/,
  );
  let sent = 0;
  page.on("request", () => sent++);
  await race.press("Enter");
  assertEquals(sent, 0);
  const account = await fetch(`${visitor.origin}/v1/account`, {
    headers: { authorization: `Bearer ${key}` },
  });
  assertEquals((await account.json()).code, "rate_limit_minute");

  page.on("dialog", (dialog) => dialog.accept());
  await paste(page, "as_test_another");
  assertEquals(await prints(page), { "": 60 });
  assertEquals(await page.locator("#minute").textContent(), "60 requests a minute");
});

Deno.test("page races the limit of a pro plan when few requests left this minute", async () => {
  await roomInMinute();
  const folder = await Deno.makeTempDir();
  const variables = { KV_PATH: `${folder}/store` };
  await using visitor = await visit({ viewport: { width: 1280, height: 800 } }, variables);
  const { page, origin } = visitor;
  const { stdout } = await runCommand(["accounts", "create", "tests", "--plan", "pro"], variables);
  const key = stdout.trim();
  const headers = { authorization: `Bearer ${key}` };
  await paste(page, key);
  assertEquals(await page.locator("#minute").textContent(), "299 of 300 left");
  assertEquals(await isOffered(page), false);
  assertEquals(await page.locator("#per").textContent(), "One print for every 5 requests.");
  for (let count = 0; count < 231; count++) {
    await (await fetch(`${origin}${PATH}`, { headers })).body?.cancel();
  }
  await call(page);
  assertEquals(await page.locator("#minute").textContent(), "67 of 300 left");

  await page.getByRole("button", { name: "Race the limit" }).click();
  await page.locator("#answer[data-kind=race]").waitFor();

  assertEquals(outcome((await page.locator("#answer-head").textContent() ?? "").trim()), [67, 12]);
  assertEquals(await page.locator("#minute").textContent(), "0 of 300 left");
  const shown = await prints(page);
  assertEquals([shown["refused"], (shown["ok"] ?? 0) + (shown["other"] ?? 0)], [3, 60]);
  const account = await fetch(`${origin}/v1/account`, { headers });
  assertEquals((await account.json()).code, "rate_limit_minute");
  await Deno.remove(folder, { recursive: true });
});

Deno.test("page offers no race after a 429, or if too few requests of the day are left", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  let [minute, day, code] = [59, 71, 200];
  await page.route(`**${PATH}`, (route) =>
    route.fulfill({
      status: code,
      headers: {
        "ratelimit-policy": '"minute";q=60;w=60, "day";q=1000;w=86400',
        "ratelimit": `"minute";r=${minute};t=40, "day";r=${day};t=4000`,
        "x-ratelimit-limit": "60",
        "x-ratelimit-reset": "1000",
      },
      json: [],
    }));
  await paste(page, "as_test_a");
  assertEquals(await isOffered(page), false);
  await choose(page, IDS.list);
  [minute, day] = [20, 70];
  await call(page);
  assertEquals(await isOffered(page), true);
  code = 429;
  await call(page);
  assertEquals(await isOffered(page), false);
});

Deno.test("page shows calls of other clients with the key, and starts again each minute", async () => {
  await roomInMinute();
  await using visitor = await visit();
  const { page, origin } = visitor;
  await page.clock.install();
  await page.reload();
  const key = await signUp(page);
  for (let count = 0; count < 3; count++) {
    await (await fetch(`${origin}${PATH}`, { headers: { authorization: `Bearer ${key}` } })).body?.cancel();
  }
  await choose(page, IDS.get);
  await page.locator(`#request-${IDS.get} [name=${SHIPPED.id}]`).fill("7");

  assertEquals(await call(page), "404");

  assertEquals(await prints(page), { other: 3, ok: 1, bad: 1, "": 55 });
  assertMatch(
    await page.locator("#prints").getAttribute("aria-label") ?? "",
    /^55 of 60 .*: 1 succeeded, 1 failed, 3 came from other clients; 0 were refused$/,
  );
  await page.clock.runFor(MINUTE + 1_000);
  assertEquals(await prints(page), { "": 60 });
  assertEquals(await page.locator("#minute").textContent(), "60 of 60 left");
});
