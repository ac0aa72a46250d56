/**
 * Prints the rows that this version of the service writes, so that later versions can be tested with them:
 *
 *     deno run --config tests/deno.json -P tests/releases/write.ts > tests/releases/1.0.0.json
 */

import { CATALOGUE } from "../../src/catalogue/catalogue.ts";
import { requireSchema } from "../../src/engine/schema_version.ts";
import { onFile } from "../support/fake_kv.ts";
import { Harness } from "../support/harness.ts";
import { NOON } from "../support/time.ts";

/** A row with a text or a count. */
export interface Row {
  readonly key: Deno.KvKey;
  readonly text?: string;
  readonly count?: number;
}

/** The rows that a version wrote, and the keys of its accounts. */
export interface WrittenStore {
  /** When it wrote them, in ms since the epoch. */
  readonly now: number;
  readonly key: string;
  /** Still valid for a day. */
  readonly previousKey: string;
  readonly closedKey: string;
  readonly bannedKey: string;
  readonly rows: readonly Row[];
}

const REX = { name: "Rex", categoryId: 7 };
const DAY = 86_400_000;
const ONCE = { "idempotency-key": "once" };

await using service = await Harness.open({ catalogue: CATALOGUE });
await requireSchema(onFile(service.kv, { clock: () => NOON }), true);
service.now = NOON - DAY;
const { account, apiKey: previousKey } = await service.createAccount("pro");
const { apiKey: closedKey } = await service.createAccount("free");
const { apiKey: bannedKey } = await service.createAccount({ minute: 1, day: 9 });
await service.fetch("GET /v1/pets", { key: previousKey });
service.now = NOON;
await service.fetch("DELETE /v1/account", { key: closedKey });
const rotated = await service.accounts.rotate(account.id, DAY, NOON);
const key = rotated?.apiKey ?? "";
for (const status of ["available", "pending", "sold", "available"]) {
  await service.fetch("POST /v1/pets", { key, json: { ...REX, status } });
}
await service.fetch("DELETE /v1/pets/1", { key });
await service.fetch("PATCH /v1/pets/2", { key, json: { status: "sold" } });
await service.fetch("POST /v1/pets", { key, json: REX, headers: ONCE });
await service.fetch("POST /v1/messages", { key, json: { message: "Hello" } });
for (let count = 0; count < 3; count++) await service.fetch("GET /v1/pets", { key: bannedKey });
await service.app.close();

const rows: Row[] = [];
for await (const { key, value } of service.kv.list({ prefix: [] })) {
  if (value instanceof Deno.KvU64) rows.push({ key, count: Number(value) });
  else if (value instanceof Uint8Array) rows.push({ key, text: new TextDecoder().decode(value) });
}
const written: WrittenStore = {
  now: NOON,
  key,
  previousKey,
  closedKey,
  bannedKey,
  rows,
};
await Deno.stdout.write(new TextEncoder().encode(`${JSON.stringify(written, null, 2)}\n`));
