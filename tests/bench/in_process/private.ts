// Preloaded into the service, before the others: adds a collection whose items only their owners read. A checkout from
// before there were such has no `catalogue/`, and stays as it is.
const SRC = `file://${Deno.cwd()}/src`;
const { CATALOGUE } = await import(`${SRC}/catalogue/catalogue.ts`).catch(() => ({}));
if (CATALOGUE !== undefined) {
  const { resource } = await import(`${SRC}/resource/mod.ts`);
  const { text } = await import(`${SRC}/web/schema.ts`);
  CATALOGUE.resources.push(resource({
    name: "bench_notes",
    item: "BenchNote",
    tag: { name: "Notes of the benchmark", description: "Notes that only their owners see" },
    noun: ["a note", "notes"],
    fields: { title: text({ max: 100 }) },
    filters: [],
    readableBy: "owner",
    writableBy: "owner",
    examples: { item: { title: "Milk" }, change: { title: "Oat milk" } },
  }));
}
