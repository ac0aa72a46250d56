import { isJsonObject } from "../http/body.ts";
import { CommandError, type CommandIo, type Prepared, type Send } from "./command_line.ts";
import { type CommandRequest, OPERATOR_PATH } from "./operator_route.ts";

/** A service that runs commands over HTTP. */
export interface RemoteService {
  /** Prefix of its URLs. */
  readonly url: string;
  /** The operator token. */
  readonly token: string;
}

/**
 * Maximum size of one part of the input as JSON, in bytes. The service accepts four times as much, with the arguments.
 */
const MAX_PART = 256 * 1024;
const ENCODER = new TextEncoder();
/** Maximum wait for the next line of a response, in ms. */
const SILENCE = 60_000;

/**
 * Runs a prepared command in a service. Resolves to the exit code.
 *
 * @throws {CommandError} if the service cannot be reached or refuses the command, or if its response is incomplete.
 */
export async function runRemotely(
  { command, args }: Prepared,
  service: RemoteService,
  io: CommandIo,
): Promise<number> {
  const send: Send = (args, input, io) => sendCommand({ args, input }, service, io);
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

/** Splits input into parts that are small enough to send. There is at least one. */
function partsOf(lines: readonly string[]): readonly string[] {
  const parts: string[] = [];
  let part: string[] = [];
  let bytes = 0;
  for (const line of lines) {
    const more = ENCODER.encode(JSON.stringify(line)).length; // The two quotes make up for the escaped `\n`.
    if (bytes + more > MAX_PART && part.length > 0) {
      parts.push(part.join("\n"));
      [part, bytes] = [[], 0];
    }
    part.push(line);
    bytes += more;
  }
  return [...parts, part.join("\n")];
}

async function sendCommand(
  request: CommandRequest,
  { url, token }: RemoteService,
  io: CommandIo,
): Promise<number> {
  const silence = new AbortController();
  const giveUp = () =>
    silence.abort(new CommandError(`${url} does not respond, so it is unknown what was done`));
  let timer = setTimeout(giveUp, SILENCE);
  try {
    const response = await post(request, url, token, silence.signal);
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

/** Sends a command. Resolves to the response once the service has started the command. */
async function post(
  request: CommandRequest,
  url: string,
  token: string,
  signal: AbortSignal,
): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(url + OPERATOR_PATH, {
      method: "POST",
      redirect: "manual",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify(request),
      signal,
    });
  } catch (error) {
    signal.throwIfAborted();
    throw new CommandError(`There was no response from ${url}${failureIn(error)}`);
  }
  if (response.status !== 200) throw new CommandError(await reasonOf(response));
  return response;
}

/** The reason of a failed `fetch`, such as `: Connection refused (os error 111)`; empty if unknown. */
function failureIn(error: unknown): string {
  const reason = error instanceof Error && error.cause instanceof Error ? error.cause.message : "";
  const last = reason.split("\n")[0]?.split(": ").at(-1);
  return last ? `: ${last}` : "";
}

/** Why the service refused. */
async function reasonOf(response: Response): Promise<string> {
  const location = response.headers.get("location");
  const problem: unknown = await response.json().catch(() => undefined);
  if (location !== null) return `The service has moved. Set SERVICE_URL to the beginning of ${location}`;
  if (!isJsonObject(problem) || typeof problem.message !== "string") {
    return `The service returned ${response.status}`;
  }
  if (problem.code === "invalid_operator_token") return "OPERATOR_TOKEN is not this service's token";
  if (problem.code === "not_found") {
    return "The service runs without OPERATOR_TOKEN, or SERVICE_URL is not its address";
  }
  return problem.message.replace(/\.$/, "");
}

/** Yields the JSON objects of a response, one per line. Ends early if the response is incomplete. */
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
