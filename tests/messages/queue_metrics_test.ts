import { assertEquals, assertMatch } from "@std/assert";
import { assertError } from "../support/assertions.ts";
import { call } from "../support/client.ts";
import { fail, hang } from "../support/fake_kv.ts";
import { Harness, RecordingService } from "../support/harness.ts";

const TOKEN = "0123456789-abcdef~0123456789+abcdef=";

/** The metrics of the queue, by name. */
async function queueOf(service: Harness): Promise<Readonly<Record<string, number>>> {
  const text = await (await service.fetch("GET /metrics", { key: TOKEN })).text();
  const samples = text.matchAll(/^thing_store_(\w*message\w*) (\S+)$/gm);
  return Object.fromEntries([...samples].map(([, name = "", value]) => [name, Number(value)]));
}

Deno.test("GET /metrics returns the number of waiting messages and the age of the oldest", async () => {
  await using service = await Harness.open({ operatorToken: TOKEN });
  assertEquals(await queueOf(service), { messages_waiting: 0, oldest_message_age_seconds: 0 });
  for (const message of ["one", "two"]) {
    const { apiKey: key } = await service.createAccount();
    await call(service, key, "POST /v1/messages", { json: { message } });
    service.now += 2_500;
  }
  await service.app.settle();

  const samples = await queueOf(service);

  assertEquals(samples, { messages_waiting: 2, oldest_message_age_seconds: 5 });
});

Deno.test.each<[string, () => Promise<never>]>([["fails", fail], ["does not respond", hang]])(
  "GET /metrics omits only the queue while KV %s",
  async (_, read) => {
    await using service = await RecordingService.open({ operatorToken: TOKEN });
    const { time } = service;
    service.disturbance = { read };

    const response = await time.until(service.fetch("GET /metrics", { key: TOKEN }), 10_000);
    // A hanging operation counts as a failure after its deadline.
    await time.advance(10_000);
    const text = await response.text();
    const later = await time.until(service.fetch("GET /metrics", { key: TOKEN }), 10_000);

    assertEquals(response.status, 200);
    const gauges = [...text.matchAll(/^# TYPE thing_store_(\w+) gauge$/gm)].map(([, name]) => name);
    assertEquals(gauges, ["build_info", "requests_in_flight", "leases", "leased_places"]);
    assertMatch(await later.text(), /^thing_store_kv_failures_total\{operation="read"\} [1-9]/m);
  },
);

Deno.test("GET /metrics returns 500 if a stored count of messages is corrupt", async () => {
  await using service = await Harness.open({ operatorToken: TOKEN });
  service.expectsErrors = true;
  await service.kv.set(["messages_waiting", "a"], "many");

  await assertError(await service.fetch("GET /metrics", { key: TOKEN }), 500, "internal_error");
  assertEquals(service.errors.map(({ error }) => error), ["CorruptRow"]);
});
