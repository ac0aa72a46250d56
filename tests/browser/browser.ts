import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { ServerProcess } from "../server/server_process.ts";

const CHROMIUM = "/usr/bin/chromium";

/** Somebody who looks at the page, in a browser and at a service of their own. */
export class Visitor implements AsyncDisposable {
  readonly page: Page;
  /** Where the service is. */
  readonly origin: string;
  /** What the console of the browser says, and errors of the page. */
  readonly noise: string[] = [];
  readonly #origins = new Set<string>();
  readonly #browser: Browser;
  readonly #server: ServerProcess;

  constructor(page: Page, browser: Browser, server: ServerProcess) {
    this.page = page;
    this.origin = `http://localhost:${server.port}`;
    this.#browser = browser;
    this.#server = server;
    page.setDefaultTimeout(10_000);
    page.on("console", (message) => this.noise.push(message.text()));
    page.on("pageerror", (error) => this.noise.push(String(error)));
    page.on("request", (request) => {
      const { protocol, origin } = new URL(request.url());
      if (protocol !== "data:") this.#origins.add(origin);
    });
  }

  /** Where requests went to. */
  get origins(): string[] {
    return [...this.#origins];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#browser.close();
    await this.#server[Symbol.asyncDispose]();
  }
}

/** Starts a service and opens its page. */
export async function visit(options: BrowserContextOptions = {}): Promise<Visitor> {
  const [server, browser] = await Promise.all([
    ServerProcess.start({ KV_PATH: ":memory:" }),
    chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] }),
  ]);
  const visitor = new Visitor(await browser.newPage(options), browser, server);
  await visitor.page.goto(`${visitor.origin}/`);
  return visitor;
}

/** Signs up on the page. */
export async function signUp(page: Page): Promise<void> {
  await page.getByLabel("Your name").fill("Zoë");
  await page.getByRole("button", { name: "Make a key" }).click();
  await page.getByText("This is your key").waitFor();
}

/** Chooses an operation in the console. */
export async function choose(page: Page, operation: string): Promise<void> {
  await page.locator("#operation").selectOption(operation);
}

/** Sends the console's request; gives the status that it shows then. */
export async function call(page: Page): Promise<string> {
  const answered = page.waitForResponse(/\/v1\//);
  await page.getByRole("button", { name: "Send" }).click();
  await (await answered).finished();
  await page.locator("#console:not([aria-busy])").waitFor();
  return await page.locator("#answer-status").textContent() ?? "";
}
