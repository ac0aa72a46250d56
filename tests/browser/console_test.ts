import { assert, assertEquals, assertMatch } from "@std/assert";
import type { Page } from "playwright-core";
import { IDS, ITEM, itemWith, LIST, PATH, SHIPPED, textField } from "../process/shipped.ts";
import {
  armEach,
  call,
  choose,
  isInView,
  paste,
  prints,
  roomInMinute,
  settle,
  signUp,
  SIZES,
  status,
  visit,
} from "./browser.ts";

const FAILURE = /status of \d+/;
/** A field of an item, and a name that differs from it in a letter. */
const [FIELD = ""] = Object.keys(SHIPPED.fields);
const TYPO = `${FIELD}x`;

Deno.test("page creates a key and makes the first call with one press, then adds an item", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  assertMatch(await signUp(page), /^as_test_\w{38}$/);
  assertEquals([await status(page), await page.locator("#answer-body").textContent()], ["200", "[]"]);
  assertEquals(await page.locator(":focus").getAttribute("id"), "send");
  assertMatch(
    await page.locator("#announcement").textContent() ?? "",
    /^Your key is shown only once\. Copy it now\. 200 OK .* The list is empty\.$/,
  );
  await page.getByRole("button", { name: `Add ${SHIPPED.nouns.an}`, exact: true }).click();
  assertEquals(await page.locator("#operation").inputValue(), IDS.create);
  await page.locator(`#request-${IDS.create} textarea`).fill(ITEM);

  assertEquals(await call(page), "201");
  await choose(page, IDS.list);
  assertEquals(await call(page), "200");

  const body = await page.locator("#answer-body").textContent() ?? "";
  assertEquals(JSON.parse(body), [JSON.parse(itemWith(1))]);
  // A minute can end between any two of the three requests.
  assertMatch(await page.locator("#minute").textContent() ?? "", /^5[789] of 60 left$/);
  assertMatch(await page.locator("#day").textContent() ?? "", /^997 of 1,000 today$/);
  assertEquals(visitor.noise, []);
  assertEquals(visitor.origins, [visitor.origin]);
});

Deno.test("page asks for strict handling, so that a mistyped field is refused", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  await signUp(page);
  await choose(page, IDS.create);
  await page.locator(`#request-${IDS.create} textarea`).fill(`{"${TYPO}":1,${ITEM.slice(1)}`);

  assertEquals(await call(page), "400");

  const message = await page.locator("#answer-message").textContent();
  assertEquals(message, `The field ${TYPO} is unknown; did you mean ${FIELD}?`);
});

Deno.test("page shows markup in an item as isolated text", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  const text = "<img src=x onerror=alert(1)> \u202e";
  await signUp(page);
  await choose(page, IDS.create);
  await page.locator(`#request-${IDS.create} textarea`).fill(
    JSON.stringify({ ...SHIPPED.examples.item, [textField(text)]: text }),
  );

  assertEquals(await call(page), "201");

  assert((await page.locator("#answer-body").textContent())?.includes(JSON.stringify(text)));
  assertEquals(await page.locator("#answer img, #sample img").count(), 0);
  const span = page.locator("#answer-body .string", { hasText: "<img" });
  assertEquals(await span.evaluate((span) => getComputedStyle(span).unicodeBidi), "isolate");
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
  assertMatch(await page.locator("#answer-message").textContent() ?? "", /Try again in \d+ s\.$/);
  assertEquals(await page.locator("#answer-todo").textContent(), "Wait longer each time.");
  const send = page.locator("#send");
  assertMatch(await send.textContent() ?? "", /^Wait \d+ s$/);
  await choose(page, "getOpenApi");
  assertEquals(await send.textContent(), "Send");
  await choose(page, IDS.list);
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

Deno.test("page offers to paste a key, and names a command, if sign-up is closed", async () => {
  await using visitor = await visit({}, { SIGN_UP: "closed" });
  const { page } = visitor;

  assertEquals(await stepsOf(page), ["Bring a key.", "Change the request.", "Take it with you"]);
  assert(await page.locator("#no-sign-up", { hasText: "deno task accounts create" }).isVisible());
  assert(await page.getByRole("button", { name: "Use this key" }).isVisible());
  assertEquals(await page.getByRole("button", { name: /^Make a key/ }).locator("visible=true").count(), 0);
});

Deno.test("page keeps its form after the sixth sign-up of an hour, and its button waits", async () => {
  await using visitor = await visit();
  const { page, origin } = visitor;
  await page.clock.install();
  await page.reload();
  assertEquals(await stepsOf(page), ["Make a key.", "Change the request.", "Take it with you"]);
  for (let count = 0; count < 5; count++) {
    const headers = { "content-type": "application/json" };
    const response = await fetch(`${origin}/v1/accounts`, { method: "POST", headers, body: '{"name":"me"}' });
    await response.body?.cancel();
  }
  const button = page.locator("#make-key");
  await button.click();

  await page.locator("#key-note", {
    hasText: "At most 5 accounts can be created in an hour from one address",
  })
    .waitFor();
  assertMatch(await button.textContent() ?? "", /^Wait \d+ (?:s|min)$/);
  assertEquals(await page.locator("#send").textContent(), "Send");
  let sent = 0;
  page.on("request", () => sent++);
  await button.press("Enter");
  await page.clock.runFor(3_600_000);
  assertEquals([await button.textContent(), sent], ["Make a key and call", 0]);
  assertEquals(await page.locator("#announcement").textContent(), "You can make a key again.");
});

Deno.test("page shows beneath its form why there is no key: a bad name, no key, no response", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  const make = async () => await page.getByRole("button", { name: "Make a key and call" }).click();
  const name = page.locator("#name");
  const shown = async (text: string) => {
    await page.locator("#key-note.fault", { hasText: text }).waitFor();
    assertEquals(await name.getAttribute("aria-invalid"), "true");
    assertEquals(await page.locator(":focus").getAttribute("id"), "name");
    assertEquals(
      await page.locator("#announcement").textContent(),
      await page.locator("#key-note").textContent(),
    );
  };
  await name.fill(" ");
  await make();
  await shown("name must");
  await name.fill("me");
  assertEquals(await name.getAttribute("aria-invalid"), null);
  assertEquals(await page.locator("#key-note").textContent(), "The key stays on this page.");
  const badGateway = { status: 502, body: "<h1>Bad Gateway</h1>" };
  await page.route("**/v1/accounts", (route) => route.fulfill(badGateway), { times: 1 });
  await make();
  await shown("No key was made. Try again later.");
  await name.fill("you");
  await page.context().setOffline(true);
  await make();
  await shown("No response. Check that you are online");
  assertMatch(await page.locator("#announcement").textContent() ?? "", /check whether it took effect/);
});

Deno.test("page goes back to the form after a 401, with the message beneath the field", async () => {
  await using visitor = await visit();
  const { page } = visitor;

  await paste(page, "as_test_wrong");

  const input = page.locator("#key-input");
  assertEquals([await input.inputValue(), await input.getAttribute("aria-invalid")], [
    "as_test_wrong",
    "true",
  ]);
  assertEquals(await page.locator(":focus").getAttribute("id"), "key-input");
  const note = await page.locator("#key-note.fault").textContent() ?? "";
  assertMatch(note, /API key/);
  assert((await page.locator("#announcement").textContent())?.endsWith(note));
  assertEquals(
    await page.locator("#answer-message, #answer-todo, #answer-body").allTextContents(),
    ["", "", ""],
  );
  assertEquals([await status(page), await page.locator("#answer-code").textContent()], [
    "401",
    "invalid_api_key",
  ]);
  assertMatch(await page.locator(".credentials:visible").textContent() ?? "", /^Authorization: $/);
});

Deno.test("page refuses a key with a character that no header can carry, and no key, before it sends", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  let sent = 0;
  page.on("request", () => sent++);
  for (
    const [key, fault] of [["", /^Paste a key/], ["as_test_79Tk…osZs", /^This is not an API key/]] as const
  ) {
    await paste(page, key);

    assertMatch(await page.locator("#key-note.fault").textContent() ?? "", fault);
    assertMatch(await page.locator("#announcement").textContent() ?? "", fault);
    assertEquals(await page.locator(":focus").getAttribute("id"), "key-input");
  }
  assertEquals(sent, 0);
});

Deno.test("page says what to do if a request is not sent, or gets no response, and says it once", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  await signUp(page);
  const send = async () => {
    await page.locator("#send").click();
    await page.locator("#answer[data-kind='0']").waitFor();
    await settle(page);
    return [await status(page), await page.locator("#answer-message").textContent()];
  };
  const tag = page.locator(`#request-${IDS.list} [name=If-None-Match]`);
  await tag.fill("“a”");

  assertEquals(await send(), ["Not sent", "If-None-Match contains a character that no header can carry."]);
  assertEquals(await tag.getAttribute("aria-invalid"), "true");

  await tag.fill("");
  await page.context().setOffline(true);
  const check = "Check that you are online and that the service is running.";
  assertEquals(await send(), ["No response", `${check} Then send the request again.`]);
  assertEquals(await page.locator("#requests [aria-invalid]").count(), 0);
  await choose(page, IDS.create);
  await page.locator("#send").click();
  await page.locator("#answer-message", { hasText: "check whether it took effect" }).waitFor();
});

Deno.test("page keeps the key in the tab only if asked, and forgets it after a 401", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  const key = await signUp(page);
  const stored = () => page.evaluate(() => Object.values(sessionStorage));
  assertEquals(await stored(), []);
  const keep = page.getByRole("checkbox", { name: "Keep in this tab" });
  await keep.check();
  assertEquals(await stored(), [key]);

  await page.reload();

  assertEquals(await page.locator("#key").textContent(), `${key.slice(0, 12)}****`);
  assertEquals(await page.locator("#key-note").textContent(), "Your key. It stays in this tab.");
  assertEquals(await call(page), "200");
  await keep.uncheck();
  assertEquals(await stored(), []);
  await keep.check();
  await paste(page, "as_test_wrong");
  assertEquals(await stored(), []);
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
  await page.locator("#keep").check();
  await page.locator("#keep").uncheck();
  assertEquals(
    await page.locator("#key-note").textContent(),
    "Your key is shown only once. Copy it now.",
  );
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

  await page.getByRole("button", { name: "Use another key" }).click();
  for (const operation of ["createAccount", "closeAccount", "rotateKey"]) {
    await choose(page, operation);
    await page.locator("#send").click();
  }
  assertEquals(asked.map((question) => question.split(",")[0]), [
    "You have not copied your key",
    "You have not copied your key",
    "This closes your account permanently. Continue?",
    "This makes a new key",
  ]);
  assertEquals([await page.locator("#key").textContent(), sent], [key, 0]);
  assert(!(await page.locator("#announcement").textContent())?.includes("Sending"));

  await page.locator("#copy-key").click();
  await page.locator("#copy-key", { hasText: "Copied" }).waitFor();
  assertEquals(
    await page.locator("#key-note").textContent(),
    "Copied. The key is not shown again after you leave.",
  );
  assertEquals(await page.evaluate(() => navigator.clipboard.readText()), key);
  await choose(page, "createAccount");
  assertEquals(await call(page), "201");
  assert(await page.locator("#key").textContent() !== key);
  assertEquals(asked.length, 4);
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
  page.once("dialog", (dialog) => dialog.accept());
  assertEquals(await call(page), "201");
  assertMatch(await page.locator("#answer-message").textContent() ?? "", /has your new key/);
  assertMatch(await left.textContent() ?? "", /^5[89] of 60 left$/);
});

Deno.test("page does not attribute a late response for an earlier key to the current key", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  await signUp(page);
  page.on("dialog", (dialog) => dialog.accept());
  let release = () => {};
  const held = new Promise<void>((resolve) => release = resolve);
  await page.route(`**${PATH}`, async (route) => (await held, await route.continue()));
  await page.locator("#send").click();
  await page.locator("#console[aria-busy]").waitFor();
  await page.waitForFunction(() =>
    Number(getComputedStyle(document.querySelector("#answer") ?? document.body).opacity) < 0.5
  );
  await page.getByRole("button", { name: "Use another key" }).click();
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
  assert(await page.locator("#copy-note", { hasText: "with your key" }).isVisible());
  for (const language of ["Python", "JavaScript", "curl"]) {
    await page.getByRole("radio", { name: language }).check();
    const shown = await page.locator("#sample").textContent() ?? "";
    assertMatch(shown, /^[\n -~]*Bearer YOUR_KEY_FROM_ABOVE[\n -~]*$/);
  }
  await copy.click();

  await copy.filter({ hasText: "Copied" }).waitFor();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  const preference = SHIPPED.isLenient ? ["Prefer: handling=strict"] : [];
  const headers = [`Authorization: Bearer ${key}`, ...preference].map((header) => ` \\\n  -H '${header}'`);
  assertEquals(copied, `curl -i '${visitor.origin}${PATH}'${headers.join("")}`);
});

Deno.test("page writes its own origin into the samples, or the public URL", async () => {
  for (const publicUrl of [undefined, "https://shop.example/base"]) {
    await using visitor = await visit({}, publicUrl === undefined ? {} : { PUBLIC_URL: publicUrl });
    const expected = publicUrl ?? visitor.origin;

    for (const [id, path] of [["sign-up", "/v1/accounts"], ["first", PATH], ["health", "/ready"]]) {
      const sample = await visitor.page.locator(`#${id}-curl`).textContent() ?? "";
      assert(sample.startsWith(`curl -i '${expected}${path}'`), sample);
    }
  }
});

Deno.test("page shows the request as a form: omitted parameters are dim, and Enter sends it", {
  ignore: SHIPPED.filters.length === 0,
}, async () => {
  await using visitor = await visit();
  const { page } = visitor;
  await signUp(page);
  const line = page.locator(`#request-${IDS.list} > p`).first();
  const signs = () => line.locator("i").allTextContents();
  const others = SHIPPED.filters.map(() => "&");
  assertEquals(await signs(), ["?", "&", ...others]);
  const color = (name: string) =>
    line.locator("label", { hasText: name }).evaluate((label) => getComputedStyle(label).color);
  const [filter = ""] = SHIPPED.filters;
  const select = page.locator(`#request-${IDS.list} [name=${filter}]`);
  const dim = await color(filter);
  await select.selectOption({ index: 1 });
  assertEquals(await signs(), ["?", "?", ...others]);
  assert(await color(filter) !== dim);
  const sent = page.waitForRequest((request) => request.url().includes(`${PATH}?`));
  await page.locator(`#request-${IDS.list} [name=limit]`).fill("7");
  assertEquals(await signs(), ["?", "&", ...others]);
  const value = await select.inputValue();
  await page.keyboard.press("Enter");
  assertEquals(new URL((await sent).url()).search, `?limit=7&${filter}=${value}`);
  await settle(page);
});

Deno.test("page moves its Send button neither for a key nor for a race nor for a wait", async () => {
  await roomInMinute();
  await using visitor = await visit({ viewport: { width: 1280, height: 800 } });
  const { page } = visitor;
  const place = () =>
    page.locator("#send").evaluate((send) => {
      const { left, width, height } = send.getBoundingClientRect();
      // The button itself sticks to the top when the console scrolls.
      const { top = 0 } = send.closest("form")?.getBoundingClientRect() ?? {};
      const scrolled = document.querySelector("#console")?.scrollTop ?? 0;
      return [top + scrolled, left, width, height].map(Math.round);
    });
  const before = await place();
  await signUp(page);
  assertEquals(await place(), before);
  await page.locator("#race").click();
  await page.locator("#answer[data-kind=race]").waitFor();
  assertMatch(await page.locator("#send").textContent() ?? "", /^Wait \d+ s$/);
  assertEquals(await place(), before);
});

Deno.test("page lists the fields that the body of a request leaves out, while it does", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  await choose(page, IDS.create);
  const omitted = async () => {
    const lines = await page.locator(`#request-${IDS.create} .left-out:visible`).allTextContents();
    return lines.map((line) => line.split(/: .+, /));
  };
  const lines = (names: readonly string[]) => names.map((name) => [`"${name}"`, "omitted"]);
  const names = Object.keys(SHIPPED.fields);
  const body = page.locator(`#request-${IDS.create} textarea`);
  assertEquals(await omitted(), lines(names.filter((name) => !(name in SHIPPED.examples.item))));
  await body.fill(JSON.stringify(Object.fromEntries(names.map((name) => [name, 1]))));
  assertEquals(await omitted(), []);
  await body.fill("{}");
  assertEquals(await omitted(), lines(names));
});

Deno.test("page copies a response as it was received", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await signUp(page);
  await choose(page, IDS.create);
  assertEquals(await call(page), "201");

  await page.getByRole("button", { name: "Copy the response" }).click();

  await page.locator("#copy-answer", { hasText: "Copied" }).waitFor();
  assertEquals(await page.evaluate(() => navigator.clipboard.readText()), itemWith(1));
});

for (const [width, height] of SIZES.slice(-3)) {
  Deno.test(`page arms the operation of each link, and none by scrolling, at ${width}×${height}`, async () => {
    await using visitor = await visit({ viewport: { width, height } });
    const { page } = visitor;
    const armed = () => page.locator("#operation").inputValue();
    const last = await armEach(page);
    for (const id of ["limits", "health", "operations"]) {
      await page.locator(`#contents [href="#${id}"]`).click();
      await page.locator("#contents [aria-current]", { hasText: id === "operations" ? "Operations" : /./ })
        .waitFor();
    }
    assertEquals(await armed(), last);
    await page.goto(`${visitor.origin}/#rotateKey`);
    await page.reload();
    assertEquals(await armed(), "rotateKey");
    assert(await page.locator("article#rotateKey").isVisible());
    await page.evaluate(() => location.hash = "getAccount");
    await page.locator("article#getAccount").waitFor();
    assertEquals(await armed(), "getAccount");
  });
}

Deno.test("page shows an example of a response only if there is one", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  const head = async () => (await page.locator("#answer-head").textContent() ?? "").trim();
  assertMatch(await head(), /^200\s+an example, until your first call$/);
  await choose(page, IDS.create);
  assertMatch(await head(), /^201/);
  assertMatch(await page.locator("#answer-body").textContent() ?? "", /"id": /);
  await choose(page, IDS.delete);
  assertEquals([await head(), await page.locator("#answer-body").textContent()], [
    "The response appears here.",
    "",
  ]);
});

Deno.test("page marks the fields that a message is about, and tells each message once", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  await signUp(page);
  const invalid = () =>
    page.locator("#requests [aria-invalid]").evaluateAll((all) => all.map(({ ariaLabel }) => ariaLabel));
  const limit = page.locator(`#request-${IDS.list} [name=limit]`);
  await limit.fill("0");
  assertEquals([await call(page), await invalid()], ["400", ["limit"]]);
  assertEquals(await page.locator("#answer-todo").textContent(), "");
  assertEquals(await page.locator("#answer-code").getAttribute("href"), "#error-invalid_request");
  const message = await page.locator("#answer-message").textContent() ?? "";
  assert(!(await page.locator("#answer-body").textContent())?.includes(message));
  await page.locator("#answer-headers summary").click();
  assert((await page.locator("#answer-raw").textContent())?.includes(message));
  await limit.fill("1");
  assertEquals(await invalid(), []);
  assertEquals(await call(page), "200");
  await choose(page, IDS.create);
  const body = page.locator(`#request-${IDS.create} textarea`);
  await body.fill('{\n  "name": True\n}');

  assertEquals([await call(page), await invalid()], ["400", ["Body"]]);

  assertMatch(await page.locator("#answer-message").textContent() ?? "", /\bline 2, column 11\b/);
  assertEquals(await body.evaluate((area) => (area as HTMLTextAreaElement).selectionStart), 12);
});

Deno.test("page says on its button what it does if there is no answer soon", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  await page.route("**/v1/*", async (route) => (await held, await route.continue()));
  const button = page.locator("#make-key");
  const width = async () => (await button.boundingBox())?.width;
  const before = await width();

  await button.click();
  await button.filter({ hasText: "Making a key…" }).waitFor();
  assertEquals(await width(), before);
  release();

  await page.locator("#answer[data-kind='2']").waitFor();
  await settle(page);
  assertEquals([await button.textContent(), await page.locator("#send").textContent()], [
    "Make a key and call",
    "Send",
  ]);
});

Deno.test("page has a record of each request: in the meter by arrow keys and pointer, and in a list", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  await signUp(page);
  await choose(page, IDS.get);
  await page.locator(`#request-${IDS.get} [name=${SHIPPED.id}]`).fill("7");
  await call(page);
  assertEquals(await prints(page), { ok: 1, bad: 1, "": 58 });
  const pointed = page.locator("#pointed");
  await page.locator("#prints").focus();
  assertMatch(await pointed.textContent() ?? "", new RegExp(`^1: ${LIST}, 200, \\d+ ms$`));
  await page.keyboard.press("ArrowRight");
  assertMatch(await pointed.textContent() ?? "", new RegExp(`^2: ${LIST}/7, 404, \\d+ ms$`));
  assertEquals(await page.locator("#prints").getAttribute("aria-activedescendant"), "print-2");
  await page.keyboard.press("End");
  assertEquals(await pointed.textContent(), "60: not used");
  await page.keyboard.press("Home");
  await page.keyboard.press("Tab");
  assertEquals(await pointed.textContent(), "");
  assertEquals(await page.locator("#prints :focus, #prints [tabindex]").count(), 0);
  await page.locator("#print-2").hover();
  assertMatch(await pointed.textContent() ?? "", /^2: GET/);
  await page.locator("#log summary").click();
  assertEquals(await page.locator("#log-list li").count(), 2);
  assertMatch(
    await page.locator("#log-list li").last().textContent() ?? "",
    new RegExp(`^${LIST}/7, 404, \\d+ ms$`),
  );
});

Deno.test("page requests the next page of a list", async () => {
  await using visitor = await visit();
  const { page } = visitor;
  await signUp(page);
  await choose(page, IDS.create);
  for (let count = 0; count < 2; count++) await call(page);
  await choose(page, IDS.list);
  await page.locator(`#request-${IDS.list} [name=limit]`).fill("1");
  await call(page);
  await choose(page, "getAccount");

  await page.getByRole("button", { name: "Next page" }).click();

  await page.locator("#answer-body", { hasText: '"id": 2' }).waitFor();
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
    await page.getByRole("button", { name: "I have a key" }).click();
    const { width: room = 0 } = await page.locator("#key-input").boundingBox() ?? {};
    assert(room >= 180, `${room} px for a key`);
    await page.locator("#make-one").click();
    await signUp(page);
    await page.waitForFunction(() => scrollY >= 0);
    assert(await isInView(page, "#key"));
    for (const operation of [IDS.list, IDS.create, IDS.update]) {
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
