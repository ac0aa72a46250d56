import { assert, assertEquals } from "@std/assert";
import type { Disturbance } from "../support/fake_kv.ts";
import { assertExact, idIn, Office } from "../support/office.ts";
import { seededRandom } from "../support/time.ts";

const ROUNDS = 10;

/** Lets random operations on the KV wait for some turns of the event loop, so that those of two processes interleave. */
function interleaving(random: () => number): Disturbance {
  const wait = async () => {
    for (let turns = Math.floor(random() * 6); turns > 0; turns--) {
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  return { read: wait, commit: async ({ apply }) => (await wait(), await apply()) };
}

Deno.test("two clients move a booking back and forth in two processes while both rooms are deleted, and all stays exact", async () => {
  const random = seededRandom(7);
  const seen = new Map<string, number>();
  await using office = await Office.open({ disturbance: interleaving(random) });
  await using other = office.beside({ disturbance: interleaving(random) });
  const ask = async (process: Office, target: string, key: string, json?: object) => {
    const { status } = await process.fetch(target, { key, ...(json && { json }) });
    const outcome = `${target.split(" ")[0]} ${status}`;
    seen.set(outcome, (seen.get(outcome) ?? 0) + 1);
  };
  const remove = async (process: Office, room: number) => {
    const { status } = await process.operate(`DELETE /operator/v1/rooms/${room}`);
    seen.set(`DELETE ${status}`, (seen.get(`DELETE ${status}`) ?? 0) + 1);
  };

  for (let round = 0; round < ROUNDS; round++) {
    const rooms = await office.addRooms(2);
    const [first = 0, second = 0] = rooms;
    const mine = await idIn(await office.book(office.ann, { roomId: first, state: "confirmed" }));
    const theirs = await idIn(await office.book(office.ben, { roomId: second }));
    const guests = [
      await idIn(await office.invite(office.ann, `${round}`)),
      await idIn(await office.invite(office.ben, `${round}b`)),
    ];
    const repeat = async (times: number, act: (time: number) => Promise<unknown>) => {
      for (let time = 0; time < times; time++) await act(time);
    };
    await Promise.all([
      repeat(
        8,
        (time) => ask(office, `PATCH /v1/bookings/${mine}`, office.ann, { roomId: rooms[(time + 1) % 2] }),
      ),
      repeat(8, (time) => ask(other, `PATCH /v1/bookings/${mine}`, office.ann, { roomId: rooms[time % 2] })),
      repeat(6, (time) =>
        ask(other, `PATCH /v1/bookings/${theirs}`, office.ben, {
          state: time % 2 ? "planned" : "confirmed",
          roomId: rooms[time % 2],
        })),
      repeat(4, (time) => remove(office, rooms[time % 2] ?? 0)),
      repeat(4, (time) => remove(other, rooms[(time + 1) % 2] ?? 0)),
      repeat(
        4,
        (time) => ask(office, `PATCH /v1/guests/${guests[0]}`, office.ann, { email: `${time % 2} ${round}` }),
      ),
      repeat(
        4,
        (time) => ask(other, `PATCH /v1/guests/${guests[1]}`, office.ben, { email: `${time % 2} ${round}` }),
      ),
      ask(other, `DELETE /v1/bookings/${theirs}`, office.ben),
    ]);
    await assertExact(office.kv);
  }

  const outcomes = [...seen.keys()].sort();
  const possible = [
    "DELETE 204",
    "DELETE 404",
    "DELETE 409",
    "PATCH 200",
    "PATCH 400",
    "PATCH 404",
    "PATCH 409",
  ];
  assertEquals(outcomes.filter((outcome) => !possible.includes(outcome)), []);
  for (const needed of ["DELETE 204", "DELETE 409", "PATCH 200", "PATCH 400", "PATCH 409"]) {
    assert(seen.has(needed), needed);
  }
});
