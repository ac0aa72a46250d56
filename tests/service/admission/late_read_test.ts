import { assertEquals } from "@std/assert";
import { call, outcome } from "../../support/client.ts";
import { calmNetwork, FakeKv, type Network } from "../../support/fake_kv.ts";
import { NotedService } from "../../support/harness.ts";
import { NOON, VirtualTime } from "../../support/time.ts";

const REX = { json: { name: "Rex", categoryId: 1 } };

/** A KV whose replies about accounts can be held back: what they say was true before. */
class LateKv extends FakeKv {
  held: Promise<void> | undefined;

  override connect(network: Network = calmNetwork()): Deno.Kv {
    const kv = super.connect(network);
    const getMany = kv.getMany.bind(kv);
    return Object.assign(kv, {
      getMany: async (keys: Deno.KvKey[]) => {
        const rows = await getMany(keys);
        if (keys.some(([table]) => table === "usage")) await this.held;
        return rows;
      },
    });
  }
}

Deno.test("createApp() refuses a write with a key that was revoked, though an older read of its account arrives late", async () => {
  using time = new VirtualTime();
  const kv = new LateKv();
  await using service = new NotedService(time, kv);
  await using other = new NotedService(time, kv);
  const [{ account: { id }, apiKey: previous }, bystander] = [
    await service.createAccount(),
    await service.createAccount(),
  ];
  const issued = await other.accounts.rotate(id, 60_000, NOON);
  const key = issued?.apiKey ?? "";
  for (let count = 0; count < 6; count++) await time.until(call(service, key), 1_000);

  await other.accounts.rotate(bystander.account.id, 0, NOON);
  const { promise, resolve: release } = Promise.withResolvers<void>();
  kv.held = promise;
  const first = call(service, previous, "POST /v1/pets", REX);
  await time.advance(10);
  kv.held = undefined;
  await time.until(other.desk.do("close", id), 1_000);
  const second = call(service, key, "POST /v1/pets", REX);
  release();

  const replies = await time.until(Promise.all([first, second]), 10_000);

  assertEquals(outcome(replies[1]), "401 invalid_api_key");
});
