import { assertEquals, assertMatch } from "@std/assert";
import { ToyServer } from "../toys/toy_shop.ts";
import { call, choose, signUp, status, visit } from "./browser.ts";

Deno.test("page of a service of toys adds a toy, lists it by two filters, and names nothing else", async () => {
  await using visitor = await visit({ start: () => ToyServer.start() });
  const { page } = visitor;
  assertMatch(await page.title(), /^Toy Store: /);
  await signUp(page);
  assertEquals([await status(page), await page.locator("#answer-body").textContent()], ["200", "[]"]);
  await page.getByRole("button", { name: "Add a toy", exact: true }).click();
  assertEquals(await page.locator("#operation").inputValue(), "createToy");
  assertMatch(
    await page.locator("#request-createToy textarea").inputValue(),
    /"material": "metal",\s+"inStock": true/,
  );

  const body = page.locator("#request-createToy textarea");
  const example = await body.inputValue();
  const omitted = page.locator("#request-createToy .left-out:visible");
  assertEquals(await omitted.allTextContents(), ['"tags": array, omitted']);
  await body.fill(example.replace(/"material".+\n/, ""));
  assertEquals(await omitted.allTextContents(), [
    '"material": wood | metal | plastic | plush | paper, omitted',
    '"tags": array, omitted',
  ]);
  await body.fill(example);

  assertEquals(await call(page), "201");
  await choose(page, "listToys");
  await page.locator("#request-listToys [name=material]").selectOption("metal");
  await page.locator("#request-listToys [name=inStock]").selectOption("false");
  assertEquals([await call(page), await page.locator("#answer-body").textContent()], ["200", "[]"]);
  await page.locator("#request-listToys [name=inStock]").selectOption("true");
  assertEquals(await call(page), "200");

  assertMatch(await page.locator("#answer-body").textContent() ?? "", /"name": "Robot"/);
  assertEquals((await page.locator("body").textContent())?.match(/\b(?:pet|animal)s?\b/gi), null);
  assertEquals(visitor.noise, []);
});
