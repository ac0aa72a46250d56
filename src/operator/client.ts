import { isJsonObject, parseJson, type Schema, stringifyJson } from "../web/schema.ts";
import type { Store } from "../engine/mod.ts";
import { type Command, CommandError, InvalidArguments, type Work } from "./command_line.ts";

/** Sends an operator's request to a service, or to operations in this process. `target` is a path with its query. */
export type Fetch = (target: string, init: RequestInit) => Promise<Response>;

/** A request that may not have been carried out, because the service or its store did not respond. */
export class Unanswered extends CommandError {
  override readonly name = "Unanswered";
}

/** The service has no such operation, or a response that the command does not understand. */
class Misunderstood extends CommandError {
  override readonly name = "Misunderstood";
}

/** What commands work on: operators' operations, or the store itself. */
export interface Target {
  readonly operate: (work: Work<Client>) => Promise<void>;
  readonly store: () => Store;
}

/** Commands by name. */
type Commands<Base> = Readonly<Record<string, Command<Base>>>;

/** Commands that call operators' operations. */
export function onClient(commands: Commands<Client>): Commands<Target> {
  const all = Object.entries(commands).map(([name, command]): [string, Command<Target>] => [name, {
    ...command,
    prepare(args, io) {
      const work = command.prepare(args, io);
      return ({ operate }) => operate(work);
    },
  }]);
  return Object.fromEntries(all);
}

/** Calls operators' operations. Its methods throw CommandError with the reason if the service refuses a request. */
export class Client {
  readonly #fetch: Fetch;
  readonly #version: string | undefined;

  /** `version` is that of the command, if the service may have another. */
  constructor(fetch: Fetch, version?: string) {
    this.#fetch = fetch;
    this.#version = version;
  }

  /** Sends a request whose response has no content. */
  async send(method: string, target: string, body?: unknown): Promise<void> {
    const { status } = await this.#request(method, target, body);
    if (status !== 204) throw await this.#explained(new Misunderstood(UNEXPECTED));
  }

  /** Sends a request, and returns the body of the response, which may have members beyond those of the schema. */
  async call<Body>(
    method: string,
    target: string,
    schema: Schema<Body>,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<Body> {
    return await this.#contentOf(await this.#request(method, target, body, headers), schema);
  }

  /** Requests a page. Resolves to its items and those of all later pages, which are requested one after the other. */
  async list<Item>(target: string, page: Schema<readonly Item[]>): Promise<AsyncGenerator<Item>> {
    return this.#itemsFrom(await this.#request("GET", target), target, page);
  }

  async *#itemsFrom<Item>(
    first: Response,
    target: string,
    page: Schema<readonly Item[]>,
  ): AsyncGenerator<Item> {
    const seen = new Set<string | null>([null]); // The first page has no cursor.
    for (let response = first;;) {
      yield* await this.#contentOf(response, page);
      // Only the query is used, because the link may have another host than `target`.
      const [, query] = /^<[^>?]*(\?[^>]*)>; rel="next"$/.exec(response.headers.get("link") ?? "") ?? [];
      if (query === undefined) return;
      const cursor = new URLSearchParams(query).get("cursor");
      if (seen.has(cursor)) {
        throw new CommandError("The service returned a page that links to itself or back");
      }
      seen.add(cursor);
      response = await this.#request("GET", target.replace(/\?.*$/, query));
    }
  }

  async #request(
    method: string,
    target: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Response> {
    const content = body === undefined
      ? {}
      : { body: stringifyJson(body), headers: { "content-type": "application/json", ...headers } };
    const response = await this.#fetch(target, { method, ...content });
    if (response.ok) return response;
    throw await this.#explained(await refusalOf(response, method));
  }

  async #contentOf<Body>(response: Response, schema: Schema<Body>): Promise<Body> {
    const content = await jsonIn(response);
    if (!schema.accepts(content)) throw await this.#explained(new Misunderstood(UNEXPECTED));
    return content;
  }

  /** The error. If another version of the service may be its cause, its message names both versions. */
  async #explained(error: CommandError): Promise<CommandError> {
    const own = this.#version;
    const isMisunderstanding = error instanceof Misunderstood || error instanceof InvalidArguments;
    const other = own && isMisunderstanding ? await versionOf(this.#fetch) : undefined;
    if (other === undefined || other === own) return error;
    const message = `${error.message}. The service has version ${other}, and this command ${own}`;
    return error instanceof InvalidArguments ? new InvalidArguments(message) : new CommandError(message);
  }
}

const UNKNOWN = "It is unknown what was done";
const UNEXPECTED =
  "The answer is not what this version of the command expects, so it is unknown what was done";

/** The version of the service; undefined if it does not say. */
async function versionOf(fetch: Fetch): Promise<string | undefined> {
  const response = await fetch("/health", { method: "GET" }).catch(() => undefined);
  const health = response && await jsonIn(response);
  return isJsonObject(health) && typeof health.version === "string" ? health.version : undefined;
}

async function jsonIn(response: Response): Promise<unknown> {
  try {
    return parseJson(await response.text());
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Why the service, or a proxy before it, refused a request with this method. */
async function refusalOf(response: Response, method: string): Promise<CommandError> {
  const location = response.headers.get("location");
  if (location !== null) {
    return new CommandError(`The service has moved. Set SERVICE_URL to the beginning of ${location}`);
  }
  // Only a proxy returns these, and the service may have received the request.
  const isUnknown = method !== "GET" && (response.status === 502 || response.status === 504);
  const outcome = isUnknown ? `. ${UNKNOWN}` : "";
  const Refusal = response.status >= 502 && response.status <= 504 ? Unanswered : CommandError;
  const problem = await jsonIn(response);
  if (!isJsonObject(problem) || typeof problem.message !== "string") {
    return new Refusal(`The service returned ${response.status}${outcome}`);
  }
  const { code, message } = problem;
  if (code === "invalid_operator_token") {
    return new CommandError("OPERATOR_TOKEN is not this service's token");
  }
  if (code === "not_found") {
    return new Misunderstood("The service runs without OPERATOR_TOKEN, or SERVICE_URL is not its address");
  }
  const reason = message.replace(/\.$/, "") + outcome;
  if (response.status === 400) return new InvalidArguments(reason);
  return code === "method_not_allowed"
    ? new Misunderstood(reason)
    : new Refusal(reason, typeof code === "string" ? code : "");
}

/** Maximum duration of a request, in ms. The service takes 30 s at most. */
const TIMEOUT = 60_000;

/** Returns a function that sends requests to the service at `url`, with an operator token. It throws Unanswered if there is no whole response. */
export function remoteFetch(url: string, token: string): Fetch {
  return async (target, init) => {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), TIMEOUT);
    const headers = { ...init.headers, authorization: `Bearer ${token}` };
    let response: Response | undefined;
    try {
      response = await fetch(url + target, { ...init, headers, redirect: "manual", signal: late.signal });
      return new Response(response.body && await response.bytes(), response);
    } catch (error) {
      const outcome = init.method === "GET" ? "Nothing was changed" : UNKNOWN;
      if (late.signal.aborted) throw new Unanswered(`${url} does not respond. ${outcome}`);
      const reason = error instanceof Error && error.cause instanceof Error ? error.cause.message : "";
      // Without a connection, the service cannot have received the request.
      const isUnsent = response === undefined && (reason === "" || reason.includes("(Connect)"));
      throw new Unanswered(
        isUnsent ? `There was no response from ${url}${endOf(reason)}` : `The connection broke. ${outcome}`,
      );
    } finally {
      clearTimeout(timer);
    }
  };
}

/** The end of the reason of a failed `fetch`, such as `: Connection refused (os error 111)`; empty if unknown. */
function endOf(reason: string): string {
  const last = reason.split("\n")[0]?.split(": ").at(-1);
  return last ? `: ${last}` : "";
}
