import { assertEquals } from "@std/assert";
import type { PetStatus } from "../../src/pets/pet.ts";
import { Harness } from "../harness.ts";
import { addPets, available, petsOf } from "./catalogue.ts";

Deno.test.each([
  ["", 20, 21],
  ["?limit=1", 1, 2],
  ["?limit=5&status=sold", 5, 6],
  ["?limit=100", 100, 101],
])("listPets() with '%s' links to a next page exactly when there is more", async (query, fits, more) => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();
  const sold = (count: number) => new Array<PetStatus>(count).fill("sold");

  await addPets(service, key, sold(fits));
  const full = await service.fetch(`GET /v1/pets${query}`, { key });
  await addPets(service, key, sold(more - fits));
  const first = await service.fetch(`GET /v1/pets${query}`, { key });
  const second = await service.fetch(nextTarget(first), { key });

  assertEquals([full.status, first.status, second.status], [200, 200, 200]);
  assertEquals(full.headers.get("link"), null);
  assertEquals(second.headers.get("link"), null);
  assertEquals((await petsOf(first)).length, fits);
  assertEquals((await petsOf(second)).map(({ id }) => id), [more]);
});

Deno.test("listPets() has no next page when what follows has another status", async () => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();
  await addPets(service, key, ["sold", "sold", "pending", "available"]);

  const response = await service.fetch("GET /v1/pets?status=sold&limit=2", { key });

  assertEquals(response.headers.get("link"), null);
});

Deno.test.each([
  ["?limit=2", { limit: "2", cursor: "Mg" }],
  ["?status=available", { limit: "20", status: "available", cursor: "MjA" }],
  ["?cursor=Mg&limit=3&status=available", { limit: "3", status: "available", cursor: "NQ" }],
])("listPets() keeps the parameters of '%s' in the link", async (query, parameters) => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();
  await addPets(service, key, available(30));

  const response = await service.fetch(`GET /v1/pets${query}`, { key });

  const url = new URL(nextUrl(response));
  assertEquals(url.origin + url.pathname, "http://localhost:8000/v1/pets");
  assertEquals<unknown>(Object.fromEntries(url.searchParams), parameters);
});

Deno.test.each([
  [{}, "http://localhost:8000"],
  [{ "x-forwarded-proto": "https", "x-forwarded-host": "pets.example" }, "https://pets.example"],
  [{ "x-forwarded-host": 'evil.example>; rel="x", <' }, "http://localhost:8000"],
])("listPets() links to the address that the client used, with %j", async (headers, origin) => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();
  await addPets(service, key, available(2));

  const response = await service.fetch("GET /v1/pets?limit=1", { key, headers });

  assertEquals(response.headers.get("link"), `<${origin}/v1/pets?limit=1&cursor=MQ>; rel="next"`);
});

Deno.test.each([
  ["every status", "", available(45)],
  ["one status", "&status=sold", Array.from({ length: 90 }, (_, n): PetStatus => n % 2 ? "sold" : "pending")],
])(
  "listPets() shows each animal once in a walk over %s while animals are added",
  async (_, filter, statuses) => {
    using service = await Harness.open();
    const { secret: key } = await service.issueKey();
    await addPets(service, key, statuses);
    const earlier = statuses.flatMap((status, index) => filter && status !== "sold" ? [] : [index + 1]);

    const seen: number[] = [];
    let target: string | undefined = `GET /v1/pets?limit=7${filter}`;
    while (target !== undefined) {
      const [page]: [Response, void] = await Promise.all([
        service.fetch(target, { key }),
        addPets(service, key, ["sold", "available", "sold"]),
      ]);
      seen.push(...(await petsOf(page)).map(({ id }) => id));
      target = page.headers.has("link") ? nextTarget(page) : undefined;
    }

    assertEquals(seen.filter((id) => id <= statuses.length), earlier);
    assertEquals(seen, [...new Set(seen)].sort((a, b) => a - b));
  },
);

Deno.test.each(["1", "999", "9007199254740991"])(
  "listPets() shows an empty last page after the cursor of %s, past the last animal",
  async (id) => {
    using service = await Harness.open();
    const { secret: key } = await service.issueKey();
    await addPets(service, key, ["available"]);

    const response = await service.fetch(`GET /v1/pets?cursor=${btoa(id).replaceAll("=", "")}`, { key });

    assertEquals(response.status, 200);
    assertEquals(response.headers.get("link"), null);
    assertEquals(await response.text(), "[]");
  },
);

/** Where the link to the next page leads; empty when there is none. */
function nextUrl({ headers }: Response): string {
  return /^<([^>]+)>; rel="next"$/.exec(headers.get("link") ?? "")?.[1] ?? "";
}

function nextTarget(response: Response): string {
  const { pathname, search } = new URL(nextUrl(response));
  return `GET ${pathname}${search}`;
}
