import { createSecret, hashSecret, isSecret } from "../../src/access/secret.ts";
import { take, UNUSED } from "../../src/access/usage.ts";
import { parseJson, stringifyJson } from "../../src/http/json.ts";
import { createMatcher, type Route } from "../../src/http/router.ts";
import { batched } from "../../src/kv/batcher.ts";

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

const pets = Array.from({ length: 20 }, (_, index) => (
  { id: index + 1, name: `Animal ${index}`, categoryId: 9007199254740993n, status: "available" }
));
const text = stringifyJson(pets);
const plain = pets.map((pet) => ({ ...pet, categoryId: Number(pet.categoryId) }));

Deno.bench("JSON.parse() of 20 animals", { group: "parse", baseline: true }, () => {
  JSON.parse(text);
});
Deno.bench("parseJson() of 20 animals, int64 exact", { group: "parse" }, () => {
  parseJson(text);
});
Deno.bench("JSON.stringify() of 20 animals", { group: "write", baseline: true }, () => {
  JSON.stringify(plain);
});
Deno.bench("stringifyJson() of 20 animals, int64 exact", { group: "write" }, () => {
  stringifyJson(pets);
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
