import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { type HarnessRequest, nextTarget, requestTo } from "../support/client.ts";
import { runToyTask, ToyServer } from "./toy_shop.ts";

const OPERATOR_TOKEN = "the-operators-token-in-this-one-test";
const ROBOT = { name: "Robot", priceCents: 1_999, material: "metal", inStock: true };
const MATERIALS = ["wood", "metal", "plastic", "plush", "paper"];

Deno.test("toys take the place of the shipped collection by the steps of the guide", async (test) => {
  await using server = await ToyServer.start({ OPERATOR_TOKEN });
  const { folder, origin } = server;
  const send = async (target: string, options?: HarnessRequest) => {
    const response = await fetch(requestTo(origin, target, options));
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      json: text === "" ? undefined : JSON.parse(text),
      response,
    };
  };
  const signUp = async (name: string): Promise<string> =>
    (await send("POST /v1/accounts", { json: { name } })).json.apiKey;
  const [key, otherKey] = [await signUp("me"), await signUp("you")];
  const call = (target: string, json?: unknown, headers: Record<string, string> = {}) =>
    send(target, { key, headers, ...(json !== undefined && { json }) });

  await test.step("the first lines name the service, its file and its path", async () => {
    const { text } = server.process.stderr;
    assertMatch(text, /^Toy Store \d+\.\d+\.\d+: environment staging, .* in the KV data\/toys\.kv\.$/m);
    await server.process.wrote("stderr", /^There is no account yet\. .* and list the toys:$/m);
    await server.process.wrote("stderr", /\/v1\/toys$/m);
  });

  await test.step("a toy is created once for an Idempotency-Key", async () => {
    const once = { "idempotency-key": "once" };
    const first = await call("POST /v1/toys", ROBOT, once);
    const again = await call("POST /v1/toys", ROBOT, once);
    const reused = await call("POST /v1/toys", { ...ROBOT, name: "Other" }, once);

    assertEquals([first.status, first.json], [201, { id: 1, ...ROBOT }]);
    assertEquals(first.headers.get("location"), `${origin}/v1/toys/1`);
    assertEquals([again.status, again.json, again.headers.get("idempotency-replayed")], [
      201,
      first.json,
      "true",
    ]);
    assertEquals([reused.status, reused.json.code], [422, "idempotency_key_reused"]);
  });

  await test.step("invalid and unknown fields and parameters get 400", async () => {
    for (
      const [target, json, message] of [
        [
          "POST /v1/toys",
          {},
          "The field name is required and must be a string. The field priceCents is required and must be an integer " +
          "from 0 to 1000000. The field material is required and must be one of wood, metal, plastic, plush, paper. The field inStock is " +
          "required and must be true or false.",
        ],
        ["POST /v1/toys", { ...ROBOT, instock: true }, "The field instock is unknown; did you mean inStock?"],
        ["GET /v1/toys?inStock=yes", undefined, "The query parameter inStock must be true or false."],
        ["GET /v1/toys?status=sold", undefined, "The query parameter status is unknown."],
      ] as const
    ) {
      const refused = await call(target, json);
      assertEquals([target, refused.status, refused.json.message], [target, 400, message]);
    }
  });

  await test.step("lists are filtered by material and stock, in pages", async () => {
    for (const material of MATERIALS) {
      for (const inStock of [true, false]) await call("POST /v1/toys", { ...ROBOT, material, inStock });
    }
    const counts = await Promise.all(
      [
        "",
        "?material=metal",
        "?inStock=false",
        "?material=metal&inStock=true",
        "?inStock=false&material=wood",
      ].map(
        async (query) => (await call(`GET /v1/toys${query}`)).json.length,
      ),
    );
    const first = await call("GET /v1/toys?inStock=true&limit=4");
    const second = await call(nextTarget(first.response) ?? "");
    const unchanged = await call("GET /v1/toys?limit=4&inStock=true", undefined, {
      "if-none-match": first.headers.get("etag") ?? "",
    });

    assertEquals(counts, [11, 3, 5, 2, 1]);
    assertEquals([first.json.length, second.json.length, nextTarget(second.response)], [4, 2, undefined]);
    assertEquals(unchanged.status, 304);
  });

  await test.step("a toy is read, changed and deleted by its owner, unless it has changed", async () => {
    const read = await call("GET /v1/toys/1");
    const etag = read.headers.get("etag") ?? "";
    const tagged = await call("PATCH /v1/toys/1", { tags: ["new", "loud"], inStock: false }, {
      "if-match": etag,
    });
    const outdated = await call("PATCH /v1/toys/1", { inStock: true }, { "if-match": etag });
    const foreign = await send("PATCH /v1/toys/1", { key: otherKey, json: { inStock: true } });
    const untagged = await call("PATCH /v1/toys/1", { tags: null, priceCents: 999 });
    const removed = await call("DELETE /v1/toys/1");
    const missing = await call("GET /v1/toys/1");

    assertEquals([read.status, read.json, read.headers.get("deprecation")], [200, { id: 1, ...ROBOT }, null]);
    assertEquals(tagged.json, { id: 1, ...ROBOT, inStock: false, tags: ["new", "loud"] });
    assertEquals([outdated.status, outdated.json.code], [412, "precondition_failed"]);
    assertEquals([foreign.status, foreign.json.code], [403, "not_your_toy"]);
    assertEquals(untagged.json, { id: 1, ...ROBOT, inStock: false, priceCents: 999 });
    assertEquals([removed.status, missing.status, missing.json.code], [204, 404, "toy_not_found"]);
  });

  await test.step("toys count toward the limits of the account", async () => {
    const { headers } = await call("GET /v1/toys");
    assertEquals(headers.get("x-ratelimit-limit"), "60");
  });

  await test.step("the document and the texts know only toys", async () => {
    const text = async (path: string) => await (await fetch(origin + path)).text();
    const document = await text("/v1/openapi.json");
    const metrics = await (await fetch(requestTo(origin, "GET /metrics", { key: OPERATOR_TOKEN }))).text();
    const { info, paths, tags, components } = JSON.parse(document);

    const { headers } = await send("GET /v1/toys");
    assertEquals(headers.get("www-authenticate"), 'Bearer realm="toy-store"');
    assertEquals(info.title, "Toy Store");
    assertEquals(info.summary, "A catalogue of toys, with API keys, plans and exact rate limits.");
    assertEquals("/toys" in paths && "/toys/{toyId}" in paths && !("/pets" in paths), true);
    assertEquals(tags[0], { name: "Toys", description: "The catalogue of toys" });
    assertEquals(components.schemas.ToyPatch.properties.tags.type, ["array", "null"]);
    assertEquals(await text("/docs/deprecations"), "No operation is deprecated.\n");
    assertStringIncludes(metrics, "\ntoy_store_requests_total{");
    for (const some of [document, await text("/"), metrics]) {
      assertEquals(some.match(/\b(?:pet|animal)s?\b|original interface/gi), null);
    }
  });

  await test.step("commands list, change and delete toys, here and over HTTP", async () => {
    const remote = { SERVICE_URL: origin, OPERATOR_TOKEN };
    const listed = await runToyTask(folder, ["items", "toys", "list", "--json"], { OPERATOR_TOKEN });
    const [wooden = 0, other = 0] = listed.stdout.trim().split("\n").map((line) => JSON.parse(line).id);
    const set = ["items", "toys", "set", `${wooden}`, "--in-stock", "no", "--tags", "a", "--tags", "b"];
    const changed = await runToyTask(folder, set, remote);
    const refused = await runToyTask(
      folder,
      ["items", "toys", "set", `${wooden}`, "--in-stock", "true"],
      remote,
    );
    const removed = await runToyTask(folder, ["items", "toys", "delete", `${other}`], remote);

    assertEquals([listed.code, listed.stdout.trim().split("\n").length], [0, 10]);
    assertEquals([changed.code, changed.errorLines], [0, []]);
    assertEquals(JSON.parse(changed.stdout), {
      id: wooden,
      ...ROBOT,
      material: "wood",
      inStock: false,
      tags: ["a", "b"],
    });
    assertEquals(refused.code, 2);
    assertStringIncludes(refused.errorLines.join(), "--in-stock must be yes or no");
    assertEquals(removed.errorLines, [`Deleted: toy ${other}.`]);
    assertEquals((await call("GET /v1/toys?inStock=true&material=wood")).json, []);
  });
});
