import { pause } from "../../../src/base/time.ts";
import { RemoteBackend } from "../../../src/engine/remote/remote.ts";
import { referee } from "../engine_referee.ts";

/** How long it takes to open new handles, in ms. */
const REOPENING = 200;

Deno.test("Transactions.run() on servers returns results that some serial order of its transactions explains", () =>
  referee((open, options) => {
    const reopen = async (signal: AbortSignal) => {
      await pause(REOPENING);
      signal.throwIfAborted();
      return open();
    };
    return new RemoteBackend(open(), { ...options, reopen });
  }));
