// Every kind of field, in every form that a declaration allows.
import { assertEquals } from "@std/assert";
import { encodeText } from "../../src/engine/mod.ts";
import { interfaceForClients } from "../../src/app/document_operations.ts";
import { interfaceForOperators } from "../../src/operator/operations.ts";
import { stringifyJson } from "../../src/web/schema.ts";
import { assertError } from "../support/assertions.ts";
import { OPERATOR_TOKEN } from "../support/desk.ts";
import { Description } from "../support/openapi.ts";
import { EMPTY, FULL, OF_SPECIMENS, SPECIMENS } from "../support/specimens.ts";
import { Workshop } from "../support/workshop.ts";

const TYPE = { "content-type": "application/json" };

Deno.test.each<[string, object, object]>([
  ["a value for every field", FULL, {}],
  ["null wherever a field can have it", EMPTY, {}],
  ["null in place of every value", FULL, EMPTY],
])(
  "a specimen with %s is read as it was written, and PATCH with {} leaves it as it is",
  async (_, item, change) => {
    await using workshop = await Workshop.open({ catalogue: OF_SPECIMENS, operatorToken: OPERATOR_TOKEN });
    const send = (target: string, json: object) =>
      workshop.call(target, { body: stringifyJson(json), headers: TYPE });

    const created = await send("POST /v1/specimens", item);
    assertEquals(created.status, 201);
    const changed = await send("PATCH /v1/specimens/1", change);
    assertEquals(changed.status, 200);
    const expected = await changed.text();
    const optional = Object.entries(SPECIMENS.fields).filter(([, schema]) => "isOptional" in schema);
    for (const [name, value] of Object.entries({ ...item, ...change })) {
      const isRemoved = value === null && name in change && optional.some(([one]) => one === name);
      const isIn = expected.includes(`"${name}":${stringifyJson(value)}`);
      assertEquals([name, isIn, expected.includes(`"${name}":`)], [name, !isRemoved, !isRemoved]);
    }

    assertEquals(await (await send("PATCH /v1/specimens/1", {})).text(), expected);
    assertEquals(await (await workshop.call("GET /v1/specimens/1")).text(), expected);
    assertEquals((await workshop.call("GET /operator/v1/specimens", { key: OPERATOR_TOKEN })).status, 200);
  },
);

Deno.test("PATCH accepts what was read, by a client and by an operator, and the documents allow it", async () => {
  await using workshop = await Workshop.open({ catalogue: OF_SPECIMENS, operatorToken: OPERATOR_TOKEN });
  const [headers, key] = [TYPE, OPERATOR_TOKEN];
  await workshop.call("POST /v1/specimens", { body: stringifyJson(FULL), headers });
  const { operations } = workshop.app;

  for (
    const [path, described, schema, request] of [
      ["/v1/specimens", interfaceForClients, "SpecimenPatch", { headers }],
      ["/operator/v1/specimens", interfaceForOperators, "OwnedSpecimenPatch", { headers, key }],
    ] as const
  ) {
    const [body = ""] = /\{.*\}/.exec(await (await workshop.call(`GET ${path}`, request)).text()) ?? [];
    const answer = await workshop.call(`PATCH ${path}/1`, { ...request, body });

    assertEquals([answer.status, await answer.text()], [200, body]);
    const description = new Description(operations, described(OF_SPECIMENS));
    const reference = { $ref: `#/components/schemas/${schema}` };
    assertEquals(description.problems(reference, JSON.parse(body)), []);
    assertEquals(JSON.stringify(description.document).includes("readOnly"), false);
  }
  const moved = await workshop.call("PATCH /operator/v1/specimens/1", {
    key,
    json: { accountId: "another" },
  });
  await assertError(
    moved,
    400,
    "invalid_request",
    /^The field accountId must be the account of the specimen/,
  );
});

/** Values that an earlier release stored, and that no request can set any more. */
const OUTDATED = {
  textPlain: "a\u0000",
  namePlain: "\u0085",
  dayPlain: "0000-01-01",
  timePlain: "2027-01-15t12:00:00z",
  timeNullable: "2027-01-15T12:00:00+23:59",
  textsPlain: ["a\u0000"],
};

Deno.test("PATCH accepts stored values that are no longer valid, if they are those of the item", async () => {
  await using workshop = await Workshop.open({ catalogue: OF_SPECIMENS, operatorToken: OPERATOR_TOKEN });
  const { id } = await (await workshop.call("GET /v1/account")).json();
  const stored = stringifyJson({ id: 1, ...FULL, ...OUTDATED });
  await workshop.kv.set(["items", "specimens", 1], encodeText(`${stored}\n${id}`));

  for (
    const [path, key] of [["/v1/specimens", workshop.key], [
      "/operator/v1/specimens",
      OPERATOR_TOKEN,
    ]] as const
  ) {
    const send = (json: object) =>
      workshop.call(`PATCH ${path}/1`, { key, headers: TYPE, body: stringifyJson(json) });
    const [body = ""] = /\{.*\}/.exec(await (await workshop.call(`GET ${path}`, { key })).text()) ?? [];

    assertEquals(await (await workshop.call(`PATCH ${path}/1`, { key, headers: TYPE, body })).text(), body);
    for (const [name, value] of Object.entries(OUTDATED)) {
      assertEquals([name, (await send({ [name]: value, integerPlain: 1 })).status], [name, 200]);
      const field = Array.isArray(value) ? `${name}[0]` : name;
      const other = Array.isArray(value) ? ["b\u0000"] : value.replace(/[\u0085a\d]/, "\u0000");
      const refused = await send({ [name]: other });
      assertEquals([name, (await refused.clone().json()).field], [name, field]);
      await assertError(refused, 400, "invalid_request");
    }
    const both = await send({ textPlain: OUTDATED.textPlain, integerPlain: 99 });
    await assertError(both, 400, "invalid_request", /textPlain must not .* integerPlain must be/);
    const swapped = await send({ timePlain: OUTDATED.timeNullable });
    await assertError(swapped, 400, "invalid_request", /timePlain must be a time/);
    assertEquals((await send({ integerPlain: -9 })).status, 200);
  }
});
