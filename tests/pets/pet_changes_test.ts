import { assertEquals, assertGreater, assertNotEquals } from "@std/assert";
import { assertError } from "../support/assertions.ts";
import { call } from "../support/client.ts";
import { RecordingService } from "../support/harness.ts";
import { OF_PETS, petsIn, REX, Shop } from "./shop.ts";
import { PETS } from "../../src/pets/pets.ts";
import { assertConsistent, storeName } from "../support/stored_rows.ts";

Deno.test.each([
  [{ status: "sold" }, "application/json"],
  [{ name: "Tom" }, "application/merge-patch+json"],
  [{ categoryId: 8 }, "Application/Merge-Patch+JSON; charset=utf-8"],
  [{ name: "Tom", categoryId: 8, status: "pending", id: 9 }, "application/json"],
])("updatePet() changes only the fields in %j, sent as %s", async (patch, type) => {
  await using shop = await Shop.open();
  await shop.add("available", "sold");
  const changed = { ...REX, status: "available", ...patch, id: 1 };

  const response = await shop.call("PATCH /v1/pets/1", {
    body: JSON.stringify(patch),
    headers: { "content-type": type },
  });

  assertEquals(response.status, 200);
  assertEquals(response.headers.get("content-type"), "application/json");
  assertEquals(response.headers.get("deprecation"), null);
  assertEquals<unknown>(await response.json(), changed);
  const got = await shop.call("GET /v1/pets/1");
  assertEquals(got.headers.get("etag"), response.headers.get("etag"));
  assertEquals<unknown>(await got.json(), changed);
  for (const status of ["available", "pending", "sold"]) {
    const ids = [...(changed.status === status ? [1] : []), ...(status === "sold" ? [2] : [])];
    assertEquals(await shop.ids(`?status=${status}`), ids);
  }
  await assertConsistent(shop.kv, [PETS]);
});

Deno.test("createPet() rejects a merge patch", async () => {
  await using shop = await Shop.open();

  const response = await shop.call("POST /v1/pets", {
    body: JSON.stringify(REX),
    headers: { "content-type": "application/merge-patch+json" },
  });

  await assertError(response, 400, "invalid_content_type", /must be application\/json\.$/);
});

Deno.test.each([{}, { id: "2" }, { id: 1, ...REX, status: "available" }, {
  name: "Rex",
  status: "available",
}])(
  "updatePet() returns the animal and writes nothing if %j changes nothing",
  async (patch) => {
    await using shop = await Shop.open();
    await shop.add("available");
    const got = await shop.call("GET /v1/pets/1");
    const { versionstamp } = await shop.kv.get(["catalogue"]);

    const response = await shop.patch(1, patch);

    assertEquals(response.status, 200);
    assertEquals(response.headers.get("etag"), got.headers.get("etag"));
    assertEquals(await response.text(), await got.text());
    assertEquals((await shop.kv.get(["catalogue"])).versionstamp, versionstamp);
  },
);

Deno.test("deletePet() removes the animal, and no process uses its ID again", async () => {
  await using shop = await Shop.open();
  await shop.add("available", "sold", "sold");

  const response = await shop.call("DELETE /v1/pets/3");

  assertEquals(response.status, 204);
  assertEquals(response.headers.get("content-type"), null);
  assertEquals(await response.text(), "");
  for (const method of ["GET", "DELETE", "PATCH"]) {
    const gone = await shop.call(`${method} /v1/pets/3`, method === "PATCH" ? { json: {} } : {});
    await assertError(gone, 404, "pet_not_found");
  }
  assertEquals([await shop.ids(), await shop.ids("?status=sold")], [[1, 2], [2]]);
  await using later = shop.beside();
  assertGreater((await later.add("sold"))[0] ?? 0, 3);
  await assertConsistent(shop.kv, [PETS]);
});

const MISMATCH = { "if-match": '"other"' };

Deno.test.each<[string, string, object | undefined, object, number, string]>([
  [
    "an invalid body before anything else",
    "PATCH /v1/pets/9",
    { name: null },
    MISMATCH,
    400,
    "invalid_request",
  ],
  ["a missing animal", "PATCH /v1/pets/9", {}, MISMATCH, 404, "pet_not_found"],
  [
    "a missing animal despite If-Match: *",
    "PATCH /v1/pets/9",
    {},
    { "if-match": "*" },
    404,
    "pet_not_found",
  ],
  ["another account's animal", "PATCH /v1/pets/1", {}, MISMATCH, 403, "not_your_pet"],
  ["a changed animal", "PATCH /v1/pets/2", {}, MISMATCH, 412, "precondition_failed"],
  ["a missing animal", "DELETE /v1/pets/9", undefined, { "if-match": "*" }, 404, "pet_not_found"],
  ["another account's animal", "DELETE /v1/pets/1", undefined, MISMATCH, 403, "not_your_pet"],
  ["a changed animal", "DELETE /v1/pets/2", undefined, MISMATCH, 412, "precondition_failed"],
  ["an existing animal", "PATCH /v1/pets/2", {}, { "if-none-match": "*" }, 412, "precondition_failed"],
  [
    "an existing animal",
    "DELETE /v1/pets/2",
    undefined,
    { "if-none-match": "*" },
    412,
    "precondition_failed",
  ],
])("service reports %s: %s", async (_, target, json, headers, status, code) => {
  await using shop = await Shop.open();
  const theirs = await shop.createAccount();
  await shop.fetch("POST /v1/pets", { key: theirs.apiKey, json: REX });
  await shop.add("available");
  const before = await (await shop.call("GET /v1/pets")).text();

  const response = await shop.call(target, { ...(json && { json }), headers: { ...headers } });

  assertEquals(response.headers.get("deprecation"), null);
  await assertError(response, status, code);
  assertEquals(await (await shop.call("GET /v1/pets")).text(), before);
});

Deno.test("service lets an account change its animals with a rotated key", async () => {
  await using shop = await Shop.open();
  const { account, apiKey } = await shop.createAccount();
  await shop.fetch("POST /v1/pets", { key: apiKey, json: REX });
  const rotated = await shop.accounts.rotate(account.id, 0, shop.now);

  const response = await shop.fetch("DELETE /v1/pets/1", { key: rotated?.apiKey ?? "" });

  assertEquals(response.status, 204);
});

for (const method of ["PATCH", "DELETE"]) {
  Deno.test.each<[string, (etag: string) => string, boolean]>([
    ["the tag", (etag) => etag, true],
    ["one of several tags", (etag) => `"a" , ${etag},"b"`, true],
    ["*", () => "*", true],
    ["a tag with a comma, and empty elements", (etag) => `, "a,b" ,, ${etag} ,`, true],
    ["another tag", () => '"other"', false],
    ["a weak tag", (etag) => `W/${etag}`, false],
  ])(`${method} with %s in If-Match succeeds: %3$s`, async (_, value, matches) => {
    await using shop = await Shop.open();
    const created = await shop.call("POST /v1/pets", { json: REX });
    const headers = { "if-match": value(created.headers.get("etag") ?? "") };
    const json = { status: "sold" };

    const response = await shop.call(
      `${method} /v1/pets/1`,
      method === "PATCH" ? { json, headers } : { headers },
    );

    assertEquals(response.status === 412, !matches);
    assertEquals(await shop.ids("?status=available"), matches ? [] : [1]);
  });
}

for (const method of ["PATCH", "DELETE"]) {
  Deno.test(`${method} rejects a malformed If-Match or If-None-Match, even for a missing animal`, async () => {
    await using shop = await Shop.open();
    const { apiKey } = await shop.createAccount();
    await shop.fetch("POST /v1/pets", { key: apiKey, json: REX });
    await shop.add("available");
    const before = await (await shop.call("GET /v1/pets")).text();

    for (const name of ["If-Match", "If-None-Match"]) {
      for (const id of [1, 2, 9]) {
        const response = await shop.call(`${method} /v1/pets/${id}`, {
          ...(method === "PATCH" && { json: { status: "sold" } }),
          headers: { [name]: "3f42" },
        });
        await assertError(
          response,
          400,
          "invalid_request",
          RegExp(`^${name} must be \\* or entity tags`),
        );
      }
    }

    assertEquals(await (await shop.call("GET /v1/pets")).text(), before);
  });

  Deno.test.each<[string, string, (etag: string) => string, RegExp]>([
    [
      "If-Match",
      "a different tag",
      () => '"other"',
      /^If-Match does not contain .* in the ETag header of this response\.$/,
    ],
    ["If-Match", "its tag as a weak one", (etag) => `"a", W/${etag}`, /^If-Match .*weak tag \(W\/\)/],
    ["If-Match", "a strong tag that ends in W/", () => `"aW/"`, /^If-Match does not contain [^(]*$/],
    [
      "If-None-Match",
      "its tag",
      (etag) => etag,
      /^If-None-Match is \*, or contains .*, which is in the ETag header/,
    ],
    [
      "If-None-Match",
      "its tag as a weak one",
      (etag) => `W/${etag}`,
      /^If-None-Match is \*, or contains .*, which is in the ETag header/,
    ],
    ["If-None-Match", "*", () => "*", /^If-None-Match is \*/],
  ])(
    `${method} reports that %s failed for %s, and returns the current ETag`,
    async (name, _, value, message) => {
      await using shop = await Shop.open();
      const created = await shop.call("POST /v1/pets", { json: REX });
      const etag = created.headers.get("etag") ?? "";

      const response = await shop.call(`${method} /v1/pets/1`, {
        ...(method === "PATCH" && { json: { status: "sold" } }),
        headers: { [name]: value(etag) },
      });

      assertEquals(response.headers.get("etag"), etag);
      await assertError(response, 412, "precondition_failed", message);
      assertEquals(await shop.ids("?status=available"), [1]);
    },
  );
}

Deno.test("service checks If-Match before If-None-Match", async () => {
  await using shop = await Shop.open();
  await shop.add("available");

  const response = await shop.patch(1, {}, { "if-match": '"other"', "if-none-match": "*" });

  await assertError(response, 412, "precondition_failed", /^If-Match /);
});

Deno.test.each([" ", "\u00a0\u3000", "R\u0000e\nx\u009b", "\u202eRex"])(
  "service lists, changes and removes a stored animal whose name %j is invalid in requests",
  async (name) => {
    await using shop = await Shop.open();
    await shop.add("available");
    await storeName(shop.kv, 1, name, PETS);
    const match = { "if-match": (await shop.call("GET /v1/pets/1")).headers.get("etag") ?? "" };

    const listed = await shop.call("GET /v1/pets?status=available");
    const sold = await shop.patch(1, { status: "sold" }, match);
    const kept = await shop.patch(1, {});
    const removed = await shop.call("DELETE /v1/pets/1");

    assertEquals([listed, sold, kept, removed].map(({ status }) => status), [200, 200, 200, 204]);
    for (const [response, status] of [[listed, "available"], [sold, "sold"], [kept, "sold"]] as const) {
      assertEquals<unknown>(await petsIn(response), [{ id: 1, ...REX, name, status }]);
    }
    await assertConsistent(shop.kv, [PETS]);
  },
);

Deno.test("service returns the same ETag for the same content, and different ones otherwise", async () => {
  await using shop = await Shop.open();
  const tagOf = async (response: Response | Promise<Response>) => (await response).headers.get("etag") ?? "";
  const created = await tagOf(shop.call("POST /v1/pets", { json: REX }));
  const listed = await tagOf(shop.call("GET /v1/pets?status=available"));
  await shop.add("sold");

  const sold = await tagOf(shop.patch(1, { status: "sold" }));
  const gone = await shop.patch(1, { status: "sold" }, { "if-match": created });
  const again = await tagOf(shop.patch(1, { status: "available" }, { "if-match": sold }));
  const got = await shop.call("GET /v1/pets/1", { headers: { "if-none-match": created } });
  const list = await shop.call("GET /v1/pets?status=available", { headers: { "if-none-match": listed } });

  assertNotEquals(sold, created);
  assertEquals(gone.status, 412);
  assertEquals(again, created);
  assertEquals([got.status, list.status], [304, 304]);
});

Deno.test("service applies one of many simultaneous changes with the same If-Match, in two processes", async () => {
  await using shop = await Shop.open();
  await using beside = shop.beside();
  const created = await shop.call("POST /v1/pets", { json: REX });
  const headers = { "if-match": created.headers.get("etag") ?? "" };

  const responses = await Promise.all(
    Array.from(
      { length: 24 },
      (_, turn) => (turn % 2 ? shop : beside).patch(1, { name: `Rex ${turn}` }, headers),
    ),
  );

  const changed = responses.filter(({ status }) => status === 200);
  const refused = responses.filter(({ status }) => status === 412);
  assertEquals([changed.length, refused.length], [1, 23]);
  assertEquals(
    await petsIn(await shop.call("GET /v1/pets/1")),
    (await Promise.all(changed.map(petsIn))).flat(),
  );
});

Deno.test("service loses no simultaneous change to fields of one animal, in two processes", async () => {
  await using shop = await Shop.open();
  await using beside = shop.beside();
  await shop.add("available");
  const [name, categoryId, status] = ["Tom", 8, "sold"];

  const responses = await Promise.all(
    [{ name }, { categoryId }, { status }, {}].flatMap((
      patch,
    ) => [shop.patch(1, patch), beside.patch(1, patch)]),
  );

  assertEquals(responses.map((response) => response.status), new Array(8).fill(200));
  assertEquals<unknown>(await petsIn(await shop.call("GET /v1/pets/1")), [{
    id: 1,
    name,
    categoryId,
    status,
  }]);
  await assertConsistent(shop.kv, [PETS]);
});

Deno.test("service loses no change that another process makes between its read and its commit", async () => {
  await using service = await RecordingService.open({ catalogue: OF_PETS });
  await using other = service.beside({ catalogue: OF_PETS });
  const { time } = service;
  const { apiKey: key } = await service.createAccount();
  await call(service, key, "POST /v1/pets", { json: REX });
  let isBeaten = false;
  service.disturbance = {
    commit: async ({ keys, apply }) => {
      if (!isBeaten && keys.some(([table]) => table === "pets")) {
        isBeaten = true;
        await call(other, key, "PATCH /v1/pets/1", { json: { status: "sold" } });
      }
      return await apply();
    },
  };

  const reply = await time.until(call(service, key, "PATCH /v1/pets/1", { json: { name: "Tom" } }), 1_000);

  assertEquals([reply.status, isBeaten], [200, true]);
  const pet = await petsIn(await time.until(other.fetch("GET /v1/pets/1", { key }), 1_000));
  assertEquals<unknown>(pet, [{ id: 1, ...REX, name: "Tom", status: "sold" }]);
});
