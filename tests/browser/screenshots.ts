import type { Page } from "playwright-core";
import { print } from "../../src/process/process.ts";
import { IDS, PATH, SHIPPED, textField } from "../process/shipped.ts";
import { answer, call, choose, paste, press, race, signUp, SIZES, until, visit } from "./browser.ts";
import { enter, goTo, post, visitOperators } from "./operators.ts";

/** Images that the README shows. */
const PICTURES = { light: "page.png", dark: "page_dark.png" } as const;
const folder = Deno.args[0] ?? await Deno.makeTempDir({ prefix: "screenshots-" });

for (const [width, height] of SIZES) {
  for (const colorScheme of ["light", "dark"] as const) {
    const isMobile = width < 700;
    const options = { viewport: { width, height }, colorScheme, isMobile, hasTouch: isMobile };
    const shooting =
      (page: Page) => (state: string, path = `${folder}/${state}_${width}_${colorScheme}.png`) =>
        page.screenshot({ path, animations: "disabled" });
    await shootPage(options, shooting);
    await shootRaces(options, shooting);
    await shootOperators(options, shooting);
  }
}
print(folder);

interface Options {
  readonly viewport: { readonly width: number; readonly height: number };
  readonly colorScheme: keyof typeof PICTURES;
  readonly isMobile: boolean;
}
type Shooting = (page: Page) => (state: string, path?: string) => Promise<unknown>;

/** What a client sees, from the first look to a race. */
async function shootPage(options: Options, shooting: Shooting): Promise<void> {
  await using visitor = await visit(options);
  const { page, origin } = visitor;
  const shoot = shooting(page);
  await addItems(origin);
  await page.mouse.move(0, 0);
  await shoot("1_first");
  await signUp(page);
  await shoot("2_key");
  await call(page, IDS.create);
  await shoot("3_answer");
  await call(page, IDS.create, { body: JSON.stringify({ [textField("Rex")]: "" }) });
  await shoot("4_error");
  await choose(page, IDS.list);
  await race(page);
  await shoot("5_race");
  if (options.viewport.width === 1280) {
    // As if the service had its usual port.
    await page.locator("pre, code").evaluateAll((all, origin) => {
      for (const text of all) {
        text.textContent = text.textContent.replaceAll(origin, "http://localhost:8000");
      }
    }, origin);
    await page.locator("#console").evaluate((console) => console.scrollTo(0, 0));
    await shoot("", `${import.meta.dirname}/../../src/page/${PICTURES[options.colorScheme]}`);
  }
  for (const [state, id] of [["6_reference", IDS.create], ["7_limits", "limits"]] as const) {
    await page.locator(`#${id}`).evaluate((part) => part.scrollIntoView());
    await shoot(state);
  }
  if (options.isMobile) {
    await press(page, "Contents");
    await shoot("8_contents");
    await page.keyboard.press("Escape");
  }
  await page.evaluate(() => {
    for (const name of ["--hue", "--paper-hue"]) document.documentElement.style.setProperty(name, "150");
  });
  await shoot("9_green");
}

/** Two tabs that race with one key, and a race of which all are refused. */
async function shootRaces(options: Options, shooting: Shooting): Promise<void> {
  await using visitor = await visit(options);
  const { page, origin } = visitor;
  const start = () => Promise.resolve({ origin, [Symbol.asyncDispose]: () => Promise.resolve() });
  await using other = await visit({ ...options, start });
  await paste(other.page, await signUp(page));
  await Promise.all([race(page), race(other.page)]);
  await shooting(page)("10_two_tabs");
  const refused = {
    "ratelimit-policy": '"minute";q=60;w=60, "day";q=1000;w=86400',
    "ratelimit": '"minute";r=0;t=40, "day";r=900;t=10800',
    "x-ratelimit-limit": "60",
    "x-ratelimit-reset": "9999999999",
    "retry-after": "40",
  };
  await page.evaluate(() => sessionStorage.clear());
  await page.reload();
  await signUp(page);
  await answer(page, `${PATH}?limit=1`, [429, "rate_limit_minute", "The limit is used up.", refused]);
  await race(page);
  await shooting(page)("11_refused");
}

/** What operators see of a fork. */
async function shootOperators(options: Options, shooting: Shooting): Promise<void> {
  await using visitor = await visitOperators(options);
  const { page, origin } = visitor;
  const shoot = shooting(page);
  const { account } = await post(origin, "accounts", {
    name: "Workshop of Ann",
    plan: "team",
    reference: "crm-1",
  });
  const { apiKey } = await post(origin, "accounts", { name: "Ben", plan: "trial" });
  await post(origin, "accounts", { name: "<img src=x onerror=alert(1)>", plan: "trial", reference: "crm-3" });
  const authorization = `Bearer ${apiKey}`;
  for (let index = 0; index < 15; index++) {
    await (await fetch(`${origin}/v1/rooms`, { headers: { authorization } })).body?.cancel();
  }
  await post(origin, "rooms", { name: "Blue", seats: 8, hasScreen: true });
  for (const day of [11, 12, 13]) {
    const [startsAt, endsAt] = ["09:00:00Z", "10:00:00Z"].map((time) => `2027-01-${day}T${time}`);
    const booking = { roomId: 1, title: `Meeting ${day}`, startsAt, endsAt, state: "planned" };
    await post(origin, "bookings", { ...booking, accountId: account.id });
  }
  await shoot("12_token");
  await enter(page);
  await until(page, "#pages", "shown.");
  await shoot("13_accounts");
  await press(page, account.id);
  await shoot("14_row");
  await press(page, "Change the name or the plan");
  await page.locator("#inputs [name=plan]").selectOption("trial");
  await shoot("15_action");
  await press(page, "Send", true);
  await until(page, "#answer .status", "200");
  await shoot("16_done");
  await press(page, "Close", true);
  await goTo(page, "Bookings");
  await shoot("17_bookings");
}

/** Adds items, so that lists are not empty. */
async function addItems(origin: string): Promise<void> {
  const headers = { "content-type": "application/json", authorization: "" };
  const post = async (path: string, json: unknown) =>
    await (await fetch(origin + path, { method: "POST", headers, body: JSON.stringify(json) })).json();
  const { apiKey } = await post("/v1/accounts", { name: "me" });
  headers.authorization = `Bearer ${apiKey}`;
  for (const name of ["Rex", "Bella"]) {
    await post(PATH, { ...SHIPPED.examples.item, [textField(name)]: name });
  }
}
