// Visitors of the operators' page.
import type { Page } from "playwright-core";
import { ServerProcess } from "../process/process.ts";
import { press, until, visit, type VisitOptions, WIDE } from "./browser.ts";

/** Tokens of operators. */
export const TOKEN = "an-operators-token-of-32-characters";
export const READ_TOKEN = "a-token-that-only-reads-12345678";

/** A visitor of the operators' page of a fork with a part that is unknown to it. */
export async function visitOperators(options: VisitOptions = {}) {
  const variables = { KV_PATH: ":memory:", OPERATOR_TOKEN: TOKEN, OPERATOR_READ_TOKEN: READ_TOKEN };
  const runtime = ["--import-map", "tests/browser/import_map.json"];
  const start = () => ServerProcess.start(variables, { runtime });
  return await visit({ ...WIDE, ...options, start, path: "/operator" });
}

/** Opens the page with a token. */
export async function enter(page: Page, token = TOKEN): Promise<void> {
  await page.locator("#token").fill(token);
  await press(page, "Open");
}

/** Sends a request of the operator, past the page. */
export async function post(origin: string, path: string, json: unknown) {
  const headers = { "content-type": "application/json", authorization: `Bearer ${TOKEN}` };
  const response = await fetch(`${origin}/operator/v1/${path}`, {
    method: "POST",
    headers,
    body: JSON.stringify(json),
  });
  return await response.json();
}

/** Opens a list by its name. */
export async function goTo(page: Page, name: string): Promise<void> {
  if (await page.locator("#contents").isHidden()) await press(page, "Contents");
  await page.locator("#views a", { hasText: new RegExp(`^${name}$`) }).click();
  await until(page, "#title", name);
  await page.locator("#view:not([aria-busy])").waitFor();
}
