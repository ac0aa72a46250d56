import { assertEquals } from "@std/assert";
import { Counter, gauge, Histogram } from "../../src/base/prometheus.ts";

Deno.test("Counter.text() reports the sum for each set of labels and escapes their values", () => {
  const counter = new Counter("calls_total", "Calls.", ["route", "status"]);

  counter.add(1, "/", "200");
  counter.add(1, 'a"b\\c\nd', "200");
  counter.add(1, "/", "404");
  counter.add(2, "/", "200");

  assertEquals(counter.text().split("\n"), [
    "# HELP calls_total Calls.",
    "# TYPE calls_total counter",
    'calls_total{route="/",status="200"} 3',
    'calls_total{route="/",status="404"} 1',
    'calls_total{route="a\\"b\\\\c\\nd",status="200"} 1',
    "",
  ]);
});

Deno.test("Counter.text() omits unused labels, but reports 0 for an unused counter without labels", () => {
  const counter = new Counter("bans_total", "Bans.");
  const labelled = new Counter("calls_total", "Calls.", ["status"]);
  const help = "# HELP bans_total Bans.\n# TYPE bans_total counter\n";

  assertEquals(labelled.text(), "# HELP calls_total Calls.\n# TYPE calls_total counter\n");
  assertEquals(counter.text(), `${help}bans_total 0\n`);
  counter.add(1);
  assertEquals(counter.text(), `${help}bans_total 1\n`);
});

Deno.test("Histogram.text() reports cumulative bucket counts for each set of labels", () => {
  const histogram = new Histogram("size", "Sizes.", ["round"], [1, 2.5, 5]);

  for (const value of [1, 2, 2.5, 5, 6]) histogram.observe(value, "look");
  histogram.observe(3, "commit");

  assertEquals(histogram.text().split("\n"), [
    "# HELP size Sizes.",
    "# TYPE size histogram",
    'size_bucket{round="look",le="1"} 1',
    'size_bucket{round="look",le="2.5"} 3',
    'size_bucket{round="look",le="5"} 4',
    'size_bucket{round="look",le="+Inf"} 5',
    'size_sum{round="look"} 16.5',
    'size_count{round="look"} 5',
    'size_bucket{round="commit",le="1"} 0',
    'size_bucket{round="commit",le="2.5"} 0',
    'size_bucket{round="commit",le="5"} 1',
    'size_bucket{round="commit",le="+Inf"} 1',
    'size_sum{round="commit"} 3',
    'size_count{round="commit"} 1',
    "",
  ]);
});

Deno.test("gauge() reports a number, with or without labels", () => {
  const help = "# HELP leases Leases.\n# TYPE leases gauge\n";

  assertEquals(gauge("leases", "Leases.", 0), `${help}leases 0\n`);
  assertEquals(gauge("leases", "Leases.", 1.5, ['of="a"']), `${help}leases{of="a"} 1.5\n`);
});
