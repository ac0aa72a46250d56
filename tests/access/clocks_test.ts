import { assert } from "@std/assert";
import fc from "fast-check";
import { dayOf, UNUSED } from "../../src/accounts/usage.ts";
import { take } from "../../src/leases/places.ts";
import { NOON } from "../harness.ts";

const MINUTE = 60_000;
const LIMITS = { minute: 5, day: 12 };

const visit = fc.record({
  /** Whether it is the clock that is wrong. */
  isAhead: fc.boolean(),
  /** Ms since the visit before. */
  pause: fc.oneof(fc.nat(1_000), fc.nat(3 * MINUTE), fc.nat(600 * MINUTE)),
  waiting: fc.integer({ min: 1, max: 6 }),
});

Deno.test("take() grants no more than the limits in any minute or day of two clocks that are up to five minutes apart", () => {
  const apart = fc.integer({ min: 1, max: 5 });
  fc.assert(
    fc.property(fc.array(visit, { maxLength: 30 }), apart, (visits, minutes) => {
      const granted = new Map<string, number>();
      let [usage, time] = [UNUSED, NOON];
      for (const { isAhead, pause, waiting } of visits) {
        time += pause;
        const taken = take(usage, LIMITS, { waiting, ahead: 0 }, isAhead ? time + minutes * MINUTE : time);
        usage = taken.usage;
        const windows = [[`minute ${usage.minute}`, LIMITS.minute], [
          `day ${dayOf(usage.minute)}`,
          LIMITS.day,
        ]] as const;
        for (const [name, limit] of windows) {
          const count = (granted.get(name) ?? 0) + taken.granted;
          granted.set(name, count);
          assert(count <= limit, `${count} in ${name}`);
        }
      }
    }),
    { numRuns: 5_000 },
  );
});
