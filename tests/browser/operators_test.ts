import { assert, assertEquals } from "@std/assert";
import { check } from "./axe.ts";
import { PHONE, press, shows, SIZES, text, until } from "./browser.ts";
import { enter, goTo, post, READ_TOKEN, TOKEN, visitOperators } from "./operators.ts";

/** A name with markup. */
const HOSTILE = "<img src=x onerror=alert(1)>";

Deno.test("operators' page shows nothing without the token, keeps it in memory only, and forgets it", async () => {
  await using visitor = await visitOperators();
  const { page, origin, noise } = visitor;
  assertEquals(page.url(), `${origin}/operator/`);
  await shows(page, { "#views": "", "#view": false, "#rows": "" });
  await enter(page, "a-wrong-token-of-more-than-32-characters");
  await until(page, "#note.bad", "This token is not valid.");
  await shows(page, { "#views": "", "#token[aria-invalid]:focus": true });
  await enter(page);
  await until(page, "#title", "Accounts");
  await shows(page, {
    "#enter": false,
    "#views li": [
      "Accounts",
      "Loans",
      "Rooms",
      "Bookings",
      "Invoices",
      "Payments",
      "Close the desk",
      "Follow the changes of all items",
      "Switch the feed of changes on or off",
    ],
  });
  assert(await page.locator("nav").evaluate((nav) => nav.scrollWidth <= nav.clientWidth));
  const kept = () =>
    page.evaluate(() => [JSON.stringify(sessionStorage), JSON.stringify(localStorage), document.cookie]);
  assertEquals(await kept(), ["{}", "{}", ""]);
  assert(!page.url().includes(TOKEN) && !(await page.content()).includes(TOKEN));
  assertEquals(await page.locator("#token").inputValue(), "");
  await press(page, "Forget the token");
  await page.locator("#enter:visible").waitFor();
  await shows(page, { "#views": "", "#view": false });
  assertEquals(noise.filter((text) => !/status of 401/.test(text)), []);
});

Deno.test("operators' page shows accounts with hostile names as text, and what can be done with a row", async () => {
  await using visitor = await visitOperators();
  const { page, origin } = visitor;
  const [first] = await Promise.all(
    [{ name: HOSTILE, plan: "trial" }, { name: "Ben", plan: "team" }].map((json) =>
      post(origin, "accounts", json)
    ),
  );
  await enter(page);
  await until(page, "#pages", "2 shown.");
  await shows(page, {
    "#rows img, #panel img": [],
    "#rows thead th": /^id$/,
    "#same": /^All have environment: staging · state: active/,
  });
  assert((await page.locator("#rows td").allTextContents()).includes(HOSTILE));
  await shows(page, { "#rows .meter .prints svg": Array(40).fill("") });
  await press(page, first.account.id);
  await shows(page, { "#subject:focus": first.account.id });
  assert((await page.locator("#facts dd").allTextContents()).includes(HOSTILE));

  await press(page, "Change the name or the plan");
  await page.locator("#inputs [name=plan]").selectOption("team");
  await press(page, "Send", true);
  await until(page, "#answer .status", "200");
  await until(page, "#same", "plan: team");
  await until(page, "#facts", "team");
  const dialogs: string[] = [];
  page.on(
    "dialog",
    (dialog) => (dialogs.push(dialog.message()), dialogs.length > 1 ? dialog.accept() : dialog.dismiss()),
  );
  await press(page, "Close an account");
  await press(page, "Send", true);
  await shows(page, { "#answer": false });
  await press(page, "Send", true);
  await until(page, "#answer .status", "200");
  await until(page, "#rows .choice", "closed");
  assertEquals(dialogs, Array(2).fill("This closes the account permanently. Continue?"));
  await press(page, "Give an account a new API key");
  await press(page, "Send", true);
  await until(page, "#answer .status", "4");

  await page.locator("#row-actions a", { hasText: "usage" }).click();
  await until(page, "#title", `Get the usage of an account per day. ${first.account.id}`);
  await until(page, "#pages", "shown.");
  await shows(page, {
    "#panel": false,
    "#rows thead th": ["date"],
    "#same": "All have admitted: 0 · refused: 0",
  });
  await page.goBack();
  await until(page, "#title", "Accounts");
});

Deno.test("operators' page shows the list of its address, although another one still loads", async () => {
  await using visitor = await visitOperators();
  const { page, origin, noise } = visitor;
  const { account: { id } } = await post(origin, "accounts", { name: "Ann", plan: "trial" });
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const late = page.waitForResponse(/\/usage$/);
  await page.route("**/usage", async (route) => {
    await released;
    await route.continue();
  });
  await enter(page);
  await until(page, "#pages", "1 shown.");
  await press(page, id);
  await page.locator("#row-actions a", { hasText: "usage" }).click();
  await until(page, "#title", `Get the usage of an account per day. ${id}`);
  await shows(page, { "#panel": false, "#rows": "" });
  await page.goBack();
  await until(page, "#title", "Accounts");
  await until(page, "#pages", "1 shown.");
  release();
  await (await late).finished();
  await shows(page, { "#title": "Accounts", "#rows tbody th": id, "#view[aria-busy]": false });
  for (const hash of ["#content", "#/operator/v1/none", "#/operator/v1/accounts/%zz/usage?%"]) {
    await page.evaluate((hash) => location.hash = hash, hash);
  }
  await until(page, "#notice", "404");
  const title = await page.evaluate(async () => {
    const moved = new Promise((resolve) => addEventListener("hashchange", resolve));
    location.hash = "#content";
    await moved;
    return document.title;
  });
  assertEquals(title, "Get the usage of an account per day. %zz");
  assertEquals(noise.filter((text) => !/status of 4\d\d/.test(text)), []);
});

Deno.test("operators' page keeps its panel until it has shown a new key, which it keeps nowhere else", async () => {
  await using visitor = await visitOperators();
  const { page } = visitor;
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  await enter(page);
  await until(page, "#pages", "Nothing is here.");
  await page.route("**/operator/v1/accounts", async (route) => {
    await released;
    await route.continue();
  });
  await press(page, "Create an account");
  await page.locator("#inputs [name=name]").fill("Ann");
  await page.locator("#inputs [name=plan]").selectOption("trial");
  await press(page, "Send", true);
  await page.locator("#panel[aria-busy]").waitFor();
  await press(page, "Close", true);
  await page.keyboard.press("Escape");
  await shows(page, { "#panel": true });
  release();
  await until(page, "#answer .status", "201");
  await shows(page, {
    "#message": /^Copy the key: it is shown only now\./,
    "#next button": ["Copy the key", "Copy"],
  });
  await until(page, "#pages", "1 shown.");
  const [, key = ""] = /"apiKey": "(\w+)"/.exec(await text(page, "#body")) ?? [];
  assert((await page.content()).includes(key));
  await page.keyboard.press("Escape");
  await shows(page, { "#panel": false });
  assert(key !== "" && !(await page.content()).includes(key));
});

Deno.test("operators' page shows the list, filter, next page and action of a part that it does not know", async () => {
  await using visitor = await visitOperators();
  const { page } = visitor;
  const answers: string[] = [];
  page.on("dialog", (dialog) => (answers.push(dialog.message()), dialog.accept()));
  await enter(page);
  await goTo(page, "Loans");
  await shows(page, {
    "#rows thead th": ["loan number", "borrower", "tool", "hours"],
    "#rows tbody tr:nth-child(2) td": ["<b>Ben</b>", "drill", "5 of 10"],
    "#rows tbody tr:nth-child(2) .prints .ok": Array(5).fill(""),
    "#same": "All have due at UTC: 11 Jan 2027, 09:00",
  });
  await page.locator("#pages a", { hasText: "Next page" }).click();
  await until(page, "#rows", "Cleo");
  assertEquals(new URL(page.url()).hash, "#/operator/v1/loans?after=2");
  await shows(page, { "#rows .prints .refused": Array(10).fill(""), "#pages a": ["First page"] });
  await page.locator("#pages a").click();
  await until(page, "#rows", "Ann");
  await page.locator("#filters [name=tool]").selectOption("drill");
  await press(page, "Show");
  await until(page, "#pages", "1 shown.");

  await press(page, "2", true);
  await press(page, "Remind the borrowers");
  assertEquals(await page.locator("#inputs [name=loanNumbers]").inputValue(), "[2]");
  await press(page, "Send", true);
  await until(page, "#answer .status", "204");
  await press(page, "Take the tool back");
  await page.locator("#inputs [name=isBroken]").selectOption("false");
  await press(page, "Send", true);
  await until(page, "#answer .status", "204");
  await until(page, "#pages", "Nothing is here.");
  assertEquals(answers, ["Is the tool in order?"]);
  await press(page, "Close", true);
  await press(page, "Close the desk");
  await shows(page, { "#subject": "Close the desk", "#target": "/operator/v1/desk/close" });
});

Deno.test("operators' page adds and deletes items of a fork's private collection", async () => {
  await using visitor = await visitOperators();
  const { page, origin } = visitor;
  page.on("dialog", (dialog) => dialog.accept());
  const { account } = await post(origin, "accounts", { name: "Ann" });
  await enter(page);
  await goTo(page, "Rooms");
  await press(page, "Add a room for any account");
  await page.locator("#inputs [name=name]").fill("Blue");
  await page.locator("#inputs [name=seats]").fill("x");
  await press(page, "Send", true);
  await until(page, "#answer .status", "400");
  await page.locator("#inputs [name=seats]").fill("8");
  await page.locator("#inputs [name=hasScreen]").selectOption("true");
  await press(page, "Send", true);
  await until(page, "#answer .status", "201");
  await press(page, "Close", true);
  const booking = {
    roomId: 1,
    title: `${HOSTILE} \u202e`,
    startsAt: "2027-01-11T09:00:00Z",
    endsAt: "2027-01-11T10:00:00Z",
  };
  await post(origin, "bookings", { ...booking, state: "planned", accountId: account.id });
  await goTo(page, "Bookings");
  assert((await page.locator("#rows td").allTextContents()).includes(`${HOSTILE} \u202e`));
  await shows(page, { "#rows td[data-label='account id']": account.id });
  await press(page, "1", true);
  await press(page, "Delete a booking of any account");
  await press(page, "Delete", true);
  await until(page, "#answer .status", "204");
  await until(page, "#pages", "Nothing is here.");
});

Deno.test("operators' page says why a token that only reads cannot change anything", async () => {
  await using visitor = await visitOperators();
  const { page } = visitor;
  await enter(page, READ_TOKEN);
  await until(page, "#title", "Accounts");
  await press(page, "Create an account");
  await page.locator("#inputs [name=name]").fill("Ann");
  await press(page, "Send", true);
  await until(page, "#answer .status", "403");
  await shows(page, { "#message": /^This token can only read/ });
});

for (
  const [name, options] of [
    ["light", { colorScheme: "light" }],
    ["dark", { colorScheme: "dark" }],
    ["on a phone", PHONE],
    ["Firefox, forced colours", { browser: "firefox", forcedColors: "active" }],
    ["Firefox, 32 px", { browser: "firefox", rootSize: 32 }],
  ] as const
) {
  Deno.test(`operators' page fits at each size, and passes the checks of axe: ${name}`, async () => {
    await using visitor = await visitOperators(options);
    const { page, origin } = visitor;
    const without = "forcedColors" in options ? ["color-contrast", "color-contrast-enhanced"] : [];
    for (const name of ["Ann", HOSTILE, "x".repeat(90)]) {
      await post(origin, "accounts", { name, reference: name.slice(0, 3) });
    }
    await check(page, "token", "html", without);
    await enter(page);
    await until(page, "#pages", "3 shown.");
    for (const [width, height] of "isMobile" in options ? [[390, 844]] as const : SIZES) {
      await page.setViewportSize({ width, height });
      await check(page, `list, ${width} px`, "html", without);
    }
    await page.locator("#rows button").first().click();
    await press(page, "Change the name or the plan");
    await press(page, "Send", true);
    await until(page, "#answer .status", "200");
    await check(page, "row", "#panel", without);
    assertEquals(await text(page, "#answer .status"), "200");
  });
}
