import { assertEquals } from "@std/assert";
import { type Disturbance, fail, FakeKv } from "../../support/fake_kv.ts";
import { HAMMER } from "../../support/things.ts";
import { Workshop } from "../../support/workshop.ts";
import { onServer } from "./server.ts";

Deno.test("createThing() returns 201 if its commit applies and the reply is lost, and replays that to a retry", async () => {
  let isBroken = true;
  const disturbance: Disturbance = {
    async commit({ apply, keys }) {
      const result = await apply();
      if (!isBroken || !keys.some(([kind]) => kind === "items")) return result;
      isBroken = false;
      return await fail();
    },
  };
  await using workshop = await Workshop.on(new FakeKv().connect(), { backend: onServer, disturbance });
  const create = () =>
    workshop.call("POST /v1/things", { json: HAMMER, headers: { "idempotency-key": "once" } });

  const responses = [await create(), await create()];

  assertEquals(isBroken, false);
  assertEquals(responses.map(({ status }) => status), [201, 201]);
  assertEquals(responses.map(({ headers }) => headers.get("idempotency-replayed")), [null, "true"]);
  assertEquals((await workshop.ids()).length, 1);
});
