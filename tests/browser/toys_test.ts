import { assertEquals, assertMatch } from "@std/assert";
import { ToyServer } from "../toys/toy_shop.ts";
import { call, signUp, text, visit } from "./browser.ts";

Deno.test("page of a service of toys adds a toy, lists it by two filters, and names nothing else", async () => {
  await using visitor = await visit({ start: () => ToyServer.start() });
  const { page } = visitor;
  assertMatch(await page.title(), /^Toy Store: /);
  await signUp(page);
  await page.getByRole("button", { name: "Add a toy", exact: true }).click();
  assertMatch(
    await page.locator("#form-createToy textarea").inputValue(),
    /"material": "metal",\s+"inStock": true/,
  );
  assertEquals(await call(page), "201");

  await page.locator("#operation").selectOption("listToys");
  await page.locator("#form-listToys [name=material]").selectOption("metal");
  await page.locator("#form-listToys [name=inStock]").selectOption("false");
  assertEquals([await call(page), await text(page, "#body")], ["200", "[]"]);
  assertMatch(await text(page, "#message"), /Nothing matches\.$/);
  await page.locator("#form-listToys [name=inStock]").selectOption("true");
  assertEquals(await call(page), "200");

  assertMatch(await text(page, "#body"), /"name": "Robot"/);
  assertEquals((await page.locator("#operations").textContent())?.match(/\b(?:pet|animal)s?\b/gi), null);
  assertEquals(visitor.noise, []);
});
