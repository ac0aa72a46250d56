import { assert, assertEquals, assertMatch } from "@std/assert";
import { IDS, ITEM, LIST, PATH, SHIPPED, textField } from "../process/shipped.ts";
import { TemporaryStore } from "../process/temporary_store.ts";
import {
  answer,
  call,
  choose,
  eventually,
  paste,
  PHONE,
  press,
  prints,
  race,
  roomInMinute,
} from "./browser.ts";
import { settle, shows, signUp, SIZES, test, text, until, visit, WIDE } from "./browser.ts";

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
      "#next button:visible": [...ofItem, "Repeat exactly", "Copy"],
    });
    await press(page, "Repeat exactly");
    await until(page, "#message", "A replay of the first response");
    assertEquals(JSON.parse(await text(page, "#body")).id, 1);
    for (const id of [IDS.update, IDS.update, IDS.get]) assertEquals(await call(page, id), "200");
    await shows(page, { "#message": SHIPPED.get ? /Deprecated: works until \d+ \w+ \d{4}\.$/ : /./ });
    assertEquals(await call(page, IDS.delete), "204");
    await page.locator("#send").click();
    await shows(page, { "#message": new RegExp(`^${SHIPPED.id} is missing`), "#next button:visible": [ADD] });
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
      "#next button:visible": [ADD, "Copy"],
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
    let sent = 0;
    page.on("request", () => sent++);
    await page.locator("#race").press("Enter");
    await page.locator("#send").press("Enter");
    assertEquals([sent, await text(page, "#race-note")], [0, "Race again in the next minute."]);
    await page.locator("#prints .bad").hover();
    await shows(page, { "#pointed": new RegExp(`^404 ${LIST}/7 \\d+ ms$`) });
    await page.locator("#prints .bad").click();
    await shows(page, { "#head .status": "404" });
    await page.locator("#refused svg").first().click();
    await shows(page, { "#head .status": "429" });
    await page.locator("#log summary").click();
    await page.locator("#entries button", { hasText: `404 ${LIST}/7` }).click();
    await shows(page, { "#head .status": "404" });
  });
}

test("page draws prints as answers of a race arrive, and names the processes that gave them", async ({ page }) => {
  await roomInMinute();
  await signUp(page);
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  let count = 0;
  await page.route(`**${PATH}?limit=1`, async (route) => {
    const index = count++;
    if (index >= 8) await released;
    const response = await route.fetch();
    const id = `aaaaaaaa-000${index % 3}-${index}`;
    await route.fulfill({ response, headers: { ...response.headers(), "x-request-id": id } });
  });
  await page.locator("#race").click();
  await page.waitForFunction(() => document.querySelectorAll("#prints .ok").length === 9);
  assertEquals([await prints(page), await page.locator("#console[aria-busy]").count()], [
    { ok: 9, "": 51 },
    1,
  ]);
  release();
  await page.locator("[data-kind=race]").waitFor();
  await shows(page, { "#message": /\. 59 admitted by 3 processes: \d+, \d+, \d+\.$/ });
});

test("page cuts no text below the prints, above the legend", async ({ page }) => {
  for (const [width, height] of SIZES) {
    await page.setViewportSize({ width, height });
    const [isCut, room = 0] = await page.locator("#ahead").evaluate((line) => {
      const text = document.createRange();
      text.selectNodeContents(line);
      const { bottom } = text.getBoundingClientRect();
      const isCut = bottom > line.getBoundingClientRect().bottom &&
        getComputedStyle(line).overflowY !== "visible";
      return [isCut, (document.querySelector("#legend")?.getBoundingClientRect().top ?? 0) - bottom];
    });
    assert(!isCut && room >= 0, `${width}: ${[isCut, room]}`);
  }
});

test("page keeps sixty refused requests in one row, in the grid of the others", async ({ page }) => {
  await signUp(page);
  const usedUp = { ...limited("r=0;t=40", "r=900;t=10800", "40"), "x-ratelimit-reset": "9999999999" };
  await answer(page, `${PATH}?limit=1`, [429, "rate_limit_minute", "The limit is used up.", usedUp]);
  await race(page);
  assertEquals((await prints(page))["refused"], 60);
  await shows(page, { "#refused[data-more='+54']": true });
  for (const [width, height] of [[320, 568], [390, 844], [1280, 800]] as const) {
    await page.setViewportSize({ width, height });
    const [console, row, hidden, refused, admitted] = await page.locator("#console").evaluate((console) => {
      const size = (selector: string) => console.querySelector(selector)?.getBoundingClientRect();
      const [row, ...prints] = ["#refused", "#refused svg", "#prints svg:last-child"].map(size);
      const tops = [...console.querySelectorAll("#refused svg")].map((print) =>
        print.getBoundingClientRect().top
      );
      const isHidden = tops.filter((top) => top > (row?.bottom ?? 0) - 1).length;
      const sizes = [row?.height, isHidden, ...prints.map((print) => print?.width)];
      return [console.scrollWidth - console.clientWidth, ...sizes];
    });
    assertEquals([width, console, hidden], [width, 0, 40]);
    // Requests of others are drawn at 60 %.
    const [height0, width0, full] = [row ?? 0, refused ?? 0, (admitted ?? 0) / 0.6];
    assert(
      full > 12 && Math.abs(width0 - full) < 0.1 && height0 < full,
      `${width}: ${[height0, width0, full]}`,
    );
  }
});

Deno.test("page races a larger plan in several rounds, and says so", async () => {
  await roomInMinute();
  await using store = await TemporaryStore.empty();
  await using visitor = await visit({ ...WIDE, start: () => store.serve() });
  const { page } = visitor;
  await paste(page, (await store.run("accounts", "create", "tests", "--plan", "pro")).stdout.trim());
  await shows(page, {
    "#left": "299 of 300 left",
    "#race-note": "299 are left. The race sends 200 at once: race again for the rest.",
    "#prints[aria-label$='One print is 5 requests.']": true,
    "#per": "One print is 5 requests",
  });
  await race(page);
  await shows(page, {
    "#head": "200 admitted, 0 refused, none over",
    "#message": /with 299 left: all fit\.$/,
  });
  await page.locator("#race").click();
  await until(page, "#head", "99 admitted, 12 refused, none over");
});

Deno.test("page says which request would be refused under the limit of its key, if it knows that", async () => {
  await roomInMinute();
  await using store = await TemporaryStore.empty();
  await using visitor = await visit({ ...WIDE, start: () => store.serve() });
  const { page } = visitor;
  await shows(page, { "#ahead": "Request 61 would land here, refused." });
  const agreed = ["--plan", "enterprise", "--per-minute", "5000", "--per-day", "100000"];
  await paste(page, (await store.run("accounts", "create", "tests", ...agreed)).stdout.trim());
  await shows(page, {
    "#ahead": "Request 5,001 would land here, refused.",
    "#race-note": /^4,999 are left\. /,
    "#prints[aria-label^='4,999 of 5,000 requests left. ']": true,
  });
  await race(page);
  await shows(page, { "#message": /with 4,999 left: all fit\.$/ });
  await page.reload();
  await shows(page, { "#left": "Send to see what is left", "#ahead": "" });
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
  await shows(page, { "#left": "60 of 60 left" });
  assertEquals(await prints(page), { "": 60 });
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
  await shows(page, {
    "#key-note": /^The account is closed/,
    "#left": "60 requests a minute",
    "#name:focus": true,
  });
  await shows(page, { "#key-note.bad": [], "#key-form [aria-invalid]": [] });
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
  const asked = page.waitForEvent("dialog", (dialog) => dialog.type() === "beforeunload");
  await Promise.all([asked, page.reload({ timeout: 1_000 }).catch(() => {})]);
  assertEquals(dialogs, ["confirm", "confirm", "confirm", "confirm", "beforeunload"]);
  await shows(page, { "#console .filled:visible": ["Copy"] });
  await press(page, "Copy the key");
  await shows(page, { "#key-note": "The key stays in this tab.", "#console .filled:visible": ["Send"] });
  await page.reload();
  await shows(page, { "#key": `${key.slice(0, 12)}…` });
  const kept = await page.evaluate(() => [JSON.stringify(localStorage), document.cookie, location.search]);
  assertEquals(kept, ["{}", "", ""]);
  assertEquals(await call(page, IDS.list), "200");
  await page.locator("#code > summary").click();
  await press(page, "Copy the code");
  await until(page, "#news", "Copied");
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  const start = `curl -i '${origin}${PATH}' \\\n  -H 'Authorization: Bearer ${key}'`;
  assertEquals(copied.slice(0, start.length), start);
});

test("page writes all samples in one language, which it remembers, with a new key each time", async ({ page }) => {
  await signUp(page);
  await page.locator("#code > summary").click();
  const sample = page.locator("#sample");
  const inReference = `#${IDS.create} [data-sample]`;
  for (
    const [name, start] of [["python", "import json\nimport uuid\n"], [
      "javascript",
      "const response = ",
    ]] as const
  ) {
    await page.locator(`#${IDS.create} select.link`).selectOption(name);
    await choose(page, IDS.create);
    const [shown, own] = [await sample.textContent(), await text(page, inReference)];
    assertEquals([shown, shown?.startsWith(start)], [own, true]);
    assertEquals(await page.locator("#start select.link").first().inputValue(), name);
  }
  assert((await text(page, inReference)).includes('"Idempotency-Key": crypto.randomUUID(),'));
  await shows(page, { ".tools + :not(pre)": [] });
  await page.reload();
  assert((await text(page, "#first-call")).startsWith("const response = await fetch("));
  await choose(page, IDS.create);
  assertEquals(await call(page), "201");
  await choose(page, IDS.update);
  await page.locator("#code > summary").click();
  await until(page, "#sample", "fetch(");
  assertEquals((await sample.textContent())?.includes("If-Match"), false);
  await page.locator(`#form-${IDS.update} details > summary`).click();
  await page.locator(`#form-${IDS.update} [name=If-Match]`).fill('"mine"');
  await until(page, "#sample", `"If-Match": '"mine"'`);
  await choose(page, IDS.create);
  await page.locator(`#form-${IDS.create} details > summary`).click();
  await page.locator(`#form-${IDS.create} [name=Idempotency-Key]`).fill("mine");
  await until(page, "#sample", `"Idempotency-Key": "mine"`);
});

test("page has samples in each language that run as they are, and send the same", async ({ page, origin }) => {
  const arrived: string[] = [];
  await using server = Deno.serve({ port: 0, onListen: () => {} }, async (request) => {
    const { pathname, search } = new URL(request.url);
    const key = request.headers.get("authorization") ?? "";
    arrived.push([request.method, pathname + search, key, await request.text()].join(" "));
    return Response.json({ code: "none", message: "None." }, { status: arrived.length % 2 ? 200 : 404 });
  });
  const programs = { curl: ["bash", "-c"], javascript: [Deno.execPath(), "eval"], python: ["python3", "-c"] };
  const sent: string[][] = [];
  for (const [language, [program = "", ...args]] of Object.entries(programs)) {
    await page.locator("#start select.link").first().selectOption(language);
    for (const sample of await page.locator("article [data-sample]").allTextContents()) {
      const code = sample.replaceAll(origin, `http://127.0.0.1:${server.addr.port}`);
      const { success, stderr } = await new Deno.Command(program, { args: [...args, code] }).output();
      assertEquals([success, new TextDecoder().decode(language === "curl" ? undefined : stderr)], [true, ""]);
    }
    sent.push(arrived.splice(0));
  }
  const endpoints = await page.locator("article > .line").evaluateAll((lines) =>
    lines.map((line) =>
      [...line.querySelectorAll(":scope > b, :scope > code")].map((part) => part.textContent)
    )
  );
  assertEquals(sent.slice(1), [sent[0], sent[0]]);
  assertEquals(sent[0]?.length, endpoints.length);
  for (const [index, [method = "", path = ""]] of endpoints.entries()) {
    assertMatch(sent[0]?.[index] ?? "", new RegExp(`^${method} ${path.replaceAll(/\{\w+\}/g, "[^/]+")}[ ?]`));
  }
});

test("page shows the response of a request that is not sent as an example, quieter than a result", async ({ page }) => {
  const colour = () => page.locator("#head .status").evaluate((status) => getComputedStyle(status).color);
  await signUp(page);
  const [result, examples] = [await colour(), new Set<string>()];
  for (
    const [operation, status] of [["closeAccount", 204], ["getReadiness", 200], ["getAccount", 200]] as const
  ) {
    await choose(page, operation);
    await shows(page, { "#head": `${status} an example, until you send` });
    examples.add(await colour());
  }
  await shows(page, { "#body": /"plan": "\w+"/ });
  await page.locator("#message").evaluate((message) => message.style.color = "var(--soft)");
  const soft = await page.locator("#message").evaluate((message) => getComputedStyle(message).color);
  assertEquals([[...examples], result === soft], [[soft], false]);
});

test("page marks the field that an error names, and sends with Ctrl and Enter", async ({ page }) => {
  await signUp(page);
  assertEquals(await call(page, IDS.list, { limit: "0" }), "400");
  const limit = page.locator(`#form-${IDS.list} [name=limit]`);
  await shows(page, { [`#form-${IDS.list} [aria-invalid]`]: "" });
  assertEquals(await limit.getAttribute("aria-invalid"), "true");
  await limit.fill("5");
  assertEquals(await limit.getAttribute("aria-invalid"), null);
  await choose(page, IDS.create);
  const body = page.locator(`#form-${IDS.create} [name=body]`);
  await body.fill(`{"${textField("Rex")}":""}`);
  await body.press("Control+Enter");
  await until(page, "#head .status", "400");
  assertEquals(await body.getAttribute("aria-invalid"), "true");
  await body.fill(ITEM);
  await body.press("Control+Enter");
  await until(page, "#head .status", "201");
});

test("page offers to copy a new key with its first answer, on a phone", PHONE, async ({ page }) => {
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  const key = await signUp(page);
  assertEquals((await page.locator("#next button:visible").allTextContents())[0], "Copy your key");
  await page.locator("#next button").first().tap();
  await until(page, "#key-note", "The key stays in this tab.");
  assertEquals(await page.evaluate(() => navigator.clipboard.readText()), key);
});

test("page copies the guide and the operations as Markdown", async ({ page, origin }) => {
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await press(page, "Copy as Markdown");
  await until(page, "#news", "Copied");
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert(copied.includes(`curl -i '${origin}${PATH}'`) && copied.includes("## Retries"));
  assertEquals(copied.match(/THIS_HOST|\n{3}/g), null);
});

test("page adds a key without using it, and revokes it", async ({ page }) => {
  page.on("dialog", (dialog) => dialog.accept());
  const key = await signUp(page);

  assertEquals(await call(page, "addKey"), "201");
  await shows(page, {
    "#message": /^Copy now: keys are shown only once\. .* These forms have its id now\.$/,
    "#next button:visible": ["Copy the added key", "Revoke an added key", "Copy"],
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

for (const options of [WIDE, PHONE]) {
  const width = `${options.viewport.width} px wide`;
  test(`page is at one place: contents, text and console, ${width}`, options, async ({ page, origin }) => {
    const opens = async (id: string) => {
      if (options === PHONE) await press(page, "Contents");
      await page.locator(`#contents [href="#${id}"]`).click();
      await page.locator(`#contents [aria-current][href="#${id}"]`).waitFor({ state: "attached" });
      await shows(page, { "#contents": options === WIDE });
    };
    const isChosen = (id: string) =>
      eventually(page, async () => assertEquals(await page.locator("#operation").inputValue(), id));
    const isAt = async (id: string, status: string) => {
      await isChosen(id);
      await page.waitForURL(`**/#${id}`);
      await shows(page, { [`#form-${id}`]: true, "#head": `${status} an example, until you send` });
    };
    await roomInMinute();
    await signUp(page);
    await opens(IDS.create);
    await isAt(IDS.create, "201");
    await choose(page, "getUsage");
    await isAt("getUsage", "200");
    await opens("limits");
    await isChosen("getUsage");
    await page.evaluate(() => scrollTo(0, 0));
    await page.locator("#contents [aria-current]").waitFor({ state: "detached" });
    await opens(IDS.update);
    await page.goBack();
    await page.goBack();
    await isAt("getUsage", "200");
    await page.locator("#log summary").click();
    await page.locator("#entries button").click();
    await shows(page, { "#head .status": "200" });
    await page.goto(`${origin}/#rotateKey`);
    await isChosen("rotateKey");
    assert((await text(page, "#first-call")).startsWith(`curl -i '${origin}${PATH}'`));
  });
}

test("page finds operations by statuses, codes, headers and text, and counts them", async ({ page }) => {
  const find = async (words: string) => {
    await page.locator("#filter").fill(words);
    const links = page.locator("#contents li > a:visible");
    return await links.evaluateAll((all) => all.map((link) => link.getAttribute("href")));
  };
  await page.keyboard.press("/");
  await shows(page, { "#filter:focus": true });
  await page.keyboard.type("/");
  assertEquals(await page.locator("#filter").inputValue(), "/");
  assertEquals((await find("if-match")).filter((href) => !/-|errors/.test(href ?? "")), [
    `#${IDS.update}`,
    `#${IDS.delete}`,
  ]);
  for (const words of ["429", "rate_limit_day", "retry-after", "JSON.parse"]) {
    const found = await find(words);
    assert(found.length > 0, words);
    await shows(page, { "#found": new RegExp(`^${found.length} of \\d+$`) });
  }
  assertEquals(await find("nothing like this"), []);
  await shows(page, { "#found": "Nothing matches." });
  assert((await find("")).length > 20);
  await shows(page, { "#found": "" });
});

test("page knows sections whose names have any letters", async ({ page, origin, noise }) => {
  await page.route(`${origin}/`, async (route) => {
    const response = await route.fetch();
    const body = (await response.text()).replaceAll(/(?<=id="|href="#)limits\b/g, "größe");
    await route.fulfill({ response, body });
  });
  await page.reload();
  await page.locator("#contents [href='#größe']").click();
  await page.locator("#contents [href='#größe'][aria-current]").waitFor();
  assertEquals(noise, []);
});

test("page says nothing of an error that has no text, and what to do after one that it knows", async ({ page }) => {
  await signUp(page);
  await page.route(`**${PATH}*`, (route) => route.fulfill({ status: 400 }));
  assertEquals(await call(page, IDS.list), "400");
  await shows(page, { "#message": "" });
  const known = page.locator("dt[id|=error]:has(+ dd span)").first();
  const code = (await known.getAttribute("id") ?? "").replace("error-", "");
  const advice = await text(page, `#error-${code} + dd span`);
  assert(advice !== "");
  await answer(page, `${PATH}*`, [400, code, "It went wrong."]);
  assertEquals(await call(page), "400");
  await shows(page, { "#message": "It went wrong.", "#error": code, "#todo": advice });
});
