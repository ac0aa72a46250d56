import { assert, assertEquals } from "@std/assert";
import axe, { type AxeResults } from "axe-core";
import type { Page } from "playwright-core";

/** The rules of axe for WCAG 2 up to level AAA, and for good practice. */
const RULES = ["wcag2a", "wcag2aa", "wcag2aaa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/** Asserts that axe finds nothing, and that nothing scrolls sideways. Most states differ only in the console. */
export async function check(
  page: Page,
  state: string,
  within = "#console",
  without: string[] = [],
): Promise<void> {
  await page.evaluate(axe.source);
  const results = await page.evaluate(async ([within, values, without]) => {
    // What a sticky row covers by chance is too small a target.
    for (const scroller of [window, document.querySelector("#console")]) scroller?.scrollTo(0, 0);
    await Promise.all(document.getAnimations().map(({ finished }) => finished));
    const rules = Object.fromEntries(without.map((id) => [id, { enabled: false }]));
    return await globalThis.axe.run(within, { runOnly: { type: "tag", values }, rules });
  }, [within, RULES, without] as const);
  const found = results.violations.map(({ id, nodes: [first] }) =>
    `${id}: ${first?.html} ${first?.failureSummary}`
  );
  assertEquals([state, ...found], [state]);
  await checkFit(page, state);
}

/** Asserts that nothing scrolls sideways. */
export async function checkFit(page: Page, state: string): Promise<void> {
  assert(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), state);
}

declare global {
  var axe: { run(within: string, options: object): Promise<AxeResults> };
}
