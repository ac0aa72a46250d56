import { assertEquals } from "@std/assert";
import type { Page } from "playwright-core";
import { PATH } from "../process/shipped.ts";
import { signUp, visit } from "./browser.ts";

/** Lists items from a page, through the browser's cache. Resolves to what the page may read of the response. */
async function list(page: Page, url: string, key: string): Promise<unknown[]> {
  return await page.evaluate(async ([url, authorization]) => {
    const response = await fetch(url, { headers: { authorization } });
    return [response.status, await response.text(), response.headers.get("x-ratelimit-limit")];
  }, [url, `Bearer ${key}`] as const);
}

for (const browser of ["chromium", "firefox"] as const) {
  Deno.test(`pages of two origins of a site read the same list, through one cache, in ${browser}`, async () => {
    await using other = Deno.serve(
      { port: 0, hostname: "127.0.0.1", onListen() {} },
      () => new Response("<title>Another origin</title>", { headers: { "content-type": "text/html" } }),
    );
    await using visitor = await visit({ browser });
    const { page, origin } = visitor;
    const key = await signUp(page);
    const url = `${origin}${PATH}?limit=3`;
    const home = `http://localhost:${other.addr.port}/`;
    const read: unknown[][] = [];
    let isRevalidated = false;
    page.on("response", async (response) => {
      if (response.url() !== url) return;
      // Chromium says 200, and Firefox hides If-None-Match.
      const headers = await response.request().allHeaders();
      isRevalidated = response.status() === 304 || "if-none-match" in headers;
    });

    for (const from of [`${origin}/`, home, `${origin}/`, home]) {
      await page.goto(from);
      for (let count = 0; count < 2; count++) read.push(await list(page, url, key));
    }

    assertEquals([...read, isRevalidated], [...Array(8).fill([200, "[]", "60"]), true]);
  });
}
