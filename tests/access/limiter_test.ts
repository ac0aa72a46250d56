import { assert, assertEquals, assertStrictEquals } from "@std/assert";
import { usageRow } from "../../src/access/key_rows.ts";
import { Limiter } from "../../src/access/limiter.ts";
import { hashSecret } from "../../src/access/secret.ts";
import { UNUSED } from "../../src/access/usage.ts";
import { ConfirmedRow } from "../../src/kv/confirmed_row.ts";
import { encodeJson } from "../../src/kv/json_value.ts";
import { Harness } from "../harness.ts";

Deno.test("admit() gives one verdict to all who come at once during a ban", async () => {
  using service = await Harness.open();
  const { key: { id: keyId }, secret } = await service.issueKey("free");
  await service.kv.set(usageRow(keyId), encodeJson({ ...UNUSED, bans: 1, bannedUntil: service.now + 1 }));
  const confirmed = new ConfirmedRow(service.store, ["catalogue"]);
  const limiter = new Limiter({ store: service.store, clock: () => service.now, confirmed });

  const claim = { keyId, hash: hashSecret(secret) };
  const [first, ...others] = await Promise.all([1, 2, 3].map(() => limiter.admit(claim)));

  assert(first);
  assertEquals(first.refusal, "ban");
  for (const other of others) assertStrictEquals(other, first);
});
