import { assertEquals } from "@std/assert";
import { slugOf } from "../src/app/service.ts";
import { CATALOGUE } from "../src/catalogue/catalogue.ts";
import { withName } from "./names.ts";
import { DOCUMENTS } from "./tables.ts";

const TEXTS = await Promise.all(
  DOCUMENTS.map((name) => Deno.readTextFile(`${import.meta.dirname}/../${name}`)),
);

Deno.test("withName() replaces only names of the service, even if they are words of the guides", () => {
  const name = slugOf(CATALOGUE.title, "-");
  const words = new Set(TEXTS.flatMap((text) => text.match(/\b[A-Za-z]{2,}/g) ?? []));

  const changed = [...words].filter((word) =>
    TEXTS.some((text) => withName(withName(text, name, word), word.toLowerCase(), CATALOGUE.title) !== text)
  );

  assertEquals(changed, []);
});
