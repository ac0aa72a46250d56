import { BODY_ERRORS } from "../api/openapi.ts";
import { type Call, type Operation, operation } from "../api/operation.ts";
import type { BodyRules, JsonObject } from "../http/body.ts";
import { ConcurrencyLimit } from "../http/concurrency.ts";
import { ApiError } from "../http/error.ts";
import type { InFlight } from "../http/in_flight.ts";
import { errorRecord, type Log } from "../http/log.ts";
import { createResponse, NO_STORE } from "../http/response.ts";
import { ACCOUNTS } from "./accounts.ts";
import { type CommandIo, describeCommand, runCommandLine, type Stores, type Task } from "./command_line.ts";
import { MESSAGES } from "./messages.ts";
import { PETS } from "./pets.ts";

/** Commands on the stores. They run in their own process or in the service. */
export const STORE_TASKS: readonly Task[] = [ACCOUNTS, PETS, MESSAGES];

/** Options of {@linkcode operatorOperation}. */
export interface OperatorOptions {
  readonly stores: Stores;
  /** The time, in ms since the epoch. */
  readonly clock: () => number;
  readonly log: Log;
  readonly inFlight: Pick<InFlight, "isStopping">;
}

/** Path of operators' commands. */
export const OPERATOR_PATH = "/operator";
/** Bounds of a command and its input. */
const RULES: Partial<BodyRules> = { maxBytes: 1024 * 1024, bounds: { values: 2_000, levels: 16 } };
const MAX_ARGUMENTS = 1_000;
/** Maximum number of commands at a time. */
const REQUESTS_AT_ONCE = 8;
const HEADERS = { "content-type": "application/jsonl", ...NO_STORE };
const ENCODER = new TextEncoder();

/** A line of the response, as JSON: standard output, standard error or, at the end, the exit code. */
type OperatorLine = { readonly out: string } | { readonly err: string } | { readonly exit: number };

/** A command line with the text of its standard input. */
export interface CommandRequest {
  readonly args: readonly string[];
  readonly input: string;
}

/** The client has disconnected, which ends its command. */
class ClientGone extends Error {
  override readonly name = "ClientGone";
}

/** The operation that runs commands for operators who have no direct access to the store. */
export function operatorOperation({ stores, clock, log, inFlight }: OperatorOptions): Operation {
  const requests = new ConcurrencyLimit(REQUESTS_AT_ONCE, "commands are running");

  /** Responds once the command has begun. The response ends with the command. */
  function operate(call: Call): Promise<Response> {
    const address = call.address(); // Unknown once the response has begun.
    const { promise: response, resolve, reject } = Promise.withResolvers<Response>();
    requests.run(async () => {
      const request = parseCommandRequest((await call.readBody(RULES)).object);
      const { readable, writable } = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>();
      resolve(createResponse(readable, { headers: HEADERS }));
      await runCommand(request, writable.getWriter(), call.now, address);
    }).catch(reject);
    return response;
  }

  /** Runs a command and writes the lines of the response. A failure aborts the response. */
  async function runCommand(
    { args, input }: CommandRequest,
    writer: WritableStreamDefaultWriter<Uint8Array<ArrayBuffer>>,
    now: number,
    address: string,
  ): Promise<void> {
    const write = (line: OperatorLine) =>
      writer.write(ENCODER.encode(`${JSON.stringify(line)}\n`)).catch((cause) => {
        throw new ClientGone("The client has disconnected", { cause });
      });
    const io: CommandIo = {
      clock,
      input: () => Promise.resolve(input.split(/\r?\n/)),
      out: (line) => write({ out: line }),
      err: (line) => void write({ err: line }).catch(() => {}),
      isStopping: () => inFlight.isStopping,
      isRemote: true,
    };
    const time = new Date(now).toISOString();
    const logExit = (exit: number) =>
      log.command({ time, address, command: describeCommand(STORE_TASKS, args), exit });
    try {
      const exit = await runCommandLine(STORE_TASKS, args, io, async ({ work }) => (await work(stores), 0));
      logExit(exit);
      write({ exit }).then(() => writer.close()).catch(() => {});
    } catch (error) {
      logExit(1);
      if (!(error instanceof ClientGone)) log.error(errorRecord(error, now, OPERATOR_PATH));
      writer.abort().catch(() => {});
    }
  }

  return operation({
    id: "operate",
    method: "POST",
    path: OPERATOR_PATH,
    access: "operator",
    summary: "Run a command",
    errors: BODY_ERRORS,
  }, (_input, call) => operate(call));
}

/** @throws {ApiError} `invalid_request`, naming the field and what was expected. */
function parseCommandRequest({ args, input = "" }: JsonObject): CommandRequest {
  if (!isTexts(args)) throw new ApiError("invalid_request", "args must be an array of strings.");
  if (args.length > MAX_ARGUMENTS) {
    throw new ApiError("invalid_request", `args must have at most ${MAX_ARGUMENTS} strings.`);
  }
  if (typeof input !== "string") throw new ApiError("invalid_request", "input must be a string.");
  return { args, input };
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}
