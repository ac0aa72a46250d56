import { assert, assertEquals } from "@std/assert";
import { check } from "./axe.ts";
import { eventually, PHONE, press, shows, SIZES, text, until } from "./browser.ts";
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
    page.evaluate(() => [
      ...[sessionStorage, localStorage, history.state].map((it) => JSON.stringify(it)),
      document.cookie,
    ]);
  assertEquals(await kept(), ["{}", "{}", "null", ""]);
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
  const asking = [
    "Give an account a new API key",
    "Set the usage of an account to zero",
    "Close an account",
    "Delete a closed account",
  ];
  await shows(page, { "#row-actions > .bad": asking, "#row-actions > .bad ~ :not(.bad)": [] });
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
  await eventually(page, () => assertEquals(dialogs.length, 1));
  await shows(page, { "#panel:not([aria-busy])": true, "#answer": false });
  await press(page, "Send", true);
  await until(page, "#answer .status", "200");
  await until(page, "#rows .choice", "closed");
  assertEquals(dialogs, Array(2).fill(`${first.account.id}: This closes the account permanently. Continue?`));
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

Deno.test("operators' page shows any text of clients as text, and within its width", async () => {
  await using visitor = await visitOperators();
  const { page, noise } = visitor;
  const row = { tool: `${HOSTILE}\u202e`, note: "javascript:alert(1)", hours: { used: 1, allowed: 2 } };
  const json = ["x".repeat(10_000), "<svg onload=alert(1)>".repeat(500)].map((borrower, index) => ({
    ...{ ...row, borrower, loanNumber: index + 1 },
  }));
  await page.route("**/operator/v1/loans", (route) => route.fulfill({ json }));
  await enter(page);
  await goTo(page, "Loans");
  assertEquals(await page.locator("#same > bdi").allTextContents(), [
    `note: ${row.note}`,
    `tool: ${row.tool}`,
    "hours: 1 of 2",
  ]);
  for (const [width, height] of [[320, 568], [1280, 800]] as const) {
    await page.setViewportSize({ width, height });
    await press(page, "2", true);
    const wider = await page.evaluate(() =>
      [document.documentElement, ...document.querySelectorAll("#panel")].filter((it) =>
        it.scrollWidth > it.clientWidth
      )
        .map(({ id }) => id)
    );
    assertEquals(wider, [], `${width} px`);
    assert((await page.locator("#facts dd").allTextContents()).includes(json[1]?.borrower ?? ""));
    await press(page, "Close", true);
  }
  await shows(page, { "#rows img, #rows svg[onload], a[href^='javascript']": [] });
  assertEquals(noise, []);
});

Deno.test("operators' page sends the token to nothing but the service, and says what a proxy answers", async () => {
  await using visitor = await visitOperators();
  const { page, origin } = visitor;
  const sent: string[] = [];
  page.on("request", (request) => {
    if (request.headers()["authorization"]) sent.push(request.url().slice(origin.length));
  });
  const answer = async (
    path: string,
    given: Parameters<Parameters<Parameters<typeof page.route>[1]>[0]["fulfill"]>[0],
  ) => {
    await page.unroute(`**${path}`);
    await page.route(`**${path}`, (route) => route.fulfill(given));
  };
  const show = (hash: string) => page.evaluate((hash) => location.hash = hash, hash);
  const html = { contentType: "text/html", body: "<p>Log in" };
  await answer("/operator/forms", { ...html, status: 502 });
  await enter(page);
  await until(page, "#note", "502 Bad Gateway.");
  await answer("/operator/forms", { ...html, status: 200 });
  await enter(page);
  await until(page, "#note", "This is not an answer of the service.");
  await page.unroute("**/operator/forms");
  await show("#/operator/v1/accounts/..\\..\\..\\collect/usage");
  await enter(page);
  await until(page, "#notice", "Not sent. A value in the path leads to another path.");
  for (const location of ["https://other.example/", "/collect"]) {
    await answer("/operator/v1/loans", { status: 307, headers: { location } });
    await show("#/operator/v1/loans");
    await until(page, "#notice", "No response.");
    await show("#/operator/v1/rooms");
    await until(page, "#pages", "Nothing is here.");
  }
  await answer("/operator/v1/loans", { ...html, status: 200 });
  await show("#/operator/v1/loans");
  await until(page, "#notice", "This is not an answer of the service.");
  await answer("/operator/v1/desk/close", { status: 503, json: { code: "a b!", message: "Later." } });
  await press(page, "Close the desk");
  await press(page, "Send", true);
  await until(page, "#message", "Later.");
  const own = /^\/operator\/(forms|v1\/(accounts|loans|rooms|desk\/close))$/;
  assertEquals(sent.filter((url) => !own.test(url)), []);
});

Deno.test("operators' page shows a new key although the token ends meanwhile, then forgets all, and says why", async () => {
  await using visitor = await visitOperators();
  const { page } = visitor;
  page.on("dialog", (dialog) => dialog.accept());
  await enter(page);
  await until(page, "#pages", "Nothing is here.");
  await page.route("**/operator/v1/accounts", async (route) => {
    if (route.request().method() === "POST") await route.continue();
    else await route.fulfill({ status: 401, json: { message: "The token has ended." } });
  });
  await press(page, "Create an account");
  await page.locator("#inputs [name=name]").fill("Ann");
  await press(page, "Send", true);
  await until(page, "#notice", "401 Unauthorized. The token has ended.");
  assert(/"apiKey": "\w+"/.test(await text(page, "#body")));
  await press(page, "Close", true);
  await goTo(page, "Rooms");
  await page.locator("#views a", { hasText: "Accounts" }).click();
  const ended = {
    "#note.bad": "The token is not valid any more. Enter another one.",
    "#token:focus": true,
    "#views": "",
    "#view": false,
    "#rows": "",
    "#subject": "",
  };
  await shows(page, ended);
  await page.unroute("**/operator/v1/accounts");
  await enter(page);
  await until(page, "#title", "Accounts");
  await page.route("**/operator/v1/accounts", (route) => route.fulfill({ status: 401 }));
  await press(page, "Create an account");
  await page.locator("#inputs [name=name]").fill("Ann");
  await press(page, "Send", true);
  await shows(page, {
    ...ended,
    "#note.bad":
      "The token is not valid any more. Enter another one. Nothing was changed: fill in the form again.",
  });
  await page.reload();
  await shows(page, { "#note": /^Only the memory/ });
  await page.unroute("**/operator/v1/accounts");
  await enter(page);
  await until(page, "#title", "Accounts");
  await page.evaluate(() => {
    setTimeout(() => dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true })));
  });
  await page.locator("#enter:visible").waitFor();
  await shows(page, { "#views": "", "#view": false });
});

Deno.test("operators' page keeps its panel until it has shown a new key, and asks before it is lost", async () => {
  await using visitor = await visitOperators();
  const { page } = visitor;
  const dialogs: string[] = [];
  page.on("dialog", (dialog) => (dialogs.push(dialog.type()), dialog.dismiss()));
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
  await page.reload({ timeout: 1_000 }).catch(() => {});
  await eventually(page, () => assertEquals(dialogs.splice(0), ["beforeunload"]));
  await shows(page, { "#panel": true });
  release();
  await until(page, "#answer .status", "201");
  await shows(page, {
    "#message": /^Copy now: keys are shown only once\./,
    "#next button": ["Copy the key", "Copy"],
    "#next .filled": ["Copy the key"],
  });
  assert(
    await page.locator("#next .filled").evaluate((copying) => {
      const { left, top, width, height } = copying.getBoundingClientRect();
      return document.elementFromPoint(left + width / 2, top + height / 2) === copying;
    }),
  );
  await until(page, "#pages", "1 shown.");
  const [, key = ""] = /"apiKey": "(\w+)"/.exec(await text(page, "#body")) ?? [];
  assert(key !== "");
  for (
    const [at, leave] of [
      () => page.keyboard.press("Escape"),
      () => press(page, "Close", true),
      () => press(page, "Send", true),
      () => page.evaluate(() => location.hash = "#/operator/v1/rooms"),
      () => page.reload({ timeout: 1_000 }).catch(() => {}),
    ].entries()
  ) {
    await leave();
    await eventually(page, () => assertEquals(dialogs.length, at + 1));
    await shows(page, { "#panel": true, "#body": new RegExp(key) });
  }
  assertEquals(dialogs, [...Array(4).fill("confirm"), "beforeunload"]);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await press(page, "Copy the response");
  await until(page, "#next", "Copied");
  await shows(page, { "#next .filled": [] });
  await page.keyboard.press("Escape");
  await shows(page, { "#panel": false });
  await eventually(page, async () => assert(!(await page.content()).includes(key)));
  assertEquals(dialogs.length, 5);
});

Deno.test("operators' page asks before another form takes the place of a new key, until its text is copied", async () => {
  await using visitor = await visitOperators();
  const { page, origin } = visitor;
  const { account: { id } } = await post(origin, "accounts", { name: "Ann", plan: "trial" });
  const questions: string[] = [];
  page.on("dialog", async (dialog) => {
    questions.push(dialog.message());
    await (dialog.message().startsWith(id) ? dialog.accept() : dialog.dismiss());
  });
  await enter(page);
  await press(page, id);
  await press(page, "Give an account a new API key");
  await press(page, "Send", true);
  await until(page, "#answer .status", "201");
  await press(page, "Change the name or the plan");
  assertEquals(questions.map((question) => question.split(" ")[0]), [`${id}:`, "The"]);
  await shows(page, { "#summary": "Give an account a new API key", "#body": /"apiKey": "\w+"/ });
  await page.locator("#body").selectText();
  await page.keyboard.press("Control+C");
  await press(page, "Change the name or the plan");
  await shows(page, { "#summary": /^Change the name or the plan/, "#answer": false });
  assertEquals(questions.length, 2);
});

Deno.test("operators' page asks once before several new keys are lost, and copies them one a line", async () => {
  await using visitor = await visitOperators();
  const { page } = visitor;
  const questions: string[] = [];
  page.on(
    "dialog",
    (dialog) => (questions.push(dialog.message()), questions.length > 1 ? dialog.accept() : dialog.dismiss()),
  );
  const createTwo = async () => {
    await press(page, "Create accounts");
    await page.locator("#inputs [name=accounts]").fill('[{"name":"Ann"},{"name":"Ben"}]');
    await press(page, "Send", true);
    await until(page, "#answer .status", "200");
  };
  await enter(page);
  await createTwo();
  await shows(page, {
    "#message": /^Copy now: keys are shown only once\./,
    "#next button": ["Copy the keys", "Copy"],
  });
  await press(page, "Close", true);
  await eventually(page, () => assertEquals(questions.length, 1));
  await shows(page, { "#panel": true });
  const keys = [...(await text(page, "#body")).matchAll(/"apiKey": "(\w+)"/g)].map(([, key]) => key);
  assertEquals(keys.length, 2);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await press(page, "Copy the keys");
  await until(page, "#next", "Copied");
  assertEquals(await page.evaluate(() => navigator.clipboard.readText()), keys.join("\n"));
  await press(page, "Close", true);
  await shows(page, { "#panel": false });
  assertEquals(questions.length, 1);
  await createTwo();
  await press(page, "Close", true);
  await shows(page, { "#panel": false });
  await createTwo();
  assertEquals(questions.length, 2);
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
  assertEquals(answers, ["2: Is the tool in order?"]);
  await press(page, "Close", true);
  await press(page, "Close the desk");
  await shows(page, {
    "#subject": "Close the desk",
    "#target": "/operator/v1/desk/close",
    "#row-actions > *, #facts > *": [],
  });
});

Deno.test("operators' page asks for required fields before its question, and shows defaults and what stays", async () => {
  await using visitor = await visitOperators();
  const { page, origin } = visitor;
  const { account: { id } } = await post(origin, "accounts", { name: "Ann", plan: "trial" });
  const questions: string[] = [];
  page.on("dialog", (dialog) => (questions.push(dialog.message()), dialog.dismiss()));
  const placeholder = async (name: string) =>
    await page.locator(`#inputs [name=${name}]`).getAttribute("placeholder");
  await enter(page);
  await press(page, "Switch the feed of changes on or off");
  assertEquals(await placeholder("days"), "required");
  const days = page.locator("#inputs [name=days]");
  await press(page, "Send", true);
  await page.locator("#inputs [name=days]:focus:invalid").waitFor();
  await days.press("Control+Enter");
  assertEquals(questions, []);
  await days.fill("7");
  await days.press("Control+Enter");
  await eventually(page, () => assertEquals(questions.length, 1));
  await press(page, "Close", true);

  await press(page, id);
  await press(page, "Give an account a new API key");
  assertEquals(await placeholder("graceSeconds"), "0");
  await press(page, "Change the name or the plan");
  assertEquals([await placeholder("name"), await placeholder("reference")], ["Ann", "not sent"]);
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
  await page.locator("#inputs [name=hasScreen]").selectOption("true");
  await press(page, "Send", true);
  await until(page, "#answer .status", "400");
  await page.locator("#inputs [name=seats]").fill("8");
  await press(page, "Send", true);
  await until(page, "#answer .status", "201");
  await until(page, "#pages", "1 shown.");
  await press(page, "Send", true);
  await until(page, "#pages", "2 shown.");
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
