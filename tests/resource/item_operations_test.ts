import { assertEquals } from "@std/assert";
import { assertError } from "../support/assertions.ts";
import { nextTarget } from "../support/client.ts";
import { HAMMER, OF_THINGS, THINGS } from "../support/things.ts";
import { Workshop } from "../support/workshop.ts";

const OPERATOR_TOKEN = "the-operators-token-in-the-tests";
const STORED = { ...HAMMER, state: "new", isSpare: false };

Deno.test("operations of a resource refuse unknown names, even without Prefer, unless it is lenient", async () => {
  const { isLenient: _, ...strict } = THINGS;
  await using workshop = await Workshop.open({ catalogue: { ...OF_THINGS, resources: [strict] } });
  await workshop.add({});

  for (
    const [target, json] of [
      ["GET /v1/things?stat=new", undefined],
      ["GET /v1/things/1?x=1", undefined],
      ["POST /v1/things", { ...HAMMER, colour: "red" }],
      ["PATCH /v1/things/1", { colour: "red" }],
    ] as const
  ) {
    const response = await workshop.call(target, {
      ...(json && { json }),
      headers: { prefer: "handling=lenient" },
    });
    await assertError(response, 400, "invalid_request", /^The (query parameter|field) \w+ is unknown/);
  }
});

Deno.test("update removes an optional field with null, but no other field", async () => {
  await using workshop = await Workshop.open();
  await workshop.add({ labels: ["mine"] });

  const removed = await workshop.call("PATCH /v1/things/1", { json: { labels: null } });
  const again = await workshop.call("GET /v1/things/1");

  assertEquals([removed.status, await removed.json()], [200, { id: 1, ...STORED }]);
  assertEquals(again.headers.get("etag"), removed.headers.get("etag"));
  for (const name of ["name", "weight", "state", "isSpare"]) {
    const refused = await workshop.call("PATCH /v1/things/1", { json: { [name]: null } });
    await assertError(
      refused,
      400,
      "invalid_request",
      new RegExp(`^The field ${name} must not be null: leave it out\\.$`),
    );
  }
});

Deno.test("list combines filters in pages that are full, with links that keep them", async () => {
  await using workshop = await Workshop.open();
  for (let count = 0; count < 4; count++) {
    await workshop.add({ state: "used", isSpare: true }, { state: "used" }, { isSpare: true });
  }

  const seen: number[] = [];
  let target: string | undefined = "GET /v1/things?isSpare=true&limit=2&state=used";
  while (target !== undefined) {
    const page = await workshop.call(target);
    const things: { id: number }[] = await page.json();
    assertEquals(things.length, 2);
    seen.push(...things.map(({ id }) => id));
    target = nextTarget(page);
    if (target) {
      assertEquals(target.replace(/cursor=.*/, ""), "GET /v1/things?limit=2&state=used&isSpare=true&");
    }
  }

  assertEquals(seen, [1, 4, 7, 10]);
  assertEquals(await workshop.ids("?isSpare=false&state=new"), []);
  assertEquals(await workshop.ids("?isSpare=false"), [2, 5, 8, 11]);
});

Deno.test("list follows sort and cursors in either order, and refuses a cursor of the other order", async () => {
  await using workshop = await Workshop.open({ operatorToken: OPERATOR_TOKEN });
  for (let count = 0; count < 3; count++) await workshop.add({ state: "used" }, {});

  for (const [path, key] of [["/operator/v1", OPERATOR_TOKEN], ["/v1", workshop.key]] as const) {
    const call = async (query: string) => {
      const page = await workshop.fetch(`GET ${path}/things?limit=4${query}`, { key });
      const things: { id: number }[] = await page.clone().json();
      return { page, ids: page.ok ? things.map(({ id }) => id) : [], next: nextTarget(page) ?? "" };
    };
    const pages = [await call(""), await call("&sort=id"), await call("&sort=-id")];
    const [, ascending = "", descending = ""] = pages.map(({ next }) => next.replace(/^.*(?=&cursor)/, ""));

    assertEquals(pages.map(({ ids }) => ids), [[1, 2, 3, 4], [1, 2, 3, 4], [6, 5, 4, 3]]);
    for (const sort of ["", "&sort=id"]) assertEquals((await call(ascending + sort)).ids, [5, 6]);
    for (const sort of ["", "&sort=-id"]) assertEquals((await call(descending + sort)).ids, [2, 1]);
    for (
      const [wrong, right] of [[`${ascending}&sort=-id`, "id"], [`${descending}&sort=id`, "-id"]] as const
    ) {
      const message = new RegExp(
        `^The query parameter sort must be ${right}, as in the list .* or be left out`,
      );
      await assertError((await call(wrong)).page, 400, "invalid_request", message);
    }
  }

  assertEquals(await workshop.ids("?state=used&sort=-id&limit=2"), [5, 3]);
  const page = await workshop.call("GET /v1/things?sort=-id&state=used&limit=2");
  assertEquals(nextTarget(page), "GET /v1/things?limit=2&state=used&sort=-id&cursor=LTM");
});

Deno.test("a patch that changes nothing writes nothing, whether an operator or the owner sends it", async () => {
  await using workshop = await Workshop.open({ operatorToken: OPERATOR_TOKEN });
  await workshop.add({ state: "used" });
  const rows = async () => {
    const entries = await Array.fromAsync(workshop.kv.list({ prefix: [] }));
    return entries.filter(({ key: [table] }) => /^(items|items_by|versions)$/.test(String(table)));
  };
  const before = await rows();

  for (const patch of [{}, { state: "used", name: HAMMER.name }]) {
    for (const [target, key] of [["/operator/v1", OPERATOR_TOKEN], ["/v1", workshop.key]] as const) {
      const response = await workshop.fetch(`PATCH ${target}/things/1`, { key, json: patch });
      assertEquals([response.status, (await response.json()).state], [200, "used"]);
    }
  }

  assertEquals(await rows(), before);
});

Deno.test("operators list, change and delete items of any account", async () => {
  await using workshop = await Workshop.open({ operatorToken: OPERATOR_TOKEN });
  await workshop.add({ labels: ["mine"] }, {}, {});
  const call = (target: string, json?: object) =>
    workshop.fetch(target, { key: OPERATOR_TOKEN, ...(json && { json }) });

  const page = await call("GET /operator/v1/things?limit=2");
  const changed = await call("PATCH /operator/v1/things/1", { labels: null, isSpare: true });
  const removed = await call("DELETE /operator/v1/things/2");

  const owned: { id: number; accountId: string }[] = await page.json();
  assertEquals(owned.map(({ id }) => id), [1, 2]);
  assertEquals(nextTarget(page), "GET /operator/v1/things?limit=2&cursor=2");
  const accountId = owned[0]?.accountId;
  assertEquals(await changed.json(), { id: 1, ...STORED, isSpare: true, accountId });
  assertEquals(removed.status, 204);
  assertEquals(await workshop.ids(), [1, 3]);
  assertEquals(await workshop.ids("?isSpare=true"), [1]);
  await assertError(await call("DELETE /operator/v1/things/2"), 404, "thing_not_found");
});
