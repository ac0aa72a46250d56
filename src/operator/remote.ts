import { isJsonObject } from "../http/body.ts";
import { CommandError, type CommandIo, type Prepared, type Send } from "./command_line.ts";
import { OPERATOR_PATH, type Order } from "./operator_route.ts";

/** A service that is operated over HTTP. */
export interface RemoteService {
  /** What its URLs begin with. */
  readonly url: string;
  /** The operator's token. */
  readonly token: string;
}

/** Most bytes of JSON that are sent of the input at a time; with the arguments, the service takes four times as much. */
const MAX_PART = 256 * 1024;
const ENCODER = new TextEncoder();
/** How long nothing may be heard of a service that carries out a command, in ms. */
const SILENCE = 60_000;

/**
 * Has a service carry out a command that was understood here. Resolves to the exit code.
 *
 * @throws {CommandError} when it cannot be reached, or refuses, or its answer breaks off.
 */
export async function carryOutRemotely(
  { command, args }: Prepared,
  service: RemoteService,
  io: CommandIo,
): Promise<number> {
  const send: Send = (args, input, io) => sendOrder({ args, input }, service, io);
  if (command.remotely) return await command.remotely(args, send, io);
  if (!command.input || args.words[0] !== "-") return await send(args.line, "", io);
  const parts = partsOf(command.input(await io.input()));
  for (const [index, part] of parts.entries()) {
    if (parts.length > 1) io.err(`Part ${index + 1} of ${parts.length}:`);
    const exit = await send(args.line, part, io);
    if (exit !== 0) return exit;
  }
  return 0;
}

/** Input in parts that are not too long to be sent; at least one. */
function partsOf(lines: readonly string[]): readonly string[] {
  const parts: string[] = [];
  let part: string[] = [];
  let bytes = 0;
  for (const line of lines) {
    const more = ENCODER.encode(JSON.stringify(line)).length; // Two quotes take as much as the end of a line.
    if (bytes + more > MAX_PART && part.length > 0) {
      parts.push(part.join("\n"));
      [part, bytes] = [[], 0];
    }
    part.push(line);
    bytes += more;
  }
  return [...parts, part.join("\n")];
}

async function sendOrder(order: Order, { url, token }: RemoteService, io: CommandIo): Promise<number> {
  const silence = new AbortController();
  const giveUp = () =>
    silence.abort(new CommandError(`${url} does not respond, so it is unknown what was done`));
  let timer = setTimeout(giveUp, SILENCE);
  try {
    const response = await post(order, url, token, silence.signal);
    for await (const line of linesOf(response)) {
      clearTimeout(timer);
      if (typeof line.exit === "number") return line.exit;
      if (typeof line.out === "string") await io.out(line.out);
      if (typeof line.err === "string") io.err(line.err);
      timer = setTimeout(giveUp, SILENCE);
    }
  } finally {
    clearTimeout(timer);
  }
  throw new CommandError("The connection broke, so it is unknown how the command ended");
}

/** The response of a service that begins to carry out what it was sent. */
async function post(order: Order, url: string, token: string, signal: AbortSignal): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(url + OPERATOR_PATH, {
      method: "POST",
      redirect: "manual",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify(order),
      signal,
    });
  } catch (error) {
    signal.throwIfAborted();
    throw new CommandError(`There was no response from ${url}${failureIn(error)}`);
  }
  if (response.status !== 200) throw new CommandError(await reasonOf(response));
  return response;
}

/** What `fetch` tells of why it failed, such as `: Connection refused (os error 111)`. */
function failureIn(error: unknown): string {
  const reason = error instanceof Error && error.cause instanceof Error ? error.cause.message : "";
  const last = reason.split("\n")[0]?.split(": ").at(-1);
  return last ? `: ${last}` : "";
}

/** Why a service refuses. */
async function reasonOf(response: Response): Promise<string> {
  const location = response.headers.get("location");
  const problem: unknown = await response.json().catch(() => undefined);
  if (location !== null) return `The service has moved. Try SERVICE_URL with the beginning of ${location}`;
  if (!isJsonObject(problem) || typeof problem.message !== "string") {
    return `The service returned ${response.status}`;
  }
  if (problem.code === "invalid_operator_token") return "OPERATOR_TOKEN is not the token of this service";
  if (problem.code === "not_found") {
    return "The service runs without OPERATOR_TOKEN, or SERVICE_URL is not its address";
  }
  return problem.message.replace(/\.$/, "");
}

/** The JSON objects of an answer, a line each, as far as it gets. */
async function* linesOf({ body }: Response): AsyncGenerator<Readonly<Record<string, unknown>>> {
  let rest = "";
  try {
    for await (const text of (body ?? new Blob().stream()).pipeThrough(new TextDecoderStream())) {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const value: unknown = JSON.parse(line);
        if (isJsonObject(value)) yield value;
      }
    }
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof SyntaxError)) throw error;
  }
}
