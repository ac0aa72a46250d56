import { assertThrows } from "@std/assert";
import { ApiError } from "../../src/http/error.ts";
import { requireEntityTags } from "../../src/http/preconditions.ts";

function asks(tags: string): Request {
  return new Request("http://localhost/", { headers: { "if-match": tags } });
}

Deno.test.each(["*", '""', '"a"', 'W/"a"', '"a","b"', '"a" ,\t"b"', ', ,"a",, "b",', '"a,bW/"', '"\xe9"'])(
  "requireEntityTags() takes %s",
  (tags) => requireEntityTags(asks(tags)),
);

Deno.test.each([
  "a",
  '"',
  '"a',
  '"a b"',
  '"a""b"',
  '"a"x',
  'w/"a"',
  'W/ "a"',
  "W/",
  "**",
  '"a", *',
  "",
  " , ",
])(
  "requireEntityTags() refuses %j",
  (tags) => {
    assertThrows(
      () => requireEntityTags(asks(tags)),
      ApiError,
      "If-Match must be * or entity tags in double",
    );
  },
);

/** Time that grows with the square of the length would come to half an hour. */
const LONG = 60_000;
const MANY = 100;

Deno.test("requireEntityTags() reads a long header once, whatever is in it", () => {
  for (const part of [" ", "\t", ",", ", ", '"a",', '"a" , ', '"', 'W/"a", ,', "a"]) {
    const tags = `"a",${part.repeat(LONG / part.length)}x`;
    for (let time = 0; time < MANY; time++) assertThrows(() => requireEntityTags(asks(tags)), ApiError);
  }
});
