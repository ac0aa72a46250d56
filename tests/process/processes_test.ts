import { assert, assertEquals } from "@std/assert";
import { callAtOnce, tally, upTo } from "../support/client.ts";
import { addItem, idIn, LIST, listIds } from "./shipped.ts";
import { inOneDay, TemporaryStore } from "./temporary_store.ts";

const LIMIT = 50;

Deno.test("servers on one new KV file admit as many requests as the limit, and see each other's items at once", () =>
  inOneDay(async () => {
    await using store = await TemporaryStore.empty();
    const starting = [store.serve(), store.serve()] as const;
    await using one = await starting[0];
    await using other = await starting[1];
    const { key } = await store.createAccount();
    const limited = await store.createAccount({ perDay: LIMIT });

    const answers = await callAtOnce(LIMIT + 40, [one, other], limited.key, LIST);
    const replies = await Promise.all(
      upTo(60).map((index) => addItem(index % 2 ? one : other, key, { "idempotency-key": `${index % 15}` })),
    );

    assertEquals(tally(answers), { "200": LIMIT, "429 rate_limit_day": 40 });
    const ids = replies.map(({ json }) => idIn(json));
    assertEquals(replies.filter(({ headers }) => headers.has("idempotency-replayed")).length, 45);
    assertEquals(ids, ids.map((_, index) => ids[index % 15]));
    assertEquals(await listIds(one, key), [...new Set(ids)].sort((a, b) => a - b));
    for (const _ of upTo(10)) {
      // Its id may be lower than the last one, because a replay gives its id back.
      const id = idIn((await addItem(one, key)).json);
      assert((await listIds(other, key)).includes(id));
    }
  }));
