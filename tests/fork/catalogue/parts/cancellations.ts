import { ApiError, integer } from "../../../../src/declare.ts";
import {
  ACCESS,
  type Call,
  type Items,
  type Operation,
  operation,
  type Part,
  valueResponse,
} from "../../../../src/part.ts";
import { BOOKINGS } from "../bookings.ts";

/** Cancels bookings. A service without bookings has nothing to cancel. */
export const CANCELLATIONS: Part = {
  operations: ({ items }) => items.filter(({ resource }) => resource === BOOKINGS).map(cancelBooking),
};

function cancelBooking(bookings: Items): Operation {
  const { errors: { notFound }, schemas, tag } = BOOKINGS;
  return operation({
    id: "cancelBooking",
    method: "POST",
    path: "/v1/bookings/{bookingId}/cancel",
    access: ACCESS.key,
    collections: [BOOKINGS.name],
    tag,
    summary: "Cancel a booking",
    params: { bookingId: integer(1, Number.MAX_SAFE_INTEGER, { description: "The booking" }) },
    answers: {
      200: { description: "The cancelled booking", body: schemas.item, headers: ["Cache-Control"] },
    },
    errors: [notFound],
  }, async ({ params: { bookingId } }, call: Call) => {
    const changed = await bookings.change(bookingId, (owned) => {
      if (owned?.ownerId === call.accountId) return { ...owned.item, state: "cancelled" };
      throw new ApiError(notFound, `There is no booking ${bookingId}.`);
    }, call);
    return valueResponse(changed?.item);
  });
}
