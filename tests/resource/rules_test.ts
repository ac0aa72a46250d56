import { assertEquals } from "@std/assert";
import { assertError } from "../support/assertions.ts";
import { BOOKINGS, idIn, Office, REVIEW } from "../support/office.ts";

Deno.test("a rule refuses creations and changes that break it, by clients and by operators", async () => {
  await using office = await Office.open();
  const id = await idIn(await office.book(office.ann));
  const accountId = await office.idOf(office.ann);
  const json = { endsAt: REVIEW.startsAt };

  const refused = [
    await office.book(office.ann, json),
    await office.fetch(`PATCH /v1/bookings/${id}`, { key: office.ann, json }),
    await office.operate("POST /operator/v1/bookings", { json: { ...REVIEW, ...json, accountId } }),
    await office.operate(`PATCH /operator/v1/bookings/${id}`, { json }),
  ];

  for (const response of refused) {
    assertEquals((await response.clone().json()).message, "The field endsAt must be after startsAt.");
    await assertError(response, 400, "invalid_request");
  }
  const list = await office.fetch("GET /v1/bookings", { key: office.ann });
  assertEquals(await list.json(), [{ id, ...REVIEW }]);
});

Deno.test("a rule can forbid a transition, with an error of its own", async () => {
  await using office = await Office.open();
  const id = await idIn(await office.invite(office.ann, "a@b"));
  const patch = (json: object) => office.fetch(`PATCH /v1/guests/${id}`, { key: office.ann, json });

  assertEquals((await patch({ state: "gone" })).status, 200);
  await assertError(await patch({ state: "invited" }), 409, "guest_gone");
  assertEquals((await patch({ state: "gone", email: "c@d" })).status, 200);
});

Deno.test("an item that broke a rule before stays changeable, but is not broken further", async () => {
  await using office = await Office.open();
  const id = await idIn(await office.book(office.ann));
  const old = JSON.stringify({ id, ...REVIEW, endsAt: REVIEW.startsAt });
  const row = `${old}\n${await office.idOf(office.ann)}`;
  await office.kv.set([...BOOKINGS.rows.items, id], new TextEncoder().encode(row));
  const patch = (json: object) => office.fetch(`PATCH /v1/bookings/${id}`, { key: office.ann, json });

  assertEquals((await patch({ title: "Old" })).status, 200);
  assertEquals((await patch({})).status, 200);
  await assertError(await patch({ endsAt: "2027-01-12T09:00:00Z" }), 400, "invalid_request");
  assertEquals((await patch({ endsAt: REVIEW.endsAt })).status, 200);
  await assertError(await patch({ endsAt: REVIEW.startsAt }), 400, "invalid_request");
});
