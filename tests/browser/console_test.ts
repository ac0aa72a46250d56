import { assert, assertEquals, assertMatch } from "@std/assert";
import { IDS, ITEM, LIST, PATH, SHIPPED, textField } from "../process/shipped.ts";
import { TemporaryStore } from "../process/temporary_store.ts";
import { answer, call, choose, paste, PHONE, press, prints, race, roomInMinute } from "./browser.ts";
import { settle, shows, signUp, test, text, until, visit, WIDE } from "./browser.ts";

const ADD = `Add ${SHIPPED.nouns.an}`;

/** Headers of a 429 with what is left of the minute and the day, and when to try again. */
function limited(minute: string, day: string, seconds: string): Record<string, string> {
  return {
    "ratelimit-policy": '"minute";q=60;w=60, "day";q=1000;w=86400',
    "ratelimit": `"minute";${minute}, "day";${day}`,
    "x-ratelimit-limit": "60",
    "x-ratelimit-reset": "1000",
    "retry-after": seconds,
  };
}

for (const browser of ["chromium", "firefox"] as const) {
  const wide = { browser, ...WIDE };
  const title = `page makes a key, adds an item, repeats, changes and deletes it, in ${browser}`;
  test(title, wide, async ({ page, noise }) => {
    assertMatch(await signUp(page), /^as_test_\w{38}$/);
    const first = { "#head .status": "200", "#body": "[]", "#message": /There are none yet\.$/ };
    await shows(page, { ...first, "#send:focus": true });
    await press(page, ADD, true);
    assertEquals(new URL(page.url()).hash, `#${IDS.create}`);
    await shows(page, { [`#form-${IDS.create}`]: true });

    assertEquals(await call(page), "201");
    const ofItem = ["Get", "Update", "Delete"].map((verb) => `${verb} ${SHIPPED.nouns.an}`);
    await shows(page, {
      "#message": /These forms have its id and ETag now\.$/,
      "#next button": [...ofItem, "Repeat exactly", "Copy"],
    });
    await press(page, "Repeat exactly");
    await until(page, "#message", "A replay of the first response");
    assertEquals(JSON.parse(await text(page, "#body")).id, 1);
    for (const id of [IDS.update, IDS.update, IDS.get]) assertEquals(await call(page, id), "200");
    await shows(page, { "#message": SHIPPED.get ? /Deprecated: works until \d+ \w+ \d{4}\.$/ : /./ });
    assertEquals(await call(page, IDS.delete), "204");
    await page.locator("#send").click();
    await shows(page, { "#message": new RegExp(`^${SHIPPED.id} is missing`), "#next button": [ADD] });
    assertEquals(noise, []);
  });

  test(`page races the limit: as many succeed as are left, in ${browser}`, wide, async ({ page, origin }) => {
    await roomInMinute();
    const place = () => page.locator("#strip").evaluate((strip) => [strip.clientHeight, strip.clientWidth]);
    const before = await place();
    await shows(page, { "#race-note": "Race after your first request." });
    const key = await signUp(page);
    assertEquals(await place(), before);
    await (await fetch(`${origin}${PATH}`, { headers: { authorization: `Bearer ${key}` } })).body?.cancel();
    assertEquals(await call(page, IDS.get, { [SHIPPED.id]: "7" }), "404");
    assertEquals(await prints(page), { other: 1, ok: 1, bad: 1, "": 57 });
    await shows(page, {
      "#legend > span:visible": ["1 ok", "1 failed", "1 by others"],
      "#next button": [ADD, "Copy"],
      "#race-note": "The race sends the 57 that are left and 12 more at once.",
    });
    await race(page);

    await shows(page, {
      "#head": "57 admitted, 12 refused, none over",
      "#message": /^69 requests at once in \d+ ms, with 57 left: exactly 57 can succeed\.$/,
      "#left": "0 of 60 left",
      "#send": /^Wait \d+ s$/,
    });
    assertEquals([await prints(page), await place()], [{ other: 1, ok: 58, bad: 1, refused: 12 }, before]);
    const delays = await page.locator("#strip svg").evaluateAll((all) =>
      all.map((print) => parseFloat((print as SVGElement).style.transitionDelay || "0"))
    );
    assert(Math.max(...delays) > 100 && Math.max(...delays) <= 500, `${delays}`);
    let sent = 0;
    page.on("request", () => sent++);
    await page.locator("#race").press("Enter");
    await page.locator("#send").press("Enter");
    assertEquals([sent, await text(page, "#race-note")], [0, "Race again in the next minute."]);
    await page.locator("#log summary").click();
    await page.locator("#entries button", { hasText: `${LIST}/7, 404` }).click();
    await shows(page, { "#head .status": "404" });
  });
}

Deno.test("page races a larger plan in several rounds, and says so", async () => {
  await roomInMinute();
  await using store = await TemporaryStore.empty();
  await using visitor = await visit({ ...WIDE, start: () => store.serve() });
  const { page } = visitor;
  await paste(page, (await store.run("accounts", "create", "tests", "--plan", "pro")).stdout.trim());
  await shows(page, {
    "#left": "299 of 300 left",
    "#race-note": "299 are left. The race sends 200 at once: race again for the rest.",
    "#prints[aria-label$='One print stands for 5 requests.']": true,
  });
  await race(page);
  await shows(page, {
    "#head": "200 admitted, 0 refused, none over",
    "#message": /with 299 left: all fit\.$/,
  });
  await page.locator("#race").click();
  await until(page, "#head", "99 admitted, 12 refused, none over");
});

test("page says that a race did not take place if the service is gone, and can race again", async ({ page }) => {
  await signUp(page);
  await page.context().setOffline(true);
  await page.locator("#race").click();
  await until(page, "#head", "The race did not take place");
  await shows(page, { "#message": /^No response\. Check that you are online/ });
  assertEquals((await prints(page))["ok"], 1);
  await page.locator("#send").click();
  await until(page, "#head", "No response");
  await shows(page, { "#message": /It is safe to send this again\.$/ });
  const key = page.locator(`#form-${IDS.create} [name=Idempotency-Key]`);
  await choose(page, IDS.create);
  const sent = await key.inputValue();
  await page.locator("#send").click();
  await until(page, "#head", `POST ${PATH}`);
  assertEquals(await key.inputValue(), sent);
  await page.context().setOffline(false);
  assertEquals(await call(page), "201");
  assert(await key.inputValue() !== sent);
});

test("page tells the truth of a ban, of a used up day, of a new minute, and after a reload", async ({ page }) => {
  await page.clock.install();
  await page.reload();
  await signUp(page);
  await page.clock.runFor(61_000);
  assertEquals([await text(page, "#left"), await prints(page)], ["60 of 60 left", { "": 60 }]);
  await page.reload();
  await shows(page, { "#left": "Send to see what is left" });
  const dayIsUsed = limited("r=9;t=40", "r=0;t=10800", "10800");
  await answer(page, PATH, [429, "rate_limit_day", "The limit per day is used up.", dayIsUsed]);
  assertEquals(await call(page), "429");
  await shows(page, { "#left": "0 of 1,000 left today", "#send": "Wait 3 h" });
  await page.unroute(`**${PATH}`);
  assertEquals(await call(page, "getOpenApi"), "200");
  const isBanned = limited("r=0;t=300", "r=900;t=10800", "300");
  await answer(page, "/v1/account/usage*", [429, "key_banned", "The account is banned.", isBanned]);
  await choose(page, IDS.list);
  await page.clock.fastForward(10_800_000);
  await shows(page, { "#news": "You can send again." });
  assertEquals(await call(page, "getUsage"), "429");
  await shows(page, { "#left": "Banned", "#reset": "for 5 min", "#race-note": "Race again after the ban." });
  await choose(page, "rotateKey");
  await shows(page, { "#send": "Send" });
});

test("page goes back to the form after a wrong key or a closed account, with the reason", async ({ page }) => {
  page.on("dialog", (dialog) => dialog.accept());
  await paste(page, "as_test_wrong");
  assertEquals(await page.locator("#pasted[aria-invalid=true]:focus").inputValue(), "as_test_wrong");
  await shows(page, { "#key-note.bad": /API key/, "[href='#error-invalid_api_key']#error": true });
  for (const key of ["", "as_test_79Tk…osZs"]) {
    await paste(page, key);
    await shows(page, { "#key-note.bad": /^Paste a key/ });
  }
  await page.locator("#to-make").click();
  await signUp(page);
  assertEquals(await call(page, "closeAccount"), "204");
  await shows(page, { "#key-note.bad": /^The account is closed/, "#left": "60 requests a minute" });
  await page.reload();
  await shows(page, { "#make": true });
});

test("page waits if sign-up is limited, and says why there is no key", async ({ page }) => {
  const fails = async (...given: Parameters<typeof answer>[2]) => {
    await answer(page, "/v1/accounts", given);
    await page.locator("#make").click();
    await page.locator("#key-note.bad").waitFor();
    return await text(page, "#key-note");
  };
  await page.context().setOffline(true);
  await page.locator("#make").click();
  await shows(page, { "#key-note.bad": /^No response\. .* Check whether it took effect/ });
  await page.context().setOffline(false);
  await page.locator("#name").fill("you");
  await shows(page, { "#key-note": "The key stays in this tab." });
  assertEquals(await fails(502, "", ""), "No key was made. Try again later.");
  await page.locator("#name").fill("me");
  const limit = "At most 5 accounts can be created in an hour from one address.";
  assertEquals(await fails(429, "sign_up_limit", limit, { "retry-after": "600" }), limit);
  await shows(page, { "#make": "Wait 10 min", "#send": "Send" });
  await page.reload();
  assertEquals(await fails(403, "sign_up_closed", "Sign-up is closed."), "Sign-up is closed.");
  await shows(page, { "#use": true, "#to-make": false });
});

test("page keeps the key in the tab, shows it whole once, and warns before it is lost", async ({ page, origin }) => {
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  const key = await signUp(page);
  const dialogs: string[] = [];
  page.on("dialog", (dialog) => (dialogs.push(dialog.type()), dialog.dismiss()));
  await shows(page, { "#key-note": "Copy it: only this tab has it." });
  await press(page, "Use another");
  for (const operation of ["createAccount", "closeAccount", "rotateKey"]) {
    await choose(page, operation);
    await page.locator("#send").click();
  }
  await page.reload({ timeout: 1_000 }).catch(() => {});
  assertEquals(dialogs, ["confirm", "confirm", "confirm", "confirm", "beforeunload"]);
  await press(page, "Copy the key");
  await until(page, "#key-note", "The key stays in this tab.");
  await page.reload();
  await shows(page, { "#key": `${key.slice(0, 12)}…` });
  const kept = await page.evaluate(() => [JSON.stringify(localStorage), document.cookie, location.search]);
  assertEquals(kept, ["{}", "", ""]);
  assertEquals(await call(page, IDS.list), "200");
  await page.locator("#code > summary").click();
  for (const language of ["Python", "JavaScript", "curl"]) {
    await page.getByRole("radio", { name: language }).check();
    await shows(page, { "#sample": /Bearer YOUR_KEY/ });
  }
  await press(page, "Copy the code");
  await until(page, "#news", "Copied");
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  const start = `curl -i '${origin}${PATH}' \\\n  -H 'Authorization: Bearer ${key}'`;
  assertEquals(copied.slice(0, start.length), start);
});

test("page adds a key without using it, and revokes it", async ({ page }) => {
  page.on("dialog", (dialog) => dialog.accept());
  const key = await signUp(page);

  assertEquals(await call(page, "addKey"), "201");
  await shows(page, {
    "#message": /^Copy the added key: it is shown only now\. .* These forms have its id now\.$/,
    "#next button": ["Copy", "Revoke an added key", "Copy"],
    "#key": key,
  });
  const { id, apiKey } = JSON.parse(await text(page, "#body"));
  assertMatch(apiKey, /^as_test_\w{38}$/);
  assertEquals(await call(page, "getAccount"), "200");
  assertEquals(JSON.parse(await text(page, "#body")).key, null);
  await choose(page, "revokeKey");
  assertEquals(await page.locator("#form-revokeKey [name=keyId]").inputValue(), id);
  assertEquals(await call(page), "204");
  assertEquals([await call(page, "listKeys"), await text(page, "#body")], ["200", "[]"]);
});

test("page sends what its form says, offers the current ETag after 412, and turns pages", async ({ page }) => {
  await signUp(page);
  const markup = "<img src=x onerror=alert(1)> \u202e";
  const body = JSON.stringify({ ...SHIPPED.examples.item, [textField(markup)]: markup });
  assertEquals(await call(page, IDS.create, { body }), "201");
  assert((await text(page, "#body")).includes(JSON.stringify(markup)));
  await shows(page, { "#answer img": [] });
  assertEquals(await call(page, IDS.create, { body: ITEM }), "201");
  assertEquals(await call(page, IDS.update, { "If-Match": '"old"' }), "412");
  await press(page, "Use the current ETag");
  assertEquals(await call(page), "200");
  assertEquals(await call(page, IDS.create, { body: `{"${SHIPPED.name}x":1,${ITEM.slice(1)}` }), "400");
  await shows(page, { "#message": new RegExp(`${SHIPPED.name}x is unknown`), "#count": /headers and body$/ });
  assertEquals(await call(page, IDS.list, { limit: "1" }), "200");
  await press(page, "Next page");
  await until(page, "#body", '"id": 2');
  await settle(page);
  await shows(page, { "#target": /^\/v1\/\w+\?limit=1&cursor=\w+$/, "#next button:text('Next page')": [] });
  const [filter] = SHIPPED.filters;
  if (filter !== undefined) {
    await page.locator(`#form-${IDS.list} [name=cursor]`).fill("");
    await page.locator(`#form-${IDS.list} [name=${filter}]`).selectOption({ index: 2 });
    await call(page);
    await shows(page, { "#message": await text(page, "#body") === "[]" ? /Nothing matches\.$/ : /./ });
  }
});

for (const [name, options] of [["a wide screen", WIDE], ["a phone", PHONE]] as const) {
  test(`page keeps Send and the prints in sight, and the answer, on ${name}`, options, async ({ page }) => {
    const place = (selector: string) =>
      page.locator(selector).evaluate((element) => element.getBoundingClientRect().top);
    const seen = async (state: string) => {
      const [prints, send, head] = [await place("#prints"), await place("#send"), await place("#head")];
      assert(prints >= 0 && send < 300, `${state}: ${prints}, ${send}`);
      assert(head > send && head < options.viewport.height * 0.75, `${state}: ${send}, ${head}`);
    };
    assert(await place("#make") < 420);
    await signUp(page);
    await seen("first call");
    for (const operation of [IDS.create, IDS.list, "getAccount", "getOpenApi"]) {
      await call(page, operation);
      await seen(operation);
    }
    await page.locator(`#${IDS.update} .line`).getByRole("button").click();
    assertEquals(await page.locator("#operation:focus").inputValue(), IDS.update);
    assertEquals(new URL(page.url()).hash, `#${IDS.update}`);
    assert(await place("#prints") >= 0 && await place("#send") < 300);
  });
}

test("page's contents only scroll, filter by words and codes, and close", PHONE, async ({ page, origin }) => {
  await page.getByRole("button", { name: "Contents" }).tap();
  await page.locator("#filter").fill("if-match");
  const links = page.locator("#contents li > a:not([href*='-']):visible");
  const found = await links.evaluateAll((all) => all.map((link) => link.getAttribute("href")));
  assertEquals(found, [`#${IDS.update}`, `#${IDS.delete}`]);
  await page.locator("#filter").fill("nothing like this");
  await shows(page, { "#contents li > a:visible": [], "#unfound": true });
  await page.locator("#filter").fill("");
  const operation = page.locator("#operation");
  const chosen = await operation.inputValue();
  await page.locator(`#contents [href="#${IDS.delete}"]`).tap();
  await page.waitForFunction(
    (id) => Math.abs(document.getElementById(id)?.getBoundingClientRect().top ?? 999) < 100,
    IDS.delete,
  );
  await shows(page, { "#contents": false });
  assertEquals(await operation.inputValue(), chosen);
  await page.goto(`${origin}/#rotateKey`);
  await page.reload();
  assertEquals(await operation.inputValue(), "rotateKey");
  assert((await text(page, "#call-curl, #first-call")).startsWith(`curl -i '${origin}${PATH}'`));
});
