import { BoundedMap } from "../store/cache.ts";
import type { BodyRules, JsonBody, JsonObject } from "../http/body.ts";
import { ApiError, type ErrorCode } from "../http/error.ts";
import type { Endpoint } from "../http/router.ts";
import { whenReady } from "../http/in_flight.ts";
import type { Transaction } from "../store/transaction.ts";
import {
  Invalid,
  type Members,
  membersParser,
  type Optional,
  type ParsedMembers,
  type Schema,
  together,
} from "./schema.ts";

/** What a handler knows of a request beside what the client sent. */
export interface Call {
  readonly request: Request;
  /** What the service's own URLs begin with, such as `http://localhost:8000`. */
  readonly base: string;
  /** When the request arrived, ms since the epoch. */
  readonly now: number;
  /** Id of the account that called; empty where none had to. */
  readonly accountId: string;
  /**
   * Carries out a transaction: the only way for a handler to write. Nothing is begun once the request was given up.
   *
   * @throws what the transaction refuses with.
   * @throws {OutOfTime}
   * @throws {Outdated} where an account has changed since the caller was admitted; then the handler is called again.
   * @throws {StoreUnavailable}
   */
  readonly transact: <Result>(transaction: Transaction<Result>) => Promise<Result>;
  /** The client's address. */
  readonly address: () => string;
  /** Reads a body as `readJsonObject` does: for operations that declare none. The client may take its time. */
  readonly readBody: (rules?: Partial<BodyRules>) => Promise<JsonBody>;
}

/** A call whose request is not parsed yet. */
export interface Incoming extends Call {
  /** Path parameters by name, percent-decoded. */
  readonly params: Readonly<Record<string, string>>;
  /** Query string with its leading `?`, or empty. */
  readonly query: string;
}

/** Headers by name. */
type OptionalMembers = Readonly<Record<string, Optional<unknown>>>;

/** What the client sent, parsed. */
export interface Input<
  Params extends Members = Members,
  Query extends Members = Members,
  Headers extends OptionalMembers = OptionalMembers,
  Body = unknown,
> {
  readonly params: ParsedMembers<Params>;
  readonly query: ParsedMembers<Query>;
  readonly headers: ParsedMembers<Headers>;
  readonly body: Body;
  /** The body as it was sent. */
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** What carries an operation out. */
export type Handler<Sent extends Input = Input> = (input: Sent, call: Call) => Response | Promise<Response>;

/** What operations are about, in the order of the document. */
export const TAGS = [
  { name: "Animals", description: "The catalogue of animals" },
  { name: "Messages", description: "Messages to the store" },
  { name: "Account", description: "The account of an API key: its limits, usage and key" },
  { name: "Service", description: "The service itself" },
] as const;

/** What an operation answers with when it succeeds. */
export interface Answer {
  readonly description: string;
  /** What its JSON body is; none if it has no body. */
  readonly body?: Schema;
  /** Names of its headers, but for those that all responses have. */
  readonly headers?: readonly string[];
}

/** What an operation is. The document describes it if it has a tag and its path is below `/v1`. */
export interface Declaration<
  Params extends Members = Members,
  Query extends Members = Members,
  Headers extends OptionalMembers = OptionalMembers,
  Body = unknown,
> extends Endpoint {
  readonly id: string;
  readonly tag?: typeof TAGS[number]["name"];
  readonly summary: string;
  readonly description?: string;
  readonly deprecated?: true;
  /** Not part of interface 1.0.0. */
  readonly isExtension?: true;
  /** By name. A wrong one is `invalid_request`, unless its schema throws an ApiError. */
  readonly params?: Params;
  readonly query?: Query;
  /** Each may be left out. */
  readonly headers?: Headers;
  readonly body?: Schema<Body>;
  /** Another type that the body may have. */
  readonly bodyType?: string;
  /** Whether the body may be left out. */
  readonly bodyIsOptional?: true;
  /** By status. */
  readonly answers?: Readonly<Record<number, Answer>>;
  /** Errors of its own, beside those that follow from its access and body. */
  readonly errors?: readonly ErrorCode[];
  /** What is asked before anything is parsed or read. */
  readonly before?: (call: Call) => void | Promise<void>;
}

/** An operation as the service knows it: a row of the route table that describes itself. */
export interface Operation extends Declaration {
  readonly params: Members;
  readonly query: Members;
  readonly headers: OptionalMembers;
  readonly answers: Readonly<Record<number, Answer>>;
  readonly errors: readonly ErrorCode[];
  /**
   * Answers a request.
   *
   * @throws {ApiError} that tells of all that is wrong with the request, among others.
   */
  readonly answer: (call: Incoming) => Response | Promise<Response>;
}

type None = Readonly<Record<never, never>>;

const NO_BYTES = new Uint8Array();
const MAX_QUERIES = 1_000;
/** Longer than what clients ask for. */
const MAX_QUERY_LENGTH = 100;
const MAX_FAULTS = 5;

/** An operation, with the handler that carries it out. */
export function operation<
  Params extends Members = None,
  Query extends Members = None,
  Headers extends OptionalMembers = None,
  Body = undefined,
>(
  declaration: Declaration<Params, Query, Headers, Body>,
  handle: Handler<Input<Params, Query, Headers, Body>>,
): Operation;
export function operation(declaration: Declaration, handle: Handler): Operation {
  const { params = {}, query = {}, headers = {}, body, bodyType, bodyIsOptional = false } = declaration;
  const rules = { mayBeEmpty: bodyIsOptional, ...(bodyType && { otherType: bodyType }) };
  const parseParams = membersParser(params, (texts: Incoming["params"], name, schema) => {
    return schema.fromTexts([texts[name] ?? ""], name);
  });
  const parseHead = headParser(headers, query);

  function answer(call: Incoming): Response | Promise<Response> {
    return whenReady(declaration.before?.(call), () => {
      const inPath = valid(() => parseParams(call.params));
      if (body) return answerWithBody(body, inPath, call);
      const { headers, query } = valid(() => parseHead(call));
      return handle({ params: inPath, query, headers, body: undefined, bytes: NO_BYTES }, call);
    });
  }

  async function answerWithBody(schema: Schema, inPath: JsonObject, call: Incoming): Promise<Response> {
    const { object, bytes } = await call.readBody(rules);
    const [{ headers, query }, parsed] = valid(() =>
      together(() => parseHead(call), () => schema.parse(object, ""))
    );
    return await handle({ params: inPath, query, headers, body: parsed, bytes }, call);
  }

  return { answers: {}, errors: [], ...declaration, params, query, headers, answer };
}

/** What the head of a request says, but for its path. */
interface Head {
  readonly headers: JsonObject;
  readonly query: JsonObject;
}

/** Parses headers and query strings. Heads that most requests have, without such headers, are only looked up. */
function headParser(headers: Members, query: Members): (call: Incoming) => Head {
  const names = Object.keys(headers);
  const parseHeaders = membersParser(headers, (given: Headers, name) => given.get(name) ?? undefined);
  const parseQuery = membersParser(query, (given: URLSearchParams, name, schema) => {
    const texts = given.getAll(name);
    return texts.length === 0 ? undefined : schema.fromTexts(texts, name);
  });
  const usual = new BoundedMap<string, Head>(MAX_QUERIES);

  return function parseHead({ request, query }: Incoming): Head {
    const isUsual = !names.some((name) => request.headers.has(name));
    const known = isUsual ? usual.get(query) : undefined;
    if (known) return known;
    const [inHeaders, inQuery] = together(
      () => parseHeaders(request.headers),
      () => parseQuery(new URLSearchParams(query), "The query parameter "),
    );
    const head = { headers: inHeaders, query: inQuery };
    if (isUsual && query.length <= MAX_QUERY_LENGTH) usual.set(query, head);
    return head;
  };
}

/**
 * What `parse` returns.
 *
 * @throws {ApiError} `invalid_request` in place of Invalid.
 */
function valid<Value>(parse: () => Value): Value {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof Invalid)) throw error;
    const { faults } = error;
    const more = faults.length > MAX_FAULTS ? [`and ${faults.length - MAX_FAULTS} more`] : [];
    throw new ApiError("invalid_request", `${[...faults.slice(0, MAX_FAULTS), ...more].join("; ")}.`);
  }
}
