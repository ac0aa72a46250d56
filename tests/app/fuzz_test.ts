import { assert, assertEquals, assertMatch } from "@std/assert";
import { type InputMember, inputsOf } from "../../src/web/openapi.ts";
import type { JsonSchema } from "../../src/web/schema_types.ts";
import { assertLimitHeaders } from "../support/assertions.ts";
import { Harness } from "../support/harness.ts";
import { ALL, SAMPLES } from "../support/operations.ts";
import { assertConsistent } from "../support/stored_rows.ts";
import { SUNSET } from "../support/things.ts";
import { seededRandom } from "../support/time.ts";

const REQUESTS = Number(Deno.env.get("FUZZ_REQUESTS") || 1_000);
const SEED = Number(Deno.env.get("FUZZ_SEED") || "20301206");
const random = seededRandom(SEED);
const AFTER_SUNSET = SUNSET + 86_400_000;

/** Samples that change neither the account nor its key, so requests stay admitted. */
const LASTING = SAMPLES.filter(({ changes }) =>
  !changes.includes("accounts") || !changes.includes("versions")
);
const ENDING = SAMPLES.filter((sample) => !LASTING.includes(sample)).map(({ operation }) => operation.path);
const WRITES = LASTING.filter(({ operation }) => operation.body);
/** Targets of the samples. Those that write are repeated. */
const CALLS = [...LASTING, ...WRITES, ...WRITES].map(({ target }) => target);
/** The inputs of each target. Extensions refuse any others. */
const INPUTS_OF = new Map(LASTING.map(({ target, operation }) => [target, inputsOf(operation)]));
const INPUTS = [...INPUTS_OF.values()].flat();
const METHODS = words("GET POST PATCH DELETE HEAD OPTIONS PUT PROPFIND get patch a!#$%&'*+-.^_~");
const PATHS = LASTING.filter(({ operation }) => !ENDING.includes(operation.path))
  .map(({ target }) => target.replace(/^\w+ /, ""));
const SEGMENTS = words(
  "v1 v2 V1 things messages .. . * : __proto__ constructor 0 1 2 -1 1e1 9007199254740993 ;",
);
const ESCAPES = words("% %zz %ff %00 %2f %2e%2e %F0%9F%90%95 %C0%AF %ED%A0%80 %u0041 + & = ' \\ é 🐕");
const PARAMETERS = [...namesIn("query", INPUTS), ...words("Limit x __proto__")];
const NUMBERS = words("1 20 100 0 101 -1 1.5 1e1 0x10 01 1_0 abc 99999999999999999999 1e400 -0 NaN");
const INT64 = words(
  `${"1 7 8 -1 9223372036854775807 9007199254740993 ".repeat(12)}9223372036854775808 1.0 1e400 "1" null`,
);
const CHOICES = words(`${"new used lost true false ".repeat(5)}Lost toString null MQ MTA OTk5`);
const BOOLEANS = words(`${"true false ".repeat(15)}null 0 "true"`);
const STRINGS = words(
  `${'"Hammer" "Tom" "🐕" '.repeat(15)}"\\ud800" "a\\u0000" "" null "${"é".repeat(256)}"`,
);
const MEMBERS = words('"id":7 "__proto__":{"name":"x"} "constructor":null "name":1 "a":[{"b":[]}]');
const DOCUMENTS = words(
  `${"[".repeat(50_000)} {} [] null 1 "a" {"a":"${"x".repeat(70_000)}"} ${"9".repeat(70_000)}`,
).concat("");
const TYPES = words(
  "application/merge-patch+json application/json;charset=utf-8 APPLICATION/JSON text/plain application/jsonp ;",
);
const HEADERS = words(
  "accept accept-encoding access-control-request-method connection content-encoding content-length cookie date " +
    "expect forwarded host origin te transfer-encoding upgrade " +
    "x-forwarded-for x-forwarded-host x-forwarded-proto x-request-id",
).concat(namesIn("header", INPUTS));
const VALUES = words('* "a" W/"a" " "a","b" null https 0 -1 gzip [::1]:x \xe9').concat("");

/** A request that can be sent again and printed. */
interface Sent {
  readonly target: string;
  readonly headers: [name: string, value: string][];
  readonly body: string | Uint8Array<ArrayBuffer> | null;
  /** Whether the connection breaks before the body has ended. */
  readonly broken: boolean;
}

Deno.test("service returns documented responses to random requests", async () => {
  await using service = await Harness.open(ALL);
  const credentials = await createCredentials(service);
  const statuses = new Set<number>();
  let etag = "*";
  for (let count = 1; count <= REQUESTS; count++) {
    if (chance(0.01)) service.now += below(90_000);
    if (count === REQUESTS * 0.9) service.now = AFTER_SUNSET;
    service.address = `192.0.2.${below(40)}`;
    const sent = randomRequest(credentials, etag);
    try {
      const { target, headers, body, broken } = sent;
      const init = { headers: new Headers(headers), body: broken ? brokenStream() : body };
      const response = await service.fetch(target, init);
      statuses.add(response.status);
      if (/^PATCH|^GET \/v1\/things\//.test(target)) etag = response.headers.get("etag") ?? etag;
      await assertPromises(response, target);
      assertEquals(service.errors, []);
    } catch (cause) {
      const shown = JSON.stringify(sent).slice(0, 1_000);
      throw new Error(`Request ${count} of FUZZ_SEED=${SEED} failed: ${shown}`, { cause });
    }
  }
  const rare = REQUESTS < 10_000 ? [] : [403, 410, 412, 413, 422];
  const expected = [200, 201, 204, 304, 400, 401, 404, 405, 429, ...rare];
  assertEquals(expected.filter((status) => !statuses.has(status)), [], `with FUZZ_SEED=${SEED}`);
  await assertConsistent(service.kv);
});

/** Asserts what holds for every response. The harness compares it with its declaration. */
async function assertPromises(response: Response, target: string): Promise<void> {
  const { status, headers } = response;
  await response.text();
  assert(status >= 200 && status < 500, `status ${status}`);
  assertMatch(headers.get("x-request-id") ?? "", /^[\x21-\x7e]{1,64}$/);
  const { pathname } = new URL(target.replace(/^.* /, "http://localhost"));
  if (/^\/v1(\/|$)/.test(pathname)) assertLimitHeaders(response);
  assertEquals(headers.has("retry-after"), status === 429);
  assertEquals(headers.has("www-authenticate"), status === 401);
  if (status === 405) assertMatch(headers.get("allow") ?? "", /^[A-Z]+(, [A-Z]+)*$/);
}

function brokenStream(): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start: (controller) => controller.error(new TypeError("The connection broke")),
  });
}

/** Values of Authorization: keys in every state, and nonsense. An empty value means no header. */
async function createCredentials(service: Harness): Promise<string[]> {
  const limits = ["business", "business", "free", { minute: 1, day: 40 }, "business"] as const;
  const [own, other, free, scarce, closed] = await Array.fromAsync(limits, (of) => service.createAccount(of));
  assert(own && other && free && scarce && closed);
  await service.accounts.change(closed.account.id, { closedAt: service.now });
  const { apiKey } = own;
  const good = Array.from({ length: 40 }, (_, index) => index < 30 ? apiKey : other.apiKey);
  const refused = [free, scarce, scarce, scarce, scarce, closed].map(({ apiKey }) => apiKey);
  const typos = [`${apiKey}x`, apiKey.toLowerCase(), apiKey.replace("_test_", "_live_"), "\xff", "", "a b"];
  const odd = [`bearer  ${apiKey} `, `Bearer${apiKey}`, apiKey, `Basic ${btoa(`a:${apiKey}`)}`, "Bearer", ""];
  return [...[...good, ...refused, ...typos].map((key) => `Bearer ${key}`), ...odd];
}

function randomRequest(credentials: readonly string[], etag: string): Sent {
  const call = chance(0.7) ? pick(CALLS) : `${pick(METHODS)} ${randomPath()}`;
  const inputs = INPUTS_OF.get(call) ?? INPUTS;
  const target = call.replace(/\/1$/, `/${1 + below(60)}`);
  const isForOperator = call.includes("/operator/") && chance(0.8);
  const authorization = isForOperator ? `Bearer ${ALL.operatorToken}` : pick(credentials);
  const type = chance(0.9) ? "application/json" : pick(TYPES);
  const headers = some(2, (): [string, string] => [pick(HEADERS), pick(VALUES)]);
  headers.push(["content-type", type]);
  if (chance(0.2)) headers.push(["idempotency-key", pick(["a", '"b"', "c"])]);
  if (chance(0.1)) headers.push(["if-none-match", pick(["*", etag])]);
  if (chance(0.5)) {
    headers.push(["if-match", pick(["*", etag, `"a", ${etag}`, '"a"', `W/${etag}`])]);
  }
  if (authorization !== "") headers.push(["authorization", authorization]);
  const bodiless = /^(get|head) /i.test(target) || chance(0.05);
  return {
    target: target + randomQuery(inputs),
    headers,
    body: bodiless ? null : randomBody(inputs),
    broken: !bodiless && chance(0.03),
  };
}

function randomPath(): string {
  if (chance(0.6)) return pick(PATHS);
  if (chance(0.3)) return `/v1/things/${pick([...NUMBERS, ...ESCAPES])}`;
  return `/${some(5, () => pick([...SEGMENTS, ...ESCAPES])).join("/")}`;
}

function randomQuery(inputs: readonly InputMember[]): string {
  const names = chance(0.8) ? namesIn("query", inputs) : PARAMETERS;
  if (names.length === 0 || chance(0.5)) return "";
  const values = [...NUMBERS, ...CHOICES, ...CHOICES, ...ESCAPES, ""];
  return `?${some(3, () => `${pick(names)}=${pick(values)}`).join("&")}`;
}

/** JSON text, mostly of these inputs, and sometimes corrupted. */
function randomBody(inputs: readonly InputMember[]): string | Uint8Array<ArrayBuffer> {
  if (chance(0.1)) return pick(DOCUMENTS);
  const fields = inputs.filter(({ place }) => place === "body").filter(() => chance(0.9));
  const members = fields.map(({ name, schema }) => `"${name}":${randomValue(schema)}`);
  if (chance(0.2)) members.push(pick(MEMBERS));
  const text = `{${members.join(",")}}`;
  if (chance(0.1)) return text.slice(0, below(text.length));
  if (chance(0.9)) return text;
  const bytes = new TextEncoder().encode(text);
  bytes[below(bytes.length)] = below(256);
  return bytes;
}

/** A value for a field, mostly valid. */
function randomValue({ type, enum: values, items }: JsonSchema): string {
  if (values) return `"${pick([...values, ...values, ...values, "Lost"].map(String))}"`;
  if (items) return `[${some(3, () => randomValue(items))}]`;
  if (type === "boolean") return pick(BOOLEANS);
  return pick(type === "integer" ? INT64 : STRINGS);
}

function namesIn(place: string, inputs: readonly InputMember[]): string[] {
  return [...new Set(inputs.filter((input) => input.place === place).map(({ name }) => name))];
}

function words(text: string): string[] {
  return text.split(" ");
}

/** A random integer from 0 to `bound`, exclusive. */
function below(bound: number): number {
  return Math.floor(random() * bound);
}

function chance(probability: number): boolean {
  return random() < probability;
}

function pick(items: readonly string[]): string {
  return items[below(items.length)] ?? "";
}

/** Up to `most` results of `make`. */
function some<Item>(most: number, make: () => Item): Item[] {
  return Array.from({ length: below(most + 1) }, make);
}
