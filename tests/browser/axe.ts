import { assert, assertEquals } from "@std/assert";
import axe from "axe-core";
import type { Page } from "playwright-core";

/** The rules of axe for WCAG 2 up to level AAA, and for good practice. */
const RULES = ["wcag2a", "wcag2aa", "wcag2aaa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/** Asserts that axe finds nothing, and that nothing scrolls sideways. Most states differ only in the console. */
export async function check(
  page: Page,
  state: string,
  within = "#console",
  without: readonly string[] = [],
): Promise<void> {
  await page.evaluate(axe.source);
  // What a sticky row covers by chance is too small a target.
  await page.evaluate(() =>
    [window, document.querySelector("#console")].map((scroller) => scroller?.scrollTo(0, 0))
  );
  const results = await page.evaluate(
    async ([within, values, without]) => {
      const animations = document.getAnimations().map(({ finished }) => finished);
      await Promise.all(animations);
      const rules = Object.fromEntries(without.map((id) => [id, { enabled: false }]));
      return await globalThis.axe.run(within, { runOnly: { type: "tag", values }, rules });
    },
    [within, RULES, without] as const,
  );
  const violations = results.violations.map(({ id, nodes }) =>
    `${state}: ${id}, ${nodes.length} times, such as ${nodes[0]?.html}: ${nodes[0]?.failureSummary}`
  );
  assertEquals(violations, []);
  await checkFit(page, state);
}

/** Asserts that nothing scrolls sideways. */
export async function checkFit(page: Page, state: string): Promise<void> {
  const [content, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert((content ?? 0) <= (room ?? 0), `${state}: ${content} px wide`);
}

declare global {
  var axe: { run(within: string, options: object): Promise<import("axe-core").AxeResults> };
}
