import { referee } from "./engine_referee.ts";

Deno.test("Transactions.run() returns results that some serial order of its transactions explains", () =>
  referee());
