// Tests of rooms and bookings: tests/catalogue/bookings_test.ts of the fork.
import { assertEquals, assertMatch } from "@std/assert";
import { CATALOGUE } from "../../src/catalogue/catalogue.ts";
import { call } from "../support/client.ts";
import { Harness } from "../support/harness.ts";

const TOKEN = "the-operators-token-in-the-tests";
const REVIEW = {
  roomId: 1,
  title: "Review",
  startsAt: "2027-01-11T09:00:00Z",
  endsAt: "2027-01-11T10:00:00Z",
  state: "confirmed",
};

/** A service with a room, and the keys of two accounts. */
async function open() {
  const service = await Harness.open({ catalogue: CATALOGUE, operatorToken: TOKEN });
  const signUp = async (): Promise<string> =>
    (await (await service.fetch("POST /v1/accounts", { json: { name: "me" } })).json()).apiKey;
  const [ann, ben] = [await signUp(), await signUp()];
  await call(service, TOKEN, "POST /operator/v1/rooms", {
    json: { name: "Blue", seats: 8, hasScreen: true },
  });
  return { service, ann, ben };
}

Deno.test("bookings are seen by their account only, refer to a room, and keep the rule", async () => {
  const { service, ann, ben } = await open();
  await using _ = service;
  const book = (key: string, booking: object) => call(service, key, "POST /v1/bookings", { json: booking });

  const added = await book(ann, REVIEW);
  const refused = [
    await book(ann, { ...REVIEW, endsAt: "2027-01-12T10:00:00Z" }),
    await book(ann, { ...REVIEW, roomId: 2 }),
    await call(service, ben, "GET /v1/bookings/1"),
    await book(ann, { ...REVIEW, startsAt: "2027-01-11T12:00:00+02:00" }),
    await call(service, TOKEN, "DELETE /operator/v1/rooms/1"),
  ];

  assertMatch(ann, /^desk_test_/);
  assertEquals([added.status, added.limit, added.json], [201, 30, { id: 1, ...REVIEW }]);
  assertEquals(refused.map(({ code }) => code), [
    "invalid_request",
    "invalid_request",
    "booking_not_found",
    "invalid_request",
    "room_in_use",
  ]);
  assertEquals((await call(service, ben, "GET /v1/bookings")).json, []);
});

Deno.test("a room has one confirmed booking a day, until that is cancelled, which is final", async () => {
  const { service, ann, ben } = await open();
  await using _ = service;
  await call(service, ann, "POST /v1/bookings", { json: REVIEW });
  const book = (other: object) => call(service, ben, "POST /v1/bookings", { json: { ...REVIEW, ...other } });

  const taken = await book({ startsAt: "2027-01-10T23:00:00-05:00", endsAt: "2027-01-11T06:00:00+01:00" });
  const foreign = await call(service, ben, "POST /v1/bookings/1/cancel");
  const cancelled = await call(service, ann, "POST /v1/bookings/1/cancel");
  const free = await book({});
  const revived = await call(service, ann, "PATCH /v1/bookings/1", { json: { state: "planned" } });

  assertEquals([taken.code, foreign.code, revived.code], [
    "room_taken",
    "booking_not_found",
    "booking_cancelled",
  ]);
  assertEquals([cancelled.json, free.status], [{ id: 1, ...REVIEW, state: "cancelled" }, 201]);
});

Deno.test("no document, page or metric of the product speaks of animals", async () => {
  const { service } = await open();
  await using _ = service;

  for (const path of ["/v1/openapi.json", "/operator/v1/openapi.json", "/", "/metrics"]) {
    const text = await (await service.fetch(`GET ${path}`, { key: TOKEN })).text();
    assertEquals([path, text.match(/\b(?:pet|animal)s?\b|\bas_(?:live|test)_/gi)], [path, null]);
  }
});
