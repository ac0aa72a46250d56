import { createSecret, hashSecret, isSecret } from "../../src/access/secret.ts";
import { take, UNUSED } from "../../src/access/usage.ts";
import { parseJson } from "../../src/http/json.ts";
import { createMatcher, type Route } from "../../src/http/router.ts";
import { batched } from "../../src/kv/batcher.ts";
import { toJson } from "../../src/pets/pet.ts";

const handler = () => new Response();
const routes: Route[] = ["/v1/pets", "/v1/messages", "/health", "/ready"].map((path) => (
  { method: "GET", path, access: "key", handler }
));
const match = createMatcher([...routes, { method: "GET", path: "/v1/pets/:petId", access: "key", handler }]);
const pattern = new URLPattern({ pathname: "/v1/pets/:petId" });

Deno.bench("match a literal path", { group: "router", baseline: true }, () => {
  match("GET", "/v1/pets");
});
Deno.bench("match a path with a parameter", { group: "router" }, () => {
  match("GET", "/v1/pets/123");
});
Deno.bench("URLPattern.exec() of the same path", { group: "router" }, () => {
  pattern.exec("http://localhost:8000/v1/pets/123");
});

const secret = createSecret("staging");

Deno.bench("check a key's form and checksum", { group: "key", baseline: true }, () => {
  isSecret(secret, "staging");
});
Deno.bench("hash a key", { group: "key" }, () => {
  hashSecret(secret);
});

const pet = { id: 7, name: "Umbra", categoryId: 2n, status: "available" } as const;
const body = '{"name":"Umbra","categoryId":2,"status":"available"}';
const large = body.replace("2", "9007199254740993");

Deno.bench("JSON.parse() of a new animal", { group: "parse", baseline: true }, () => {
  JSON.parse(body);
});
Deno.bench("parseJson() of the same, int64 exact", { group: "parse" }, () => {
  parseJson(body);
});
Deno.bench("parseJson() of one with a large number", { group: "parse" }, () => {
  parseJson(large);
});
Deno.bench("JSON.stringify() of an animal", { group: "write", baseline: true }, () => {
  JSON.stringify({ ...pet, categoryId: 2 });
});
Deno.bench("toJson() of the same, int64 exact", { group: "write" }, () => {
  toJson(pet);
});

const limits = { minute: 1e9, day: 1e9 };

Deno.bench("take a place in both windows", () => {
  take(UNUSED, limits, 1e12);
});

const join = batched<number, number>((round) => {
  for (const { item, resolve } of round) resolve(item);
  return Promise.resolve();
});

Deno.bench("one call alone", { group: "batcher", baseline: true }, async () => {
  await join(1);
});
Deno.bench("64 calls in a round", { group: "batcher" }, async () => {
  await Promise.all(Array.from({ length: 64 }, (_, index) => join(index)));
});
