import { ACCESS } from "../../src/resource/access.ts";
import { assertEquals } from "@std/assert";
import { isDocumented } from "../../src/web/openapi.ts";
import { resolved } from "../../src/web/schema.ts";
import { BASE_PATH } from "../../src/resource/interface.ts";
import { assertError } from "../support/assertions.ts";
import { addKnownAccounts, ALL, credentialFor, type Sample, SAMPLES } from "../support/operations.ts";
import { Description } from "../support/openapi.ts";
import { HAMMER, THINGS } from "../support/things.ts";
import { thingsIn, Workshop } from "../support/workshop.ts";

const STRICT = { prefer: "handling=strict" };
const APPLIED = "preference-applied";
const CLIENTS = SAMPLES.filter(({ operation: { access } }) =>
  access === ACCESS.key || access === ACCESS.address
);
const DESCRIPTION = new Description(SAMPLES.map(({ operation }) => operation));

/** The message for an The query parameter and is unknown, if the operation has a body, for an unknown field. */
const UNKNOWN = /^The query parameter staet is unknown(; did you mean state\?|\.)/;

/** A valid request with an unknown query parameter, and an unknown field if it has a body. */
function mistyped({ target, request }: Sample): [target: string, request: Sample["request"]] {
  const json = request.json === undefined ? {} : { json: { ...Object(request.json), staet: 1 } };
  return [`${target}?staet=1`, { ...request, ...json }];
}

for (const sample of SAMPLES) {
  const { operation, status } = sample;
  const isForClients = CLIENTS.includes(sample);
  const isStrict = (isForClients && operation.isExtension === true) || operation.access === ACCESS.operator;
  Deno.test(`${operation.id}() ${isStrict ? "refuses" : "ignores"} unknown names`, async () => {
    await using workshop = await Workshop.open(ALL);
    await workshop.add({ state: "new" });
    await addKnownAccounts(workshop);
    const [target, request] = mistyped(sample);

    const response = await workshop.fetch(target, { ...request, ...credentialFor(operation, workshop.key) });

    assertEquals(response.headers.get(APPLIED), null);
    const text = await response.clone().text();
    if (!isStrict) return assertEquals(response.status, status);
    await assertError(response, 400, "invalid_request", UNKNOWN);
    assertEquals(text.includes("The field staet is unknown"), request.json !== undefined);
  });

  Deno.test(`${operation.id}() ${isForClients || isStrict ? "refuses" : "ignores"} unknown names with handling=strict`, async () => {
    await using workshop = await Workshop.open(ALL);
    await workshop.add({ state: "new" });
    await addKnownAccounts(workshop);
    const [target, request] = mistyped(sample);
    const strict = { ...credentialFor(operation, workshop.key), headers: STRICT };

    const refused = await workshop.fetch(target, { ...request, ...strict });
    const accepted = await workshop.fetch(sample.target, { ...sample.request, ...strict });

    const applied = isForClients && !isStrict ? "handling=strict" : null;
    assertEquals([refused, accepted].map(({ headers }) => headers.get(APPLIED)), [applied, applied]);
    assertEquals([refused.status, accepted.status], [isForClients || isStrict ? 400 : status, status]);
    await Promise.all([refused, accepted].map((response) => response.clone().text()));
    if (isForClients || isStrict) await assertError(refused, 400, "invalid_request", UNKNOWN);
  });
}

Deno.test("openApiDocument() declares Prefer, closed bodies and Preference-Applied as the operations have them", () => {
  for (const sample of SAMPLES.filter(({ operation }) => isDocumented(operation, BASE_PATH))) {
    const { operation } = sample;
    const { parameters = [], responses } = DESCRIPTION.describes(operation) ?? {};
    const isLenient = CLIENTS.includes(sample) && !operation.isExtension;
    assertEquals([operation.id, parameters.some(({ name }) => name === "Prefer")], [operation.id, isLenient]);
    assertEquals(JSON.stringify(responses).includes("Preference-Applied"), isLenient);
    if (!operation.body) continue;
    assertEquals(resolved(operation.body).additionalProperties, isLenient ? undefined : false);
  }
});

Deno.test("openApiDocument() marks the parameters that extend the original interface", () => {
  const marked = CLIENTS.filter(({ operation: { isExtension, tag } }) => !isExtension && tag === THINGS.tag)
    .flatMap(({ operation }) => {
      const { parameters = [] } = DESCRIPTION.describes(operation) ?? {};
      return parameters.filter((parameter) => JSON.stringify(parameter).includes("not part of the original"))
        .map(({ name }) => `${operation.id} ${name}`);
    });

  const added = [
    "listThings sort",
    "listThings cursor",
    "listThings If-None-Match",
    "listThings Prefer",
    "createThing Idempotency-Key",
    "createThing Prefer",
    "getThing If-None-Match",
    "getThing Prefer",
  ];
  assertEquals(marked, added);
});

Deno.test("service names each unknown name once, with the known one that it resembles, after other faults", async () => {
  await using workshop = await Workshop.open();
  await workshop.add({ state: "new" });

  for (
    const [target, json, message] of [
      ["PATCH /v1/things/1", { staet: "lost" }, "The field staet is unknown; did you mean state?"],
      [
        "PATCH /v1/things/1",
        { owner: 1, Name: "Tom" },
        "The field owner is unknown. The field Name is unknown; did you mean name?",
      ],
      [
        "PATCH /v1/things/1?state=1",
        { ids: 1, name: 7, Weight: 2, x: 3 },
        "The query parameter state is unknown. The field name must be a string. The field ids is unknown. " +
        "The field Weight is unknown; did you mean weight? The field x is unknown.",
      ],
      [
        "GET /v1/things?State=lost&State=lost&limit=0",
        undefined,
        "The query parameter limit must be an integer from 1 to 100. " +
        "The query parameter State is unknown; did you mean state?",
      ],
      [
        "GET /v1/account/usage?day=1&%E2%80%AE=1",
        undefined,
        'The query parameter day is unknown; did you mean days? The query parameter "\\u{202e}" is unknown.',
      ],
      [
        "POST /v1/account/key",
        { grace_seconds: 0 },
        "The field grace_seconds is unknown; did you mean graceSeconds?",
      ],
      ["POST /v1/accounts", { name: "me", plan: "pro" }, "The field plan is unknown."],
      ["POST /v1/things", { ...HAMMER, id: 1 }, "The field id is unknown."],
    ] as const
  ) {
    const response = await workshop.call(target, { json, headers: STRICT });
    assertEquals([target, (await response.json()).message], [target, message]);
  }
});

Deno.test("updateThing() accepts what was read, changed and sent back", async () => {
  await using workshop = await Workshop.open();
  await workshop.add({ state: "new" }, { state: "new" });
  const [read] = await thingsIn(await workshop.call("GET /v1/things/2"));

  const response = await workshop.patch(2, { ...read, state: "lost" });

  assertEquals([response.status, await response.json()], [200, {
    id: 2,
    ...HAMMER,
    state: "lost",
    isSpare: false,
  }]);
});

Deno.test("service handles each request as it prefers, even if it has answered the same query before", async () => {
  await using workshop = await Workshop.open();

  for (const [query, refusal] of [["?limit=1", 200], ["?Limit=1", 400]] as const) {
    for (const prefer of ["", "handling=strict", "handling=lenient", "handling=strict"]) {
      const isStrict = prefer === "handling=strict";
      const { status, headers } = await workshop.call(`GET /v1/things${query}`, { headers: { prefer } });
      const expected = isStrict ? [refusal, prefer] : [200, null];
      assertEquals([query, prefer, status, headers.get(APPLIED)], [query, prefer, ...expected]);
    }
  }
});

Deno.test("createThing() replays a reply with the preference of the request, not of the first one", async () => {
  await using workshop = await Workshop.open();
  const send = async (key: string, prefer: object) => {
    const { headers } = await workshop.call("POST /v1/things", {
      json: HAMMER,
      headers: { "idempotency-key": key, ...prefer },
    });
    return [headers.get("idempotency-replayed"), headers.get(APPLIED)];
  };

  assertEquals([await send("a", STRICT), await send("a", {}), await send("a", STRICT)], [
    [null, "handling=strict"],
    ["true", null],
    ["true", "handling=strict"],
  ]);
});
