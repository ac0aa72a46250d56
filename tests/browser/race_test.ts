import { assert, assertEquals, assertMatch } from "@std/assert";
import { runCommand } from "../support/process.ts";
import { call, choose, isInView, paste, prints, signUp, visit } from "./browser.ts";

const MINUTE = 60_000;

/** Waits for a new minute if less than 20 s are left of this one, so that the test runs within one. */
async function roomInMinute(): Promise<void> {
  const left = MINUTE - Date.now() % MINUTE;
  if (left < 20_000) await new Promise((go) => setTimeout(go, left + 100));
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
  assertEquals(await page.locator("#race").isVisible(), false);
  const key = await signUp(page);

  await page.getByRole("button", { name: "Race the limit" }).click();
  await page.locator("#answer[data-kind=race]").waitFor();

  const head = (await page.locator("#answer-head").textContent() ?? "").trim();
  assertEquals(outcome(head), [59, 12]);
  assertEquals(await prints(page), { ok: 60, refused: 12 });
  assertEquals(await page.locator("#minute").textContent(), "0 of 60 left");
  assertEquals(await page.locator("#day").textContent(), "940 of 1,000 today");
  assertMatch(await page.locator("#send").textContent() ?? "", /^Wait \d+ s$/);
  assertEquals(await page.locator("#race").isVisible(), false);
  assert(await isInView(page, "#answer-head"));
  assertEquals(await page.locator(":focus").getAttribute("id"), "answer");
  const said = await page.locator("#announcement").textContent() ?? "";
  assert(said.startsWith(head) && said.includes("are banned"), said);
  assertMatch(
    await page.locator("#prints").getAttribute("aria-label") ?? "",
    /^0 of 60 requests left this minute: 60 succeeded, 0 failed, 0 came from other clients; 12 were refused$/,
  );
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
  assertEquals(await page.locator("#race").isVisible(), false);
  assertEquals(await page.locator("#per").textContent(), "One print for every 5 requests.");
  for (let count = 0; count < 231; count++) {
    await (await fetch(`${origin}/v1/pets`, { headers })).body?.cancel();
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
  await page.route("**/v1/pets", (route) =>
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
  const race = page.locator("#race");
  await paste(page, "as_test_a");
  assertEquals(await race.isVisible(), false);
  await choose(page, "listPets");
  [minute, day] = [20, 70];
  await call(page);
  assertEquals(await race.isVisible(), true);
  code = 429;
  await call(page);
  assertEquals(await race.isVisible(), false);
});

Deno.test("page shows calls of other clients with the key, and starts again each minute", async () => {
  await roomInMinute();
  await using visitor = await visit();
  const { page, origin } = visitor;
  await page.clock.install();
  await page.reload();
  const key = await signUp(page);
  for (let count = 0; count < 3; count++) {
    await (await fetch(`${origin}/v1/pets`, { headers: { authorization: `Bearer ${key}` } })).body?.cancel();
  }
  await choose(page, "getPet");
  await page.locator("#request-getPet [name=petId]").fill("7");

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
