import { existsSync } from "node:fs";
import { assert, assertEquals } from "@std/assert";
import { slugOf } from "../../src/app/service.ts";
import { CATALOGUE } from "../../src/catalogue/catalogue.ts";
import { openStore } from "../../src/engine/open.ts";
import { Harness } from "../support/harness.ts";
import { NOON } from "../support/time.ts";

const TOKEN = "0123456789-abcdef~0123456789+abcdef=";
/** Files of alerts: those of operators, and of parts of the service. */
const FILES = ["operator", "messages"].map((folder) =>
  new URL(`../../src/${folder}/alerts.yml`, import.meta.url)
)
  .filter((file) => existsSync(file));
const RULES = (await Promise.all(FILES.map((file) => Deno.readTextFile(file)))).join("\n");

/** Names of the samples that a service on a KV file returns to Prometheus. */
async function sampleNames(): Promise<ReadonlySet<string>> {
  const folder = await Deno.makeTempDir();
  const path = `${folder}/things.kv`;
  const store = await openStore(path, { clock: () => NOON, create: true });
  const service = new Harness(await Deno.openKv(path), { store, operatorToken: TOKEN, catalogue: CATALOGUE });
  const text = await (await service.fetch("GET /metrics", { key: TOKEN })).text();
  await service[Symbol.asyncDispose]();
  await store.close();
  await Deno.remove(folder, { recursive: true });
  const families = [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)];
  return new Set(
    families.flatMap(([, name = "", type]) =>
      type === "histogram" ? ["bucket", "sum", "count"].map((kind) => `${name}_${kind}`) : [name]
    ),
  );
}

Deno.test("alerts.yml names only metrics that GET /metrics returns", async () => {
  const names = await sampleNames();

  // Texts may name a histogram without a suffix.
  const isKnown = (name: string) => names.has(name) || names.has(`${name}_bucket`);
  const named = new Set(RULES.match(RegExp(`\\b(?:${slugOf(CATALOGUE.title, "_")}|process)_\\w+`, "g")));

  assert(named.size > 10);
  assertEquals([...named].filter((name) => !isKnown(name)), []);
});

Deno.test("alerts.yml gives every alert a severity, a summary and a description", () => {
  const alerts = RULES.split(/^ +- alert: /m).slice(1);

  assert(alerts.length > 5);
  const parts = [/severity: (critical|warning)/, /summary: \S/, /description: >-\n +\S/];
  assertEquals(alerts.filter((alert) => !parts.every((part) => part.test(alert))), []);
});

Deno.test("each alerts.yml is tested by one in tests", async () => {
  for (const file of FILES) {
    const tests = new URL(file.pathname.replace(/src(\/\w+\/alerts.yml)$/, "tests$1"), file);
    const [, path = ""] = /^rule_files: \[(.+)\]$/m.exec(await Deno.readTextFile(tests)) ?? [];

    assertEquals(new URL(path, tests), file);
  }
});

/** Whether Prometheus's tools are installed. */
const HAS_PROMTOOL = await new Deno.Command("promtool", { args: ["--version"] }).output().then(
  () => true,
  () => false,
);

Deno.test("guide for operators configures Prometheus with every alerts.yml", async (t) => {
  const root = new URL("../../", import.meta.url).pathname;
  const guide = await Deno.readTextFile(`${root}src/operator/README.md`);
  const blocks = [...guide.matchAll(/^```yaml\n((?:scrape_configs|rule_files):[^]*?)^```$/gm)].map((
    [, yaml],
  ) => yaml);
  const config = blocks.join("").replaceAll(/\/srv\/[^/]+\//g, root);
  const listed = [...config.matchAll(/^ +- (.+\.yml)\n/gm)].map(([line, path = ""]) => ({ line, path }));
  const missing = listed.filter(({ path }) => !existsSync(path)); // Of parts that a fork has left out.

  assertEquals(
    listed.filter((one) => !missing.includes(one)).map(({ path }) => path),
    FILES.map(({ pathname }) => pathname),
  );
  await t.step({
    name: "promtool accepts it",
    ignore: !HAS_PROMTOOL,
    async fn() {
      const file = await Deno.makeTempFile({ suffix: ".yml" });
      await Deno.writeTextFile(file, missing.reduce((text, { line }) => text.replace(line, ""), config));
      const { success, stderr } = await new Deno.Command("promtool", { args: ["check", "config", file] })
        .output();
      await Deno.remove(file);
      assert(success, new TextDecoder().decode(stderr));
    },
  });
});
