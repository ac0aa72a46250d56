// Tests of the frozen rooms and bookings: tests/catalogue/bookings_test.ts of their fork.
import { assertEquals, assertMatch } from "@std/assert";
import { CATALOGUE } from "../../../src/catalogue/catalogue.ts";
import { call } from "../../support/client.ts";
import { Harness } from "../../support/harness.ts";

const TOKEN = "the-operators-token-in-the-tests";
const REVIEW = {
  roomId: 1,
  title: "Review",
  startsAt: "2027-01-11T09:00:00Z",
  endsAt: "2027-01-11T10:00:00Z",
  state: "confirmed",
};

Deno.test("a room has one confirmed booking a day, which its account sees and can cancel for good", async () => {
  await using service = await Harness.open({ catalogue: CATALOGUE, operatorToken: TOKEN });
  const [ann = "", ben = ""] = await Promise.all(["Ann", "Ben"].map(async (name) => {
    const { json } = await call(service, undefined, "POST /v1/accounts", { json: { name } });
    return Object(json).apiKey;
  }));
  const room = { name: "Blue", seats: 8, hasScreen: true };
  await call(service, TOKEN, "POST /operator/v1/rooms", { json: room });
  const book = (key: string, other = {}) =>
    call(service, key, "POST /v1/bookings", { json: { ...REVIEW, ...other } });

  const added = await book(ann);
  const refused = [
    await book(ann, { endsAt: "2027-01-12T10:00:00Z" }),
    await book(ann, { roomId: 2 }),
    await book(ben, { startsAt: "2027-01-10T23:00:00-05:00", endsAt: "2027-01-11T06:00:00+01:00" }),
    await call(service, ben, "GET /v1/bookings/1"),
    await call(service, ben, "POST /v1/bookings/1/cancel"),
  ];
  const cancelled = await call(service, ann, "POST /v1/bookings/1/cancel");
  const revived = await call(service, ann, "PATCH /v1/bookings/1", { json: { state: "planned" } });

  assertMatch(ann, /^desk_test_/);
  assertEquals([added.status, added.limit, added.json], [201, 30, { id: 1, ...REVIEW }]);
  assertEquals(refused.map(({ code }) => code), [
    ...["invalid_request", "invalid_request", "room_taken", "booking_not_found", "booking_not_found"],
  ]);
  assertEquals([cancelled.json, revived.code], [
    { id: 1, ...REVIEW, state: "cancelled" },
    "booking_cancelled",
  ]);
  assertEquals((await book(ben)).status, 201);
});

Deno.test("no document, page or metric of the product speaks of animals", async () => {
  await using service = await Harness.open({ catalogue: CATALOGUE, operatorToken: TOKEN });

  for (const path of ["/v1/openapi.json", "/operator/v1/openapi.json", "/", "/metrics"]) {
    const text = await (await service.fetch(`GET ${path}`, { key: TOKEN })).text();
    assertEquals([path, text.match(/\b(?:pet|animal)s?\b|\bas_(?:live|test)_/gi)], [path, null]);
  }
});
