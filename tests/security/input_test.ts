// Input of attackers, to every operation.
import { assertEquals } from "@std/assert";
import { ACCESS, BASE_PATH } from "../../src/service/mod.ts";
import { isDocumented } from "../../src/web/openapi.ts";
import { resolved } from "../../src/web/schema.ts";
import { type HarnessRequest, JSON_TYPE } from "../support/client.ts";
import { type Sample, SAMPLES } from "../support/operations.ts";
import { Workshop } from "../support/workshop.ts";

const RANDOM = "ThisIsNoKeyThoughItLooksLikeOneOfThose";
const SECRET = `as_test_${RANDOM}`;
const LIVE = `as_live_${RANDOM}`;
const STRICT = { prefer: "handling=strict" };
const DOCUMENTED = SAMPLES.filter(({ operation }) => isDocumented(operation, BASE_PATH));

/** A valid request with this text in every string field without an enum. */
function withText(text: string, { operation: { body }, request }: Sample): Sample["request"] {
  const members = Object.entries(body ? resolved(body).properties ?? {} : {})
    .filter(([, { type, enum: values }]) => type === "string" && !values).map(([name]) => [name, text]);
  return body ? { json: { ...Object(request.json), ...Object.fromEntries(members) } } : request;
}

/** Requests to an operation with a wrong key, or with a secret where none belongs. */
function* leaks(sample: Sample, key: string): Generator<[target: string, request: HarnessRequest]> {
  const { operation, target, request } = sample;
  const query = Object.keys(operation.query).map((name) => `${name}=${SECRET}`);
  if (operation.access === ACCESS.key) {
    for (const wrong of [SECRET, `"${SECRET}`, LIVE]) yield [target, { ...request, key: wrong }];
  }
  if (query.length > 0) yield [`${target}?${query.join("&")}`, { key }];
  if (operation.access !== ACCESS.public) {
    yield [`${target}?${SECRET}=1&x${LIVE}`, { ...request, key, headers: STRICT }];
  }
  if (target.endsWith("/1")) yield [target.replace(/1$/, SECRET), { ...request, key }];
  for (const name of Object.keys(operation.headers)) {
    if (operation.method !== "GET" && name !== "Prefer") {
      yield [target, { ...request, key, headers: { [name]: `"${SECRET}` } }];
    }
  }
  if (!operation.body) return;
  yield [target, { key, ...withText(SECRET.repeat(300), sample), headers: { "content-encoding": SECRET } }];
  yield [target, { key, body: "{", headers: { "content-type": SECRET } }];
  yield [target, { key, body: `{"${SECRET}"`, headers: JSON_TYPE }];
  const members = Object.keys(resolved(operation.body).properties ?? {});
  yield [target, { key, json: Object.fromEntries(members.map((name) => [name, [SECRET]])) }];
  yield [target, { key, json: { ...Object(request.json), [SECRET]: 1, [`x${LIVE}`]: 1 }, headers: STRICT }];
  yield [target, {
    key,
    json: { ...Object(request.json), [`${"x".repeat(99)} ${SECRET}`]: 1 },
    headers: STRICT,
  }];
}

Deno.test("service repeats no credential in an error, wherever the request has it", async () => {
  await using workshop = await Workshop.open();
  await workshop.add({ state: "new" });
  const { key } = workshop;

  for (
    const [target, request] of [
      ...DOCUMENTED.flatMap((sample) => [...leaks(sample, key)]),
      [`GET /v1/${SECRET}`, { key }] as const,
      [`GET /Things/${SECRET}/`, { key }] as const,
      [`${SECRET} /v1/things`, { key }] as const,
    ]
  ) {
    const response = await workshop.fetch(target, request);
    const text = JSON.stringify([...response.headers]) + await response.text();
    // The beginning is enough, because messages cut long names.
    assertEquals([target, response.status >= 400, text.includes(RANDOM.slice(0, 10))], [target, true, false]);
  }
});
