import { assertGreater } from "@std/assert";
import { seededRandom, VirtualTime } from "../support/time.ts";
import { Referee } from "./engine_referee.ts";

/** Number of random histories, each from its own seed. */
const HISTORIES = Number(Deno.env.get("HISTORIES") ?? 60);
const FIRST = Number(Deno.env.get("FIRST_SEED") ?? 1);
const TRANSACTIONS = 150;

Deno.test("Transactions.run() returns results that some serial order of its transactions explains", async () => {
  const { random } = Math;
  const answers = new Map<string, number>();
  for (let seed = FIRST; seed < FIRST + HISTORIES; seed++) {
    using time = new VirtualTime();
    const referee = new Referee(seed, time);
    Math.random = seededRandom(seed);
    try {
      await referee.run(TRANSACTIONS);
      referee.check();
    } catch (error) {
      throw new Error(`Seed ${seed}`, { cause: error });
    } finally {
      Math.random = random;
    }
    for (const { answer, committed } of referee.calls) {
      const name = committed ? "committed" : answer;
      answers.set(name, (answers.get(name) ?? 0) + 1);
    }
  }

  for (const answer of ["committed", "result", "refused", "out of time", "unavailable"]) {
    assertGreater(answers.get(answer) ?? 0, 0, answer);
  }
});
