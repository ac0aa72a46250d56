import { assert, assertEquals, assertMatch } from "@std/assert";
import { call, choose, signUp, visit } from "./browser.ts";

const SPENT = /status of 429/;

Deno.test("page lets a visitor sign up, add an animal and see it listed, digit for digit", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  await signUp(page);
  await choose(page, "createPet");
  await page.locator("#createPet-name").fill("Rex");
  await page.locator("#createPet-categoryId").fill("9223372036854775807");

  assertMatch(await call(page), /^201/);
  await choose(page, "listPets");
  assertMatch(await call(page), /^200/);

  const body = await page.locator("#answer-body").textContent() ?? "";
  assertMatch(body, /"name": "Rex",\s+"categoryId": 9223372036854775807,/);
  assertMatch(await page.locator("#meter-minute-left").textContent() ?? "", /^(?:5[89]|60) of 60 left$/);
  assertMatch(await page.locator("#meter-day-left").textContent() ?? "", /^(?:99[89]|1,000) of 1,000 left$/);
  assertEquals(visitor.noise, []);
  assertEquals(visitor.origins, [visitor.origin]);
});

Deno.test("page shows an animal's name as text, whatever it is", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  const name = "<img src=x onerror=alert(1)>";
  await signUp(page);
  await choose(page, "createPet");
  await page.locator("#createPet-name").fill(name);

  assertMatch(await call(page), /^201/);

  assert((await page.locator("#answer-body").textContent())?.includes(JSON.stringify(name)));
  assertEquals(await page.locator("#answer img, #sample img").count(), 0);
  assertEquals(visitor.noise, []);
});

Deno.test("page shows the limit as it is spent, and waits until it may send again", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  await page.clock.install();
  await page.reload();
  await signUp(page);
  let status = "";
  for (let count = 0; count < 120 && !status.startsWith("429"); count++) status = await call(page);

  assertEquals(status, "429 Too Many Requests");
  assertEquals(await page.locator("#meter-minute-left").textContent(), "0 of 60 left");
  assertMatch(await page.locator("#answer-advice").textContent() ?? "", /^Try again after Retry-After/);
  const send = page.locator("#send");
  assertMatch(await send.textContent() ?? "", /^Wait \d+ s$/);
  await choose(page, "getOpenApi");
  assertEquals(await send.textContent(), "Send");
  await choose(page, "listPets");
  await page.locator("#key-input").press("End+Space");
  assertMatch(await send.textContent() ?? "", /^Wait \d+ s$/);
  let sent = 0;
  page.on("request", () => sent++);
  await send.press("Enter");
  await page.clock.runFor(61_000);
  assertEquals([await send.textContent(), sent], ["Send", 0]);
  assertEquals(await page.locator("#meter-minute-left").textContent(), "60 of 60 left");

  await page.route("**/v1/pets", (route) => route.fulfill({ status: 200, json: [] }), { times: 1 });
  assertMatch(await call(page), /^200/);
  assertEquals(visitor.noise.filter((line) => !SPENT.test(line)), []);
});

Deno.test("page keeps an address waiting whatever key is typed", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  const headers = { "retry-after": "60" };
  await page.route("**/v1/accounts", (route) => route.fulfill({ status: 429, headers, json: {} }));
  await choose(page, "createAccount");
  await page.locator("#createAccount-name").fill("me");
  assertMatch(await call(page), /^429/);

  await page.locator("#key-input").fill("as_test_");

  assertMatch(await page.locator("#send").textContent() ?? "", /^Wait \d+ s$/);
  await choose(page, "getOpenApi");
  assertEquals(await page.locator("#send").textContent(), "Send");
});

Deno.test("page says that a key cannot be sent when it has a character that no header may have", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  await page.locator("#key-input").fill("as_test_79Tk…osZs");

  await page.locator("#send").click();

  await page.locator("#answer-advice", { hasText: "It was not sent: a header" }).waitFor();
  assertEquals(await page.locator("#answer-status").textContent(), "No answer");
});

Deno.test("page keeps the key to itself, and warns once of leaving before it is copied", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  await signUp(page);
  const key = await page.locator("#key-input").inputValue();
  assertMatch(key, /^as_test_\w{38}$/);
  const html = await page.content();
  const stored = await page.evaluate(() => JSON.stringify([localStorage, sessionStorage, document.cookie]));
  assert(!html.includes(key) && !stored.includes(key) && !page.url().includes(key));

  const dialogs: string[] = [];
  page.on("dialog", async (dialog) => {
    dialogs.push(dialog.type());
    await dialog.dismiss();
  });
  await page.locator("#key-input").evaluate((input: HTMLInputElement) => input.setSelectionRange(0, 8));
  await page.keyboard.press("Control+C");
  await page.reload({ timeout: 1_000 }).catch(() => {});
  await page.reload();
  assertEquals(dialogs, ["beforeunload"]);
});

Deno.test("page asks before it gives up a key that is not copied, or closes the account", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await signUp(page);
  const key = await page.locator("#key-input").inputValue();
  const asked: string[] = [];
  page.on("dialog", async (dialog) => {
    asked.push(dialog.message());
    await dialog.dismiss();
  });
  let sent = 0;
  page.on("request", () => sent++);

  await page.getByRole("button", { name: "Make a key" }).click();
  for (const operation of ["createAccount", "closeAccount"]) {
    await choose(page, operation);
    await page.locator("#send").click();
  }
  assertEquals(asked.map((question) => question.split(",")[0]), [
    "Your key is not copied",
    "Your key is not copied",
    "This closes your account for good. Go on?",
  ]);
  assertEquals([await page.locator("#key-input").inputValue(), sent], [key, 0]);
  assert(!(await page.locator("#announcement").textContent())?.includes("Sending"));

  await page.locator("#key-copy").click();
  await page.locator("#key-copy", { hasText: "Copied" }).waitFor();
  await choose(page, "createAccount");
  assertMatch(await call(page), /^201/);
  assert(await page.locator("#key-input").inputValue() !== key);
  await page.locator("#answer-body").evaluate((body) => getSelection()?.selectAllChildren(body));
  await page.keyboard.press("Control+C");
  await page.locator("#send").click();
  await page.locator("#console:not([aria-busy])").waitFor();
  assertEquals(asked.length, 3);
});

Deno.test("page shows the limits of the key that calls, not of the address or of a key before", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  const left = page.locator("#meter-minute-left");
  await signUp(page);
  await call(page);
  const known = await left.textContent() ?? "";
  assertMatch(known, /^(?:59|60) of 60 left$/);
  await choose(page, "createAccount");
  await page.locator("#createAccount-name").fill("");
  page.once("dialog", (dialog) => dialog.accept());
  assertMatch(await call(page), /^400/);
  assertEquals(await left.textContent(), known);

  await choose(page, "rotateKey");
  assertMatch(await call(page), /^201/);
  assertMatch(await page.locator("#answer-advice").textContent() ?? "", /^This is your new key/);
  assertMatch(await left.textContent() ?? "", /^5[89] of 60 left$/);

  let goOn = () => {};
  const held = new Promise<void>((resolve) => goOn = resolve);
  await page.route("**/v1/pets", async (route) => (await held, await route.continue()));
  await choose(page, "listPets");
  await page.locator("#send").click();
  await page.locator("#key-input").fill("as_test_another");
  goOn();
  await page.locator("#answer-time", { hasText: "GET /v1/pets" }).waitFor();
  assertEquals(await left.textContent(), "known after a call");
});

Deno.test("page keeps the key that it has when it is sent an example of one", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  await signUp(page);
  const key = await page.locator("#key-input").inputValue();
  await choose(page, "getOpenApi");

  assertMatch(await call(page), /^200/);

  assertMatch(await page.locator("#answer-body").textContent() ?? "", /"apiKey": "as_test_/);
  assertEquals(await page.locator("#answer-advice").textContent(), "");
  assertEquals(await page.locator("#key-input").inputValue(), key);
});

Deno.test("page says so when no key comes of a sign-up", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  await page.route("**/v1/accounts", (route) => route.fulfill({ status: 502, body: "<h1>Bad Gateway</h1>" }));
  await page.getByLabel("Your name").fill("Zoë");
  await page.getByRole("button", { name: "Make a key" }).click();

  await page.getByText("No key came (502 Bad Gateway): try again later.").waitFor();
});

Deno.test("page copies the call with the key in it, and says so", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await signUp(page);
  await page.getByRole("radio", { name: "curl" }).check();
  await page.locator("#sample-copy").click();

  await page.locator("#sample-copy", { hasText: "Copied" }).waitFor();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  const key = await page.locator("#key-input").inputValue();
  assertEquals(copied, `curl -i '${visitor.origin}/v1/pets' \\\n  -H 'Authorization: Bearer ${key}'`);
  assert(!(await page.locator("#sample").textContent())?.includes(key));
});

Deno.test("page follows the link to the next page", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  await signUp(page);
  await choose(page, "createPet");
  for (const name of ["Rex", "Tom"]) {
    await page.locator("#createPet-name").fill(name);
    await call(page);
  }
  await choose(page, "listPets");
  await page.locator("#listPets-limit").fill("1");
  await call(page);
  await choose(page, "getAccount");

  await page.getByRole("button", { name: "Next page" }).click();

  await page.locator("#answer-body", { hasText: "Tom" }).waitFor();
  assertEquals(await page.locator("#next-page").isVisible(), false);
  assertEquals(await page.locator(":focus").getAttribute("id"), "answer");
});
