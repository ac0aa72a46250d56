import { assert, assertEquals, assertMatch } from "@std/assert";
import type { Page } from "playwright-core";
import { call, choose, isInView, paste, settle, signUp, status, visit } from "./browser.ts";

const FAILURE = /status of \d+/;

Deno.test("page creates a key and makes the first call with one press, then adds an animal", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  assertMatch(await signUp(page), /^as_test_\w{38}$/);
  assertEquals([await status(page), await page.locator("#answer-body").textContent()], ["200", "[]"]);
  assertEquals(await page.locator(":focus").getAttribute("id"), "send");
  assertMatch(
    await page.locator("#announcement").textContent() ?? "",
    /^Your key is shown only once\. Copy it now\. 200 OK .* The list is empty\.$/,
  );
  await page.getByRole("button", { name: "Add an animal", exact: true }).click();
  assertEquals(await page.locator("#operation").inputValue(), "createPet");
  await page.locator("#request-createPet textarea").fill('{"name":"Rex","categoryId":9223372036854775807}');

  assertEquals(await call(page), "201");
  await choose(page, "listPets");
  assertEquals(await call(page), "200");

  const body = await page.locator("#answer-body").textContent() ?? "";
  assertMatch(body, /"name": "Rex",\s+"categoryId": 9223372036854775807,/);
  assertMatch(await page.locator("#minute").textContent() ?? "", /^5[79] of 60 left$/);
  assertMatch(await page.locator("#day").textContent() ?? "", /^997 of 1,000 today$/);
  assertEquals(visitor.noise, []);
  assertEquals(visitor.origins, [visitor.origin]);
});

Deno.test("page asks for strict handling, so that a mistyped field is refused", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  await signUp(page);
  await choose(page, "createPet");
  await page.locator("#request-createPet textarea").fill('{"name":"Rex","categoryId":1,"staus":"sold"}');

  assertEquals(await call(page), "400");

  const message = await page.locator("#answer-message").textContent();
  assertEquals(message, "unknown member staus; did you mean status?");
});

Deno.test("page shows markup in an animal's name as isolated text", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  const name = "<img src=x onerror=alert(1)> \u202e";
  await signUp(page);
  await choose(page, "createPet");
  await page.locator("#request-createPet textarea").fill(JSON.stringify({ name, categoryId: 1 }));

  assertEquals(await call(page), "201");

  assert((await page.locator("#answer-body").textContent())?.includes(JSON.stringify(name)));
  assertEquals(await page.locator("#answer img, #sample img").count(), 0);
  const spans = page.locator("#answer-body .string");
  assertEquals(await spans.first().evaluate((span) => getComputedStyle(span).unicodeBidi), "isolate");
  assertEquals(visitor.noise, []);
});

Deno.test("page fills only the button of the next step, and its Send button waits after 429", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  const filled = () =>
    page.locator("#console button:visible").evaluateAll((buttons) =>
      buttons.filter((button) => getComputedStyle(button).backgroundColor.startsWith("oklch(0.94"))
        .map(({ textContent }) => textContent)
    );
  assertEquals(await filled(), ["Make a key and call"]);
  await page.getByRole("button", { name: "I have a key" }).click();
  assertEquals(await filled(), ["Use this key"]);
  await page.locator("#make-one").click();
  await page.clock.install();
  await page.reload();
  await signUp(page);
  assertEquals(await filled(), ["Send"]);
  let code = "";
  for (let count = 0; count < 120 && code !== "429"; count++) code = await call(page);

  assertEquals(code, "429");
  assertEquals(await filled(), []);
  assertEquals(await page.locator("#minute").textContent(), "0 of 60 left");
  assertMatch(await page.locator("#answer-advice").textContent() ?? "", /^Try again after Retry-After/);
  const send = page.locator("#send");
  assertMatch(await send.textContent() ?? "", /^Wait \d+ s$/);
  await choose(page, "getOpenApi");
  assertEquals(await send.textContent(), "Send");
  await choose(page, "listPets");
  let sent = 0;
  page.on("request", () => sent++);
  await send.press("Enter");
  await page.clock.runFor(61_000);
  assertEquals([await send.textContent(), sent], ["Send", 0]);
  assertEquals(await page.locator("#announcement").textContent(), "You can send again.");
  assertEquals(visitor.noise.filter((line) => !FAILURE.test(line)), []);
});

/** The first words of the visible steps to the first call. */
async function stepsOf(page: Page): Promise<string[]> {
  return await page.locator(".steps > li b:visible").allTextContents();
}

Deno.test("page offers to paste a key, and names a command, if sign-up is closed or limited", async () => {
  await using closed = await visit({}, { SIGN_UP: "closed" });
  const command = "deno task accounts create";
  assertEquals(await stepsOf(closed.page), ["Bring a key.", "Change the request.", "Take it with you"]);
  assert(await closed.page.locator("#no-sign-up", { hasText: command }).isVisible());
  assert(await closed.page.getByRole("button", { name: "Use this key" }).isVisible());
  assertEquals(
    await closed.page.getByRole("button", { name: /^Make a key/ }).locator("visible=true").count(),
    0,
  );

  await using visitor = await visit();
  const { page } = visitor;
  assertEquals(await stepsOf(page), ["Make a key.", "Change the request.", "Take it with you"]);
  const problem = { code: "sign_up_limit", message: "Too many accounts were made.", status: 429 };
  await page.route(
    "**/v1/accounts",
    (route) => route.fulfill({ status: 429, headers: { "retry-after": "60" }, json: problem }),
  );
  await page.getByRole("button", { name: "Make a key and call" }).click();
  await page.locator("#no-sign-up", { hasText: command }).waitFor();
  assertEquals([await status(page), await page.locator("#answer-message").textContent()], [
    "429",
    problem.message,
  ]);
  assertEquals(
    await page.locator("#answer-advice").textContent(),
    "Try again after Retry-After (60 s). Wait longer each time.",
  );
  assertEquals(await page.locator("#make-one").isVisible(), false);
  assertEquals((await stepsOf(page))[0], "Bring a key.");
  assertEquals(await page.locator(":focus").getAttribute("id"), "key-input");
  assertEquals(await page.locator("#send").textContent(), "Send");
  await choose(page, "createAccount");
  assertMatch(await page.locator("#send").textContent() ?? "", /^Wait \d+ s$/);
});

Deno.test("page shows a message if a sign-up returns no key or no response", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  await page.route(
    "**/v1/accounts",
    (route) => route.fulfill({ status: 502, body: "<h1>Bad Gateway</h1>" }),
    {
      times: 1,
    },
  );
  await page.getByRole("button", { name: "Make a key and call" }).click();
  await page.locator("#answer-message", { hasText: "No key was created. Try again later." }).waitFor();
  assertEquals(await status(page), "502");

  await page.context().setOffline(true);
  await page.getByRole("button", { name: "Make a key and call" }).click();

  await page.locator("#answer-message", { hasText: "There was no response. Check that you are online" })
    .waitFor();
  assertEquals(await status(page), "No response");
  assertMatch(
    await page.locator("#announcement").textContent() ?? "",
    /^No response .*whether the request took effect/,
  );
});

Deno.test("page explains that it cannot send a key with a character that headers must not have", async () => {
  await using visitor = await visit();
  const { page } = visitor;

  await paste(page, "as_test_79Tk…osZs");

  assertMatch(
    await page.locator("#answer-message").textContent() ?? "",
    /^The request was not sent, because a header/,
  );
  assertEquals(await status(page), "No response");
});

Deno.test("page stores the key nowhere, and warns once before the visitor leaves without a copy", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  const key = await signUp(page);
  const stored = await page.evaluate(() => JSON.stringify([localStorage, sessionStorage, document.cookie]));
  assert(!stored.includes(key) && !page.url().includes(key));

  const dialogs: string[] = [];
  page.on("dialog", async (dialog) => {
    dialogs.push(dialog.type());
    await dialog.dismiss();
  });
  await page.reload({ timeout: 1_000 }).catch(() => {});
  await page.reload();
  assertEquals(dialogs, ["beforeunload"]);
});

Deno.test("page asks before it discards an uncopied key or closes the account", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  const key = await signUp(page);
  const asked: string[] = [];
  page.on("dialog", async (dialog) => {
    asked.push(dialog.message());
    await dialog.dismiss();
  });
  let sent = 0;
  page.on("request", () => sent++);

  await page.locator("[data-when=held]").getByRole("button", { name: "Use another key" }).click();
  for (const operation of ["createAccount", "closeAccount"]) {
    await choose(page, operation);
    await page.locator("#send").click();
  }
  assertEquals(asked.map((question) => question.split(",")[0]), [
    "You have not copied your key",
    "You have not copied your key",
    "This closes your account permanently. Continue?",
  ]);
  assertEquals([await page.locator("#key").textContent(), sent], [key, 0]);
  assert(!(await page.locator("#announcement").textContent())?.includes("Sending"));

  await page.locator("#copy-key").click();
  await page.locator("#copy-key", { hasText: "Copied" }).waitFor();
  assertEquals(await page.evaluate(() => navigator.clipboard.readText()), key);
  await choose(page, "createAccount");
  assertEquals(await call(page), "201");
  assert(await page.locator("#key").textContent() !== key);
  assertEquals(asked.length, 3);
});

Deno.test("page shows the limits of the current key, not of the address or an earlier key", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  const left = page.locator("#minute");
  await signUp(page);
  const known = await left.textContent() ?? "";
  assertEquals(known, "59 of 60 left");
  await choose(page, "createAccount");
  await page.locator("#request-createAccount textarea").fill("{}");
  page.once("dialog", (dialog) => dialog.accept());
  assertEquals(await call(page), "400");
  assertEquals(await left.textContent(), known);

  await choose(page, "rotateKey");
  assertEquals(await call(page), "201");
  assertMatch(await page.locator("#answer-message").textContent() ?? "", /^This is your new key/);
  assertMatch(await left.textContent() ?? "", /^5[89] of 60 left$/);
});

Deno.test("page does not attribute a late response for an earlier key to the current key", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  await signUp(page);
  page.on("dialog", (dialog) => dialog.accept());
  let release = () => {};
  const held = new Promise<void>((resolve) => release = resolve);
  await page.route("**/v1/pets", async (route) => (await held, await route.continue()));
  await page.locator("#send").click();
  await page.locator("#console[aria-busy]").waitFor();
  await page.waitForFunction(() =>
    Number(getComputedStyle(document.querySelector("#answer") ?? document.body).opacity) < 0.5
  );
  await page.locator("[data-when=held]").getByRole("button", { name: "Use another key" }).click();
  await page.locator("#key-input").fill("as_test_another");
  await page.getByRole("button", { name: "Use this key" }).click();
  assertEquals(await page.locator("#console").getAttribute("data-key"), "paste");
  release();
  await settle(page);
  assertEquals(await status(page), "200");
  await page.getByRole("button", { name: "Use this key" }).click();
  await page.locator("#answer-head", { hasText: "401" }).waitFor();
  assertEquals(await page.locator("#minute").textContent(), "60 requests a minute");
});

Deno.test("page keeps its key when a response contains an example of one", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  const key = await signUp(page);
  await choose(page, "getOpenApi");

  assertEquals(await call(page), "200");

  assertMatch(await page.locator("#answer-body").textContent() ?? "", /"apiKey": "as_test_/);
  assertEquals(await page.locator("#answer-message").textContent(), "");
  assertEquals(await page.locator("#key").textContent(), key);
});

Deno.test("page copies the call with the key, but shows it with a placeholder", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  const key = await signUp(page);
  const copy = page.locator("#copy-request");
  for (const language of ["Python", "JavaScript", "curl"]) {
    await page.getByRole("radio", { name: language }).check();
    const shown = await page.locator("#sample").textContent() ?? "";
    assertMatch(shown, /^[\n -~]*Bearer YOUR_KEY_FROM_ABOVE[\n -~]*$/);
  }
  await copy.click();

  await copy.filter({ hasText: "Copied" }).waitFor();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  const headers = [`Authorization: Bearer ${key}`, "Prefer: handling=strict"].map((header) =>
    ` \\\n  -H '${header}'`
  );
  assertEquals(copied, `curl -i '${visitor.origin}/v1/pets'${headers.join("")}`);
});

Deno.test("page writes its own origin into the samples, or the public URL", async () => {
  for (const publicUrl of [undefined, "https://shop.example/animals"]) {
    await using visitor = await visit({}, publicUrl === undefined ? {} : { PUBLIC_URL: publicUrl });
    const expected = publicUrl ?? visitor.origin;

    for (const [id, path] of [["sign-up", "/v1/accounts"], ["first", "/v1/pets"], ["health", "/ready"]]) {
      const sample = await visitor.page.locator(`#${id}-curl`).textContent() ?? "";
      assert(sample.startsWith(`curl -i '${expected}${path}'`), sample);
    }
  }
});

Deno.test("page shows the request as a form: omitted parameters are dim, and Enter sends it", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  await signUp(page);
  const line = page.locator("#request-listPets > p").first();
  const signs = () => line.locator("i").allTextContents();
  assertEquals(await signs(), ["?", "&", "&"]);
  const color = (name: string) =>
    line.locator("label", { hasText: name }).evaluate((label) => getComputedStyle(label).color);
  const dim = await color("status");
  await page.locator("#request-listPets [name=status]").selectOption("sold");
  assertEquals(await signs(), ["?", "?", "&"]);
  assert(await color("status") !== dim);
  const sent = page.waitForRequest(/\/v1\/pets\?/);
  await page.locator("#request-listPets [name=limit]").fill("7");
  assertEquals(await signs(), ["?", "&", "&"]);
  await page.keyboard.press("Enter");
  assertEquals(new URL((await sent).url()).search, "?limit=7&status=sold");
  await settle(page);
});

Deno.test("page shows an example of the operation in view until a field is edited", async () => {
  await using visitor = await visit({ viewport: { width: 1280, height: 800 } });
  const { page } = visitor;
  const select = page.locator("#operation");
  const read = (id: string) => page.locator(`article#${id}`).evaluate((article) => article.scrollIntoView());
  assertMatch(
    await page.locator("#answer-head").textContent() ?? "",
    /^200\s+an example, until your first call/,
  );
  await read("createMessage");
  await page.waitForFunction(() =>
    document.querySelector<HTMLSelectElement>("#operation")?.value === "createMessage"
  );
  assertMatch(await page.locator("#answer-head").textContent() ?? "", /^202/);
  assertMatch(await page.locator("#answer-body").textContent() ?? "", /"status": "queued"/);
  await page.locator("#request-createMessage textarea").fill("{}");
  await read("rotateKey");
  await page.locator("#contents [aria-current]", { hasText: "Reference" }).waitFor();
  assertEquals(await select.inputValue(), "createMessage");
  await page.getByRole("button", { name: "Try it: List animals" }).click();
  assertEquals(await select.inputValue(), "listPets");
  assertEquals(await page.locator(":focus").getAttribute("id"), "operation");
});

Deno.test("page requests the next page of a list", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  await signUp(page);
  await choose(page, "createPet");
  for (const name of ["Rex", "Tom"]) {
    await page.locator("#request-createPet textarea").fill(JSON.stringify({ name, categoryId: 1 }));
    await call(page);
  }
  await choose(page, "listPets");
  await page.locator("#request-listPets [name=limit]").fill("1");
  await call(page);
  await choose(page, "getAccount");

  await page.getByRole("button", { name: "Next page" }).click();

  await page.locator("#answer-body", { hasText: "Tom" }).waitFor();
  assertEquals(await page.locator("#next-page").isVisible(), false);
  assertEquals(await page.locator(":focus").getAttribute("id"), "answer");
});

for (
  const [width, height, name] of [[390, 664, ""], [320, 568, ""], [
    640,
    400,
    ", which is 200% zoom",
  ]] as const
) {
  Deno.test(`page brings the key, and the status after Send, into view at ${width}×${height}${name}`, async () => {
    await using visitor = await visit({ viewport: { width, height }, hasTouch: true, isMobile: true });
    const { page } = visitor;
    const top = await page.getByRole("button", { name: "Make a key and call" }).evaluate((button) =>
      button.getBoundingClientRect().top
    );
    assert(top <= 300, `${top}`);
    await signUp(page);
    await page.waitForFunction(() => scrollY >= 0);
    assert(await isInView(page, "#key"));
    for (const operation of ["listPets", "createPet", "updatePet"]) {
      await choose(page, operation);
      await page.locator(`#request-${operation}`).locator("input, textarea").last().focus();
      assert(await isInView(page, "#send"), operation);
      await call(page);
      assert(await isInView(page, "#answer-head"), operation);
    }
    const heights = await page.locator(
      "button:visible, summary:visible, #requests :is(input, select):visible",
    )
      .evaluateAll((targets) => targets.map((target) => Math.round(target.getBoundingClientRect().height)));
    assertEquals(heights.filter((height) => height < 44), []);
  });
}
