import { ACCESS } from "../../src/resource/access.ts";
import { assertEquals } from "@std/assert";
import { Harness } from "../support/harness.ts";
import { addKnownAccounts, ALL, credentialFor, SAMPLES } from "../support/operations.ts";
import { HAMMER } from "../support/things.ts";
import { JSON_TYPE } from "../support/client.ts";
import { Workshop } from "../support/workshop.ts";

const NAMES = ["__proto__", "constructor", "prototype", "toString", "hasOwnProperty"];
const VALUES = ['{"state":"lost","isAdmin":true}', '"x"', "null", "[]", '{"prototype":{"state":"lost"}}'];

/** The names that every object inherits. */
function inheritedNames(): string {
  return JSON.stringify(
    [Object.prototype, Array.prototype, Function.prototype].map((prototype) =>
      Object.getOwnPropertyNames(prototype)
    ),
  );
}

Deno.test("service ignores or refuses body fields that are named like inherited properties", async () => {
  const before = inheritedNames();

  for (const { operation, target, request: { json } } of SAMPLES) {
    if (json === undefined) continue;
    for (const value of VALUES) {
      await using workshop = await Workshop.open(ALL);
      await workshop.add({ state: "new" });
      await addKnownAccounts(workshop);
      const fields = NAMES.map((name) => `"${name}":${value}`).join();
      const body = JSON.stringify(json).replace("{", `{${fields},`);
      const credential = credentialFor(operation, workshop.key);
      const response = await workshop.fetch(target, { ...credential, headers: JSON_TYPE, body });
      const text = await response.text();
      const isRefused = response.status === 400 && text.includes(`The field ${NAMES[0]} is unknown`);
      const outcome = [response.ok || isRefused, text.includes("lost"), text.includes("isAdmin")];
      assertEquals([target, body, ...outcome], [target, body, true, false, false]);
      assertEquals(isRefused, operation.isExtension === true || operation.access === ACCESS.operator);
    }
  }

  assertEquals(inheritedNames(), before);
  assertEquals(Reflect.get({}, "state"), undefined);
});

Deno.test("service treats names of inherited properties like any others in URLs, headers and keys", async () => {
  await using workshop = await Workshop.open();

  for (const name of NAMES) {
    const statuses = [];
    for (
      const path of [
        `/v1/things/${name}`,
        `/v1/${name}`,
        `/${name}`,
        `/v1/things?state=${name}`,
        `/v1/things?${name}=1`,
      ]
    ) {
      statuses.push((await workshop.call(`GET ${path}`)).status);
    }
    statuses.push((await workshop.fetch("GET /v1/things", { key: name })).status);
    statuses.push((await workshop.fetch(`${name} /v1/things`, { key: workshop.key })).status);
    assertEquals(statuses, [404, 404, 404, 400, 200, 401, 405], name);
    const headers = { "idempotency-key": name };
    for (const replayed of [null, "true"]) {
      const response = await workshop.call("POST /v1/things", { json: HAMMER, headers });
      assertEquals([response.status, response.headers.get("idempotency-replayed")], [201, replayed]);
    }
  }
});

Deno.test("service accepts an account named __proto__", async () => {
  await using service = await Harness.open();

  const response = await service.fetch("POST /v1/accounts", { json: { name: "__proto__" } });

  assertEquals([response.status, (await response.json()).name], [201, "__proto__"]);
});
