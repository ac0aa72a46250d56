import { assert, assertEquals, assertMatch } from "@std/assert";
import type { Page } from "playwright-core";
import { runCommand } from "../process/process.ts";
import { IDS, ITEM, LIST, PATH, SHIPPED, textField } from "../process/shipped.ts";
import { answer, call, paste, prints, roomInMinute, settle, signUp, steps, text, visit } from "./browser.ts";

const ADD = `Add ${SHIPPED.nouns.an}`;
const WIDE = { viewport: { width: 1280, height: 800 } };
const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };
const LIMITED = {
  "ratelimit-policy": '"minute";q=60;w=60, "day";q=1000;w=86400',
  "x-ratelimit-limit": "60",
  "x-ratelimit-reset": "1000",
};

for (const browser of ["chromium", "firefox"] as const) {
  Deno.test(`page makes a key and calls, adds an item, repeats, changes and deletes it, in ${browser}`, async () => {
    await using visitor = await visit({ browser, ...WIDE });
    const { page } = visitor;
    assertMatch(await signUp(page), /^as_test_\w{38}$/);
    assertEquals([await text(page, "#head .status"), await text(page, "#body")], ["200", "[]"]);
    assertMatch(await text(page, "#message"), /There are none yet\.$/);
    assertEquals(await page.locator(":focus").getAttribute("id"), "send");
    await page.getByRole("button", { name: ADD, exact: true }).click();
    assertEquals([await page.locator("#operation").inputValue(), new URL(page.url()).hash], [
      IDS.create,
      `#${IDS.create}`,
    ]);

    assertEquals(await call(page), "201");
    const ofItem = [IDS.get, IDS.update, IDS.delete].map((id) => SHIPPED_SUMMARIES[id] ?? "");
    assertEquals(await steps(page), [...ofItem, "Repeat exactly", "Copy"]);
    await page.getByRole("button", { name: "Repeat exactly" }).click();
    await page.locator("#message", { hasText: "A replay of the first response" }).waitFor();
    assertEquals(JSON.parse(await text(page, "#body")).id, 1);
    assertEquals(await call(page, IDS.update), "200");
    assertEquals(await call(page, IDS.update), "200");
    assertEquals(await call(page, IDS.get), "200");
    assertMatch(await text(page, "#message"), SHIPPED.get ? /Deprecated: works until \d+ \w+ \d{4}\.$/ : /./);
    assertEquals(await call(page, IDS.delete), "204");
    await page.locator("#send").click();
    assertMatch(await text(page, "#message"), new RegExp(`^${SHIPPED.id} is missing`));
    assertEquals(await steps(page), [ADD]);
    assertEquals(visitor.noise, []);
    assertEquals(visitor.origins, new Set([visitor.origin]));
  });

  Deno.test(`page races the limit: exactly as many succeed as were left, in ${browser}`, async () => {
    await roomInMinute();
    await using visitor = await visit({ browser, ...WIDE });
    const { page, origin } = visitor;
    const race = page.locator("#race");
    const place = () => page.locator("#strip").evaluate((strip) => [strip.clientHeight, strip.clientWidth]);
    const before = await place();
    assertEquals(await text(page, "#race-note"), "Race after your first request.");
    const key = await signUp(page);
    assertEquals(await place(), before);
    await (await fetch(`${origin}${PATH}`, { headers: { authorization: `Bearer ${key}` } })).body?.cancel();
    assertEquals(await call(page, IDS.get, { [SHIPPED.id]: "7" }), "404");
    assertEquals(await prints(page), { other: 1, ok: 1, bad: 1, "": 57 });
    assertEquals(await page.locator("#legend > span:visible").allTextContents(), [
      "1 succeeded",
      "1 failed",
      "1 by other clients",
    ]);
    assertEquals(await steps(page), [ADD, "Copy"]);
    assertEquals(await text(page, "#race-note"), "The race sends the 57 that are left and 12 more at once.");
    await race.click();
    await page.locator("[data-kind=race]").waitFor();

    assertEquals(await text(page, "#head"), "57 admitted, 12 refused, none over");
    assertMatch(
      await text(page, "#message"),
      /^69 requests at once in \d+ ms, with 57 left: exactly 57 can succeed\.$/,
    );
    assertEquals(await prints(page), { other: 1, ok: 58, bad: 1, refused: 12 });
    assertEquals([await text(page, "#left"), await place()], ["0 of 60 left", before]);
    assertMatch(await text(page, "#send"), /^Wait \d+ s$/);
    const delays = await page.locator("#strip svg").evaluateAll((all) =>
      all.map((print) => parseFloat((print as SVGElement).style.transitionDelay || "0"))
    );
    assert(Math.max(...delays) > 100 && Math.max(...delays) <= 500, `${delays}`);
    let sent = 0;
    page.on("request", () => sent++);
    await race.press("Enter");
    await page.locator("#send").press("Enter");
    assertEquals([sent, await text(page, "#race-note")], [0, "Race again in the next minute."]);
    await page.locator("#log summary").click();
    await page.locator("#entries button", { hasText: `${LIST}/7, 404` }).click();
    assertEquals(await text(page, "#head .status"), "404");
  });
}

/** The summaries of the operations on the shipped collection. */
const SHIPPED_SUMMARIES: Readonly<Record<string, string>> = Object.fromEntries(
  (["get", "update", "delete"] as const).map((verb) => [
    IDS[verb],
    `${verb.charAt(0).toUpperCase()}${verb.slice(1)} ${SHIPPED.nouns.an}`,
  ]),
);

Deno.test("page races a larger plan in several rounds, and says so", async () => {
  await roomInMinute();
  const folder = await Deno.makeTempDir();
  const variables = { KV_PATH: `${folder}/store` };
  {
    await using visitor = await visit(WIDE, variables);
    const { page } = visitor;
    const { stdout } = await runCommand(["accounts", "create", "tests", "--plan", "pro"], variables);
    await paste(page, stdout.trim());
    assertEquals([await text(page, "#left"), await text(page, "#race-note")], [
      "299 of 300 left",
      "299 are left. The race sends 200 at once: race again for the rest.",
    ]);
    assertMatch(
      await page.locator("#prints").getAttribute("aria-label") ?? "",
      /One print stands for 5 requests\.$/,
    );
    await page.locator("#race").click();
    await page.locator("#head", { hasText: "200 admitted, 0 refused, none over" }).waitFor();
    assertMatch(await text(page, "#message"), /with 299 left: all fit\.$/);
    await settle(page);
    await page.locator("#race").click();
    await page.locator("#head", { hasText: "99 admitted, 12 refused, none over" }).waitFor();
  }
  await Deno.remove(folder, { recursive: true });
});

Deno.test("page says that a race did not take place if the service is gone, and can race again", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  await signUp(page);
  await page.context().setOffline(true);
  await page.locator("#race").click();
  await page.locator("#head", { hasText: "The race did not take place" }).waitFor();
  assertMatch(await text(page, "#message"), /^No response\. Check that you are online/);
  assertEquals((await prints(page))["ok"], 1);
  await page.locator("#send").click();
  await page.locator("#head", { hasText: "No response" }).waitFor();
  assertMatch(await text(page, "#message"), /It is safe to send this again\.$/);
  const key = page.locator(`#form-${IDS.create} [name=Idempotency-Key]`);
  await page.locator("#operation").selectOption(IDS.create);
  const sent = await key.inputValue();
  await page.locator("#send").click();
  await page.locator("#head", { hasText: `POST ${PATH}` }).waitFor();
  assertEquals(await key.inputValue(), sent);
  await page.context().setOffline(false);
  assertEquals(await call(page), "201");
  assert(await key.inputValue() !== sent);
});

Deno.test("page tells the truth of a ban, of a used up day, of a new minute, and after a reload", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  await page.clock.install();
  await page.reload();
  await signUp(page);
  await page.clock.runFor(61_000);
  assertEquals([await text(page, "#left"), await prints(page)], ["60 of 60 left", { "": 60 }]);
  await page.reload();
  assertEquals(await text(page, "#left"), "Send to see what is left");
  await answer(page, PATH, [429, "rate_limit_day", "The limit per day is used up. Try again in 3 h.", {
    ...LIMITED,
    "ratelimit": '"minute";r=9;t=40, "day";r=0;t=10800',
    "retry-after": "10800",
  }]);
  assertEquals(await call(page), "429");
  assertEquals([await text(page, "#left"), await text(page, "#send")], ["0 of 1,000 left today", "Wait 3 h"]);
  await page.unroute(`**${PATH}`);
  assertEquals(await call(page, "getOpenApi"), "200");
  await answer(page, "/v1/account/usage*", [429, "key_banned", "The account is banned.", {
    ...LIMITED,
    "ratelimit": '"minute";r=0;t=300, "day";r=900;t=10800',
    "retry-after": "300",
  }]);
  await page.locator("#operation").selectOption(IDS.list);
  await page.clock.fastForward(10_800_000);
  assertEquals(await text(page, "#news"), "You can send again.");
  assertEquals(await call(page, "getUsage"), "429");
  assertEquals([await text(page, "#left"), await text(page, "#reset")], ["Banned", "for 5 min"]);
  assertEquals(await text(page, "#race-note"), "Race again after the ban.");
  await page.locator("#operation").selectOption("rotateKey");
  assertEquals(await text(page, "#send"), "Send");
});

Deno.test("page goes back to the form after a wrong key or a closed account, with the reason", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  page.on("dialog", (dialog) => dialog.accept());
  await paste(page, "as_test_wrong");
  const pasted = page.locator("#pasted");
  assertEquals([await pasted.inputValue(), await pasted.getAttribute("aria-invalid")], [
    "as_test_wrong",
    "true",
  ]);
  assertEquals(await page.locator(":focus").getAttribute("id"), "pasted");
  assertMatch(await text(page, "#key-note.bad"), /API key/);
  assertEquals([await text(page, "#error"), await page.locator("#error").getAttribute("href")], [
    "invalid_api_key",
    "#error-invalid_api_key",
  ]);
  for (const key of ["", "as_test_79Tk…osZs"]) {
    await paste(page, key);
    assertMatch(await text(page, "#key-note.bad"), /^Paste a key/);
  }
  await page.locator("#to-make").click();
  await signUp(page);
  assertEquals(await call(page, "closeAccount"), "204");
  assertMatch(await text(page, "#key-note.bad"), /^The account is closed/);
  assertEquals([await text(page, "#left"), await page.locator("#make").isVisible()], [
    "60 requests a minute",
    true,
  ]);
  await page.reload();
  assertEquals(await page.locator("#make").isVisible(), true);
});

Deno.test("page asks for a key if sign-up is closed, waits if it is limited, and says why there is no key", async () => {
  {
    await using visitor = await visit({}, { SIGN_UP: "closed" });
    assertEquals(await visitor.page.locator("#console button.filled:visible").allTextContents(), [
      "Use this key",
    ]);
    assertEquals(await visitor.page.locator("#to-make").isVisible(), false);
  }
  await using visitor = await visit();
  const { page } = visitor;
  const fails = async (...given: Parameters<typeof answer>[2]) => {
    await page.unroute("**/v1/accounts");
    await answer(page, "/v1/accounts", given);
    await page.locator("#make").click();
    await page.locator("#key-note.bad").waitFor();
    return await text(page, "#key-note");
  };
  await page.context().setOffline(true);
  await page.locator("#make").click();
  assertMatch(await text(page, "#key-note.bad"), /^No response\. .* Check whether it took effect/);
  await page.context().setOffline(false);
  await page.locator("#name").fill("you");
  assertEquals(await text(page, "#key-note"), "The key stays in this tab.");
  assertEquals(await fails(502, "", ""), "No key was made. Try again later.");
  await page.locator("#name").fill("me");
  const limit = "At most 5 accounts can be created in an hour from one address.";
  assertEquals(await fails(429, "sign_up_limit", limit, { "retry-after": "600" }), limit);
  assertEquals([await text(page, "#make"), await text(page, "#send")], ["Wait 10 min", "Send"]);
  await page.reload();
  assertEquals(await fails(403, "sign_up_closed", "Sign-up is closed."), "Sign-up is closed.");
  assertEquals([await page.locator("#use").isVisible(), await page.locator("#to-make").isVisible()], [
    true,
    false,
  ]);
});

Deno.test("page keeps the key in the tab, shows it whole once, and warns before it is lost", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  const key = await signUp(page);
  const dialogs: string[] = [];
  page.on("dialog", (dialog) => (dialogs.push(dialog.type()), dialog.dismiss()));
  assertEquals(await text(page, "#key-note"), "Copy it: only this tab has it.");
  await page.getByRole("button", { name: "Use another" }).click();
  for (const operation of ["createAccount", "closeAccount", "rotateKey"]) {
    await page.locator("#operation").selectOption(operation);
    await page.locator("#send").click();
  }
  await page.reload({ timeout: 1_000 }).catch(() => {});
  assertEquals(dialogs, ["confirm", "confirm", "confirm", "confirm", "beforeunload"]);
  await page.getByRole("button", { name: "Copy the key" }).click();
  await page.locator("#key-note", { hasText: "The key stays in this tab." }).waitFor();
  await page.reload();
  assertEquals(await text(page, "#key"), `${key.slice(0, 12)}…`);
  assertEquals(await page.evaluate(() => [JSON.stringify(localStorage), document.cookie, location.search]), [
    "{}",
    "",
    "",
  ]);
  assertEquals(await call(page, IDS.list), "200");
  await page.locator("#code > summary").click();
  for (const language of ["Python", "JavaScript", "curl"]) {
    await page.getByRole("radio", { name: language }).check();
    assertMatch(await text(page, "#sample"), /Bearer YOUR_KEY/);
  }
  await page.getByRole("button", { name: "Copy the code" }).click();
  await page.locator("#news", { hasText: "Copied" }).waitFor();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert(
    copied.startsWith(`curl -i '${visitor.origin}${PATH}' \\\n  -H 'Authorization: Bearer ${key}'`),
    copied,
  );
});

Deno.test("page sends what its form says, offers the current ETag after 412, and turns pages", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  await signUp(page);
  const markup = "<img src=x onerror=alert(1)> \u202e";
  const body = JSON.stringify({ ...SHIPPED.examples.item, [textField(markup)]: markup });
  assertEquals(await call(page, IDS.create, { body }), "201");
  assertEquals([
    (await text(page, "#body")).includes(JSON.stringify(markup)),
    await page.locator("#answer img").count(),
  ], [true, 0]);
  assertEquals(await call(page, IDS.create, { body: ITEM }), "201");
  assertEquals(await call(page, IDS.update, { "If-Match": '"old"' }), "412");
  await page.getByRole("button", { name: "Use the current ETag" }).click();
  assertEquals(await call(page), "200");
  assertEquals(await call(page, IDS.create, { body: `{"${SHIPPED.name}x":1,${ITEM.slice(1)}` }), "400");
  assertMatch(await text(page, "#message"), new RegExp(`${SHIPPED.name}x is unknown`));
  assertEquals(
    await page.locator("#count").textContent().then((count) => count?.endsWith("headers and body")),
    true,
  );
  assertEquals(await call(page, IDS.list, { limit: "1" }), "200");
  await page.getByRole("button", { name: "Next page" }).click();
  await page.locator("#body", { hasText: '"id": 2' }).waitFor();
  assertMatch(await text(page, "#target"), /^\/v1\/\w+\?limit=1&cursor=\w+$/);
  await settle(page);
  assertEquals(await page.locator("#next button", { hasText: "Next page" }).count(), 0);
  const [filter] = SHIPPED.filters;
  if (filter !== undefined) {
    await page.locator(`#form-${IDS.list} [name=cursor]`).fill("");
    await page.locator(`#form-${IDS.list} [name=${filter}]`).selectOption({ index: -1 + 3 });
    await call(page);
    assertMatch(
      await text(page, "#message"),
      await text(page, "#body") === "[]" ? /Nothing matches\.$/ : /./,
    );
  }
});

for (const [name, options] of [["a wide screen", WIDE], ["a phone", PHONE]] as const) {
  Deno.test(`page keeps Send and the prints in sight, and shows the answer, on ${name}`, async () => {
    await using visitor = await visit(options);
    const { page } = visitor;
    const place = (selector: string) =>
      page.locator(selector).evaluate((element) => element.getBoundingClientRect().top);
    const seen = async (state: string) => {
      const [send, head] = [await place("#send"), await place("#head")];
      assert(
        send >= 0 && send < 300 && head > send && head < options.viewport.height * 0.75,
        `${state}: ${send}, ${head}`,
      );
      assert(await place("#prints") >= 0);
    };
    assert(await place("#make") < 420);
    await signUp(page);
    await seen("first call");
    for (const operation of [IDS.create, IDS.list, "getAccount"]) {
      await call(page, operation);
      await seen(operation);
    }
    await call(page, "getOpenApi");
    await seen("getOpenApi");
    await page.locator(`#${IDS.update} .line`).getByRole("button").click();
    assertEquals(await page.locator("#operation").inputValue(), IDS.update);
    assertEquals([new URL(page.url()).hash, await page.locator(":focus").getAttribute("id")], [
      `#${IDS.update}`,
      "operation",
    ]);
    const send = await place("#send");
    assert(send >= 0 && send < 300, `${send}`);
  });
}

Deno.test("page's contents only scroll, filter by words and codes, and close on a phone", async () => {
  await using visitor = await visit(PHONE);
  const { page, origin } = visitor;
  const links = () =>
    page.locator("#contents li > a:visible").evaluateAll((all) =>
      all.map((link) => link.getAttribute("href"))
    );
  await page.getByRole("button", { name: "Contents" }).tap();
  await page.locator("#filter").fill("if-match");
  assertEquals((await links()).filter((link) => !link?.includes("-")), [`#${IDS.update}`, `#${IDS.delete}`]);
  await page.locator("#filter").fill("nothing like this");
  assertEquals([await links(), await page.locator("#unfound").isVisible()], [[], true]);
  await page.locator("#filter").fill("");
  const chosen = await page.locator("#operation").inputValue();
  await page.locator(`#contents [href="#${IDS.delete}"]`).tap();
  await page.waitForFunction(
    (id) => Math.abs(document.getElementById(id)?.getBoundingClientRect().top ?? 999) < 100,
    IDS.delete,
  );
  assertEquals([await page.locator("#contents").isVisible(), await page.locator("#operation").inputValue()], [
    false,
    chosen,
  ]);
  await page.goto(`${origin}/#rotateKey`);
  await page.reload();
  assertEquals(await page.locator("#operation").inputValue(), "rotateKey");
  await isReadable(page);
});

/** Asserts that the first call names the page's own origin. */
async function isReadable(page: Page): Promise<void> {
  assert(
    (await text(page, "#call-curl, #first-call")).startsWith(
      `curl -i '${new URL(page.url()).origin}${PATH}'`,
    ),
  );
}
