import { assertEquals, assertMatch } from "@std/assert";
import { type BrowserContextOptions, chromium, firefox, type Page } from "playwright-core";
import { ServerProcess } from "../process/process.ts";

/** Options of a desktop, and of a phone. */
export const WIDE = { viewport: { width: 1280, height: 800 } } as const;
export const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true } as const;
/** Sizes of windows. */
export const SIZES = [[320, 568], [390, 844], [640, 400], [820, 1180], [1280, 800], [1920, 1080]] as const;

/** Options of {@linkcode visit}: those of Playwright, and the reader's own. */
export interface VisitOptions extends BrowserContextOptions {
  readonly browser?: "chromium" | "firefox";
  /** Starts the service; by default that of the checkout. */
  readonly start?: () => Promise<AsyncDisposable & { readonly origin: string }>;
  /** Variables of the service of the checkout. */
  readonly variables?: Readonly<Record<string, string>>;
  /** Path of the page. */
  readonly path?: string;
  /** Size of the reader's type, in px. */
  readonly rootSize?: number;
}

/** Starts a service and opens its page in an own browser. Firefox, which Playwright drives by WebDriver BiDi, cannot emulate media features. */
export async function visit(
  { browser: name = "chromium", rootSize = 16, variables, start, path = "/", ...options }: VisitOptions = {},
) {
  const { colorScheme, forcedColors } = options;
  const launching = name === "chromium"
    ? chromium.launch({
      executablePath: "/usr/bin/chromium",
      args: ["--no-sandbox", `--blink-settings=defaultFontSize=${rootSize}`],
    })
    : firefox.launch({
      executablePath: "/usr/bin/firefox-esr",
      channel: "moz-firefox",
      firefoxUserPrefs: {
        "font.size.variable.x-western": rootSize,
        "layout.css.prefers-color-scheme.content-override": colorScheme === "dark" ? 0 : 1,
        "browser.display.document_color_use": forcedColors === "active" ? 2 : 0,
      },
    });
  start ??= () => ServerProcess.start({ KV_PATH: ":memory:", ...variables });
  const [server, browser] = await Promise.all([start(), launching]);
  const emulated = name === "chromium" ? {} : { colorScheme: null, forcedColors: null };
  const page = await browser.newPage({ ...options, ...emulated });
  page.setDefaultTimeout(30_000);
  // Messages of the browser's console, errors of the page, and requests to other origins.
  const noise: string[] = [];
  page.on("console", (message) => noise.push(message.text()));
  page.on("pageerror", (error) => noise.push(String(error)));
  const origin = server.origin.replace("127.0.0.1", "localhost");
  page.on("request", (request) => {
    if (!/^data:/.test(request.url()) && new URL(request.url()).origin !== origin) noise.push(request.url());
  });
  await page.goto(origin + path);
  return {
    ...{ page, origin, noise },
    async [Symbol.asyncDispose]() {
      // Else, what a route still does fails the whole file, and hides why the test failed.
      await page.unrouteAll({ behavior: "ignoreErrors" });
      await browser.close();
      await server[Symbol.asyncDispose]();
    },
  };
}

type Run = (visitor: Awaited<ReturnType<typeof visit>>) => Promise<void>;

/** Declares a test with a visitor of the page, who may have options. */
export function test(name: string, ...given: [run: Run] | [options: VisitOptions, run: Run]): void {
  const [options, run] = given.length === 1 ? [{}, given[0]] : given;
  Deno.test(name, async () => {
    await using visitor = await visit(options);
    await run(visitor);
  });
}

/** Waits until no request is in flight. */
export async function settle(page: Page): Promise<void> {
  await page.locator("#console:not([aria-busy])").waitFor();
}

/** Creates a key on the page, which also makes the first call with it. Resolves to the key. */
export async function signUp(page: Page): Promise<string> {
  await page.locator("#make").click();
  await page.locator("[data-kind='2']").waitFor();
  await settle(page);
  return await text(page, "#key");
}

/** Pastes a key, and makes a call with it. */
export async function paste(page: Page, key: string): Promise<void> {
  if (await page.locator("#pasted").isHidden()) await page.locator("button[data-form=paste]:visible").click();
  await page.locator("#pasted").fill(key);
  await page.locator("#use").click();
  await settle(page);
}

/** Sends a request of an operation, by default the one that is chosen. Resolves to the status that the page shows. */
export async function call(
  page: Page,
  operation?: string,
  fields: Readonly<Record<string, string>> = {},
): Promise<string> {
  if (operation !== undefined) await choose(page, operation);
  const form = `#form-${await page.locator("#operation").inputValue()}`;
  for (const [name, value] of Object.entries(fields)) {
    const field = page.locator(`${form} [name="${name}"]`);
    if (await field.isHidden()) await page.locator(`${form} summary`).click();
    await field.fill(value);
  }
  const answered = page.waitForResponse(/\/v1\//);
  await page.locator("#send").click();
  await (await answered).finished();
  await settle(page);
  return await text(page, "#head .status");
}

/** The text of the first element that matches. */
export async function text(page: Page, selector: string): Promise<string> {
  return (await page.locator(selector).first().textContent() ?? "").trim();
}

/** Number of prints by kind, such as `{ ok: 2, "": 58 }`. */
export async function prints(page: Page): Promise<Record<string, number>> {
  return await page.locator(":is(#prints, #refused) > svg").evaluateAll((prints) => {
    const kinds = Map.groupBy(prints, (print) => print.getAttribute("class") ?? "");
    return Object.fromEntries([...kinds].map(([kind, own]) => [kind, own.length]));
  });
}

/** What elements show: the text of the first, a pattern of it, the texts of all, or whether it is visible. */
type Shown = Readonly<Record<string, string | RegExp | readonly string[] | boolean>>;

/** Waits until elements show what is expected, by their selectors. Throws the first difference that is left after 15 s. */
export async function shows(page: Page, expected: Shown): Promise<void> {
  for (const [selector, value] of Object.entries(expected)) {
    await eventually(page, async () => {
      const found = page.locator(selector);
      if (typeof value === "boolean") assertEquals(await found.isVisible(), value, selector);
      else if (value instanceof RegExp) assertMatch(await text(page, selector), value, selector);
      else if (typeof value === "string") assertEquals(await text(page, selector), value, selector);
      else assertEquals(await found.allTextContents(), [...value], selector);
    });
  }
}

/** Checks again with each frame until a check passes. Throws what it threw last if it still fails after 15 s. */
export async function eventually(page: Page, check: () => void | Promise<void>): Promise<void> {
  for (const began = performance.now();;) {
    try {
      return await check();
    } catch (error) {
      if (performance.now() - began > 15_000) throw error;
      // A navigation ends the wait for a frame.
      await page.evaluate(() => new Promise(requestAnimationFrame)).catch(() => {});
    }
  }
}

/** Waits until an element has a text. */
export async function until(page: Page, selector: string, hasText: string): Promise<void> {
  await page.locator(selector, { hasText }).waitFor();
}

/** Clicks a button by its name, or a part of it. */
export async function press(page: Page, name: string, exact = false): Promise<void> {
  await page.getByRole("button", { name, exact }).click();
}

/** Chooses an operation. */
export async function choose(page: Page, operation: string): Promise<void> {
  await page.locator("#operation").selectOption(operation);
}

/** Starts a race, and waits until the page tells its outcome. */
export async function race(page: Page): Promise<void> {
  await page.locator("#race").click();
  await page.locator("[data-kind=race]").waitFor();
  await settle(page);
}

/** Answers requests to a path in place of the service, and of an earlier answer. */
export async function answer(
  page: Page,
  path: string,
  [status, code, message, headers = {}]: readonly [number, string, string, Readonly<Record<string, string>>?],
): Promise<void> {
  await page.unroute(`**${path}`);
  const json = { code, message, status };
  await page.route(`**${path}`, (route) => route.fulfill({ status, headers, json }));
}

/** Waits for a new minute if less than 30 s are left of this one, so that the test runs within one. */
export async function roomInMinute(): Promise<void> {
  const left = 60_000 - Date.now() % 60_000;
  if (left < 30_000) await new Promise((go) => setTimeout(go, left + 100));
}
