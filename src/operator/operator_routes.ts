import { ApiError } from "../http/error.ts";
import { errorRecord, type Log } from "../http/log.ts";
import { createResponse, NO_STORE } from "../http/response.ts";
import type { Call, Route } from "../http/router.ts";
import { carryOut, describeCommand } from "./operator.ts";
import type { Stores, Terminal } from "./terminal.ts";

/** What operators' requests are carried out with. */
export interface OperatorOptions {
  readonly stores: Stores;
  /** The time, in ms since the epoch. */
  readonly clock: () => number;
  readonly log: Log;
  /** Whether the process is about to end. */
  readonly isStopping: () => boolean;
}

/** Where operators' commands are sent to. */
export const OPERATOR_PATH = "/operator";
/** Most that a command and its input may come to, in bytes. */
const MAX_BYTES = 16 * 1024 * 1024;
const ENCODER = new TextEncoder();

/** A line of the answer, as JSON: of output, for people, or the exit code, which comes last. */
export type OperatorLine = { readonly out: string } | { readonly err: string } | { readonly exit: number };

/** Whoever sent the command has gone, which ends it. */
class HungUp extends Error {
  override readonly name = "HungUp";
}

/** Carries out commands for operators who cannot reach the store. */
export function operatorRoutes({ stores, clock, log, isStopping }: OperatorOptions): Route[] {
  async function operate(_request: Request, { now, readBody }: Call): Promise<Response> {
    const { object: { args, input = "" } } = await readBody({ maxBytes: MAX_BYTES });
    if (!isTexts(args)) throw new ApiError("invalid_request", "args must be an array of strings.");
    if (typeof input !== "string") throw new ApiError("invalid_request", "input must be a string.");
    const { readable, writable } = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>();
    const writer = writable.getWriter();
    const write = (line: OperatorLine) =>
      writer.write(ENCODER.encode(`${JSON.stringify(line)}\n`)).catch((cause) => {
        throw new HungUp("Nobody reads the answer", { cause });
      });
    const terminal: Terminal = {
      clock,
      input: async function* () {
        yield* input.split(/\r?\n/);
      },
      out: (line) => write({ out: line }),
      err: (line) => void write({ err: line }).catch(() => {}),
      isStopping,
      isRemote: true,
    };
    const run = async () => {
      let exit = 1;
      try {
        exit = await carryOut(args, terminal, async (command) => (await command(stores), 0));
      } finally {
        log.command({ time: new Date(now).toISOString(), command: describeCommand(args), exit });
      }
      await write({ exit });
      await writer.close();
    };
    run().catch((error) => {
      if (error instanceof HungUp) return;
      log.error(errorRecord(error, now, OPERATOR_PATH));
      return writer.abort();
    }).catch(() => {});
    const headers = { "content-type": "application/jsonl", ...NO_STORE };
    return createResponse(readable, { headers });
  }

  return [{ method: "POST", path: OPERATOR_PATH, access: "operator", handler: operate }];
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}
