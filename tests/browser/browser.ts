import { type BrowserContextOptions, chromium, firefox, type Page } from "playwright-core";
import { ServerProcess } from "../process/process.ts";

/** Sizes of windows. */
export const SIZES = [[320, 568], [390, 844], [640, 400], [820, 1180], [1280, 800], [1920, 1080]] as const;

/** Options of {@linkcode visit}: those of Playwright, and the reader's own. */
export interface VisitOptions extends BrowserContextOptions {
  readonly browser?: "chromium" | "firefox";
  /** Starts the service; by default that of the checkout. */
  readonly start?: () => Promise<AsyncDisposable & { readonly origin: string }>;
  /** Size of the reader's type, in px. */
  readonly rootSize?: number;
}

/** A visitor of the page, with their own browser and service. */
export interface Visitor extends AsyncDisposable {
  readonly page: Page;
  /** The origin of the service. */
  readonly origin: string;
  /** Messages of the browser's console, and errors of the page. */
  readonly noise: readonly string[];
  /** Origins that requests were sent to. */
  readonly origins: ReadonlySet<string>;
}

/** Starts a service and opens its page. Firefox, which Playwright drives by WebDriver BiDi, cannot emulate media features. */
export async function visit(
  { browser: name = "chromium", rootSize = 16, start, ...options }: VisitOptions = {},
  variables: Readonly<Record<string, string>> = {},
): Promise<Visitor> {
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
  const starting = start ? start() : ServerProcess.start({ KV_PATH: ":memory:", ...variables });
  const [server, browser] = await Promise.all([starting, launching]);
  const emulated = name === "chromium" ? {} : { colorScheme: null, forcedColors: null };
  const page = await browser.newPage({ ...options, ...emulated });
  page.setDefaultTimeout(10_000);
  const noise: string[] = [];
  const origins = new Set<string>();
  page.on("console", (message) => noise.push(message.text()));
  page.on("pageerror", (error) => noise.push(String(error)));
  page.on(
    "request",
    (request) => request.url().startsWith("data:") || origins.add(new URL(request.url()).origin),
  );
  const origin = server.origin.replace("127.0.0.1", "localhost");
  await page.goto(`${origin}/`);
  return {
    ...{ page, origin, noise, origins },
    async [Symbol.asyncDispose]() {
      await browser.close();
      await server[Symbol.asyncDispose]();
    },
  };
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
  if (operation !== undefined) await page.locator("#operation").selectOption(operation);
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
  const kinds = await page.locator(":is(#prints, #refused) > svg").evaluateAll((prints) =>
    prints.map((print) => print.getAttribute("class") ?? "")
  );
  return Object.fromEntries([...Map.groupBy(kinds, (kind) => kind)].map(([kind, own]) => [kind, own.length]));
}

/** The labels of the steps that the answer offers. */
export async function steps(page: Page): Promise<string[]> {
  return await page.locator("#next button").allTextContents();
}

/** Answers requests to a path in place of the service. */
export async function answer(
  page: Page,
  path: string,
  [status, code, message, headers = {}]: readonly [number, string, string, Readonly<Record<string, string>>?],
): Promise<void> {
  await page.route(
    `**${path}`,
    (route) => route.fulfill({ status, headers, json: { code, message, status } }),
  );
}

/** Waits for a new minute if less than 20 s are left of this one, so that the test runs within one. */
export async function roomInMinute(): Promise<void> {
  const left = 60_000 - Date.now() % 60_000;
  if (left < 20_000) await new Promise((go) => setTimeout(go, left + 100));
}
