import { BoundedMap } from "../base/mod.ts";
import type { BodyRules, JsonBody } from "./body.ts";
import { type Deprecation, requireLasting } from "./deprecation.ts";
import { ApiError, type ErrorKind, invalidRequest } from "./error.ts";
import { membersParser, requireKnown, strict, together } from "./objects.ts";
import { PREFER, prefersStrict, withStrictApplied } from "./preference.ts";
import type { Endpoint } from "./router.ts";
import {
  Invalid,
  MAX_FAULTS,
  type Members,
  type Optional,
  type ParsedMembers,
  type Schema,
} from "./schema_types.ts";

/** The context of a request, for its handler. A service extends it with what its handlers need. */
export interface Call {
  readonly request: Request;
  /** Prefix of the service's own URLs, such as `http://localhost:8000`. */
  readonly base: string;
  /** Time of arrival, in ms since the epoch. */
  readonly now: number;
  /** Returns the client's address. */
  readonly address: () => string;
  /**
   * Reads the body as `readJsonObject` does, for an operation that declares none. The wait does not use up the request's
   * time.
   */
  readonly readBody: (rules?: Partial<BodyRules>) => Promise<JsonBody>;
}

/** A call whose request is not parsed yet. */
export type Incoming<Context extends Call = Call> = Context & {
  /** Path parameters by name, percent-decoded. */
  readonly params: Readonly<Record<string, string>>;
  /** Query string with its leading `?`, or empty. */
  readonly query: string;
};

type OptionalMembers = Readonly<Record<string, Optional<unknown>>>;

/** The parsed input of a request. */
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
  /** The raw body. */
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** Who may call operations. A service declares its own, with the errors of whoever may not. */
export interface Access {
  readonly name: string;
  /** Whether documents ask for a bearer token. */
  readonly hasCredential: boolean;
  /** Whether operations refuse unknown fields and query parameters. */
  readonly isStrict: boolean;
  /** Errors of all its operations, in addition to those of HTTP. */
  readonly errors: readonly ErrorKind[];
  /** Undefined if every credential allows all operations. */
  readonly scopes?: {
    /** The error if a credential lacks what an operation needs. */
    readonly error: ErrorKind;
    /** Returns a sentence on what an operation needs. */
    readonly needs: (operation: Scoped) => string;
  };
}

/** What a credential must allow: to read, to write, or to manage credentials and what they belong to. */
export type Scope = "read" | "write" | "manage";

/** What a credential needs for an operation. */
export interface Scoped {
  readonly scope: Scope;
  /** Names of all collections that the operation reads or writes. */
  readonly collections: readonly string[];
  /** Whether credentials that are restricted to some collections allow it, too. */
  readonly isUnrestricted?: true;
}

/** A group of operations. Documents have groups in the order of their operations. */
export interface Tag {
  readonly name: string;
  readonly description: string;
}

/** A successful response of an operation. */
export interface Answer {
  readonly description: string;
  /** Schema of the JSON body, if it has one. */
  readonly body?: Schema;
  /** Names of its headers, except those that all responses have. */
  readonly headers?: readonly string[];
  /** Examples of those that have a URL of the service, by name: the path. */
  readonly paths?: Readonly<Record<string, string>>;
}

/** The declaration of an operation. Documents include it if it has a tag. */
export interface Declaration<
  Params extends Members = Members,
  Query extends Members = Members,
  Headers extends OptionalMembers = OptionalMembers,
  Body = unknown,
> extends Endpoint, Partial<Scoped> {
  readonly id: string;
  readonly access: Access;
  readonly tag?: Tag;
  readonly summary: string;
  readonly description?: string;
  readonly deprecated?: Deprecation;
  /** Not part of the `original` version of the interface. Documents say so. */
  readonly isExtension?: true;
  /**
   * Ignores unknown fields and query parameters, unless a request has `Prefer: handling=strict`. Other operations refuse
   * them if their access is strict.
   */
  readonly isLenient?: true;
  /** Path parameters by name. An invalid one gets `invalid_request`, unless its schema throws an ApiError. */
  readonly params?: Params;
  readonly query?: Query;
  /** Headers by name. All are optional. */
  readonly headers?: Headers;
  readonly body?: Schema<Body>;
  /** Media type of the body in documents. application/json is accepted, too. */
  readonly bodyType?: string;
  /** Whether the body may be left out. */
  readonly bodyIsOptional?: true;
  /** Successful responses by status. */
  readonly answers?: Readonly<Record<number, Answer>>;
  /** Errors in addition to those implied by its access and body. */
  readonly errors?: readonly ErrorKind[];
  /** The question that a page asks before it sends such a request; undefined if it can be undone or does no harm. */
  readonly confirm?: string;
  /** The credential of the request stops working when it succeeds. */
  readonly endsKey?: true;
  /** How many requests of a caller in an hour are served although limits refuse them; by default none. */
  readonly sparedPerHour?: number;
  /** Maximum time to respond, in ms; by default that of all requests. */
  readonly timeoutMs?: number;
  /** Has a small capacity of its own, and a response while the service stops. */
  readonly isForMonitoring?: true;
  /** Called before the request is parsed. Throws an ApiError to refuse it. */
  readonly before?: (call: Call) => void;
}

/** An operation as documents describe it. */
export interface DeclaredOperation extends Declaration, Scoped {
  /** By default `read` for GET, and otherwise `write`. */
  readonly scope: Scope;
  /** By default none. */
  readonly collections: readonly string[];
  readonly isUnrestricted?: true;
  readonly params: Members;
  readonly query: Members;
  readonly headers: OptionalMembers;
  readonly answers: Readonly<Record<number, Answer>>;
  readonly errors: readonly ErrorKind[];
}

/** An operation with its handler: a row of the route table. */
export interface Operation<in Context extends Call = Call> extends DeclaredOperation {
  /**
   * Responds to a request.
   *
   * @throws {ApiError} if the request is invalid. Its message names the faults, see {@linkcode apiErrorOf}.
   * @throws an error of the handler.
   */
  readonly respond: (call: Incoming<Context>) => Response | Promise<Response>;
}

type None = Readonly<Record<never, never>>;

const NO_BYTES = new Uint8Array();
const MAX_QUERIES = 1_000;
/** Maximum length of a cached query string. */
const MAX_QUERY_LENGTH = 100;
/** Precedes the name of a query parameter in messages. */
const IN_QUERY = "The query parameter ";

/** Creates an operation from its declaration and its handler. */
export function operation<
  Params extends Members = None,
  Query extends Members = None,
  Headers extends OptionalMembers = None,
  Body = undefined,
  Context extends Call = Call,
>(
  declaration: Declaration<Params, Query, Headers, Body>,
  handle: (input: Input<Params, Query, Headers, Body>, call: Context) => Response | Promise<Response>,
): Operation<Context>;
export function operation(
  declaration: Declaration,
  handle: (input: Input, call: Call) => Response | Promise<Response>,
): Operation {
  const { access, isLenient = false, deprecated, bodyType, bodyIsOptional = false } = declaration;
  const { params = {}, query = {}, headers = {} } = declaration;
  const isStrict = !isLenient && access.isStrict;
  const body = isStrict && declaration.body ? strict(declaration.body) : declaration.body;
  const rules = { mayBeEmpty: bodyIsOptional, ...(bodyType && { otherType: bodyType }) };
  const parseParams = membersParser(params, (texts: Incoming["params"], name, schema) => {
    return schema.fromStrings([texts[name] ?? ""], name);
  });
  const parsePath = (call: Incoming) => parseParams(call.params, "The path parameter ");
  const respondAsUsual = responder(isStrict);
  const respondStrictly = responder(true);

  function respond(call: Incoming): Response | Promise<Response> {
    const prefer = isLenient && call.request.headers.get("prefer");
    if (!prefer || !prefersStrict(prefer)) return respondAsUsual(call);
    return withStrictApplied(() => respondStrictly(call));
  }

  function responder(isStrict: boolean): Operation["respond"] {
    const parseHead = headParser(headers, query, isStrict);

    async function respondWithBody(schema: Schema, call: Incoming): Promise<Response> {
      const params = valid(parsePath, call);
      const { object, bytes } = await call.readBody(rules);
      const [{ headers, query }, parsed] = valid(
        () => together(() => parseHead(call), () => schema.parse(object, "", isStrict)),
        call,
      );
      return await handle({ params, query, headers, body: parsed, bytes }, call);
    }

    function parseWithoutBody(call: Incoming): Input {
      const params = parsePath(call);
      const { headers, query } = parseHead(call);
      return { params, query, headers, body: undefined, bytes: NO_BYTES };
    }

    return function respond(call: Incoming): Response | Promise<Response> {
      if (deprecated) requireLasting(deprecated, call.now);
      declaration.before?.(call);
      return body ? respondWithBody(body, call) : handle(valid(parseWithoutBody, call), call);
    };
  }

  const accepted = isLenient ? { ...headers, Prefer: PREFER } : headers;
  const own = { params, query, headers: accepted, ...(body && { body }), respond };
  const scope = declaration.method === "GET" ? "read" : "write";
  return { answers: {}, errors: [], collections: [], scope, ...declaration, ...own };
}

/** Returns a parser of headers and query strings. Parsed query strings are cached. */
function headParser(headers: Members, query: Members, isStrict: boolean) {
  const names = Object.keys(headers);
  const parseHeaders = membersParser(headers, (given: Headers, name) => given.get(name) ?? undefined);
  const parseQuery = membersParser(query, (given: URLSearchParams, name, schema) => {
    const texts = given.getAll(name);
    return texts.length === 0 ? undefined : schema.fromStrings(texts, IN_QUERY + name);
  });
  /** What requests without these headers have, by query string. */
  const usual = new BoundedMap<string, Pick<Input, "headers" | "query">>(MAX_QUERIES);

  return function parseHead({ request, query: text }: Incoming): Pick<Input, "headers" | "query"> {
    const known = usual.get(text);
    if (known && !names.some((name) => request.headers.has(name))) return known;
    if (known) return { headers: parseHeaders(request.headers), query: known.query };
    const given = new URLSearchParams(text);
    const [inHeaders, inQuery] = together(
      () => parseHeaders(request.headers),
      () => parseQuery(given, IN_QUERY),
      () => isStrict && requireKnown(given.keys(), query, IN_QUERY),
    );
    if (text.length <= MAX_QUERY_LENGTH) usual.set(text, { headers: {}, query: inQuery });
    return { headers: inHeaders, query: inQuery };
  };
}

/** Calls `parse` with a call. @throws {ApiError} `invalid_request` if it throws Invalid. */
function valid<Value>(parse: (call: Incoming) => Value, call: Incoming): Value {
  try {
    return parse(call);
  } catch (error) {
    throw apiErrorOf(error) ?? error;
  }
}

/**
 * The error as clients get it: `invalid_request` with the faults if it is Invalid; undefined if it must stay internal.
 * Its texts have `[secret]` in place of what matches `secret`.
 */
export function apiErrorOf(error: unknown, secret?: RegExp): ApiError | undefined {
  const shown = error instanceof Invalid ? invalidRequest(inSentences(error), error.field) : error;
  if (!(shown instanceof ApiError)) return undefined;
  if (secret === undefined) return shown;
  const hidden = (text: unknown) => typeof text === "string" ? text.replaceAll(secret, "[secret]") : text;
  const members = Object.entries(shown.members).map(([name, text]) => [name, hidden(text)] as const);
  const message = `${hidden(shown.message)}`;
  if (message === shown.message && members.every(([name, text]) => text === shown.members[name])) {
    return shown;
  }
  return new ApiError(shown.kind, message, shown.headers, Object.fromEntries(members));
}

function inSentences({ faults }: Invalid): string {
  const more = faults.length > MAX_FAULTS ? [`And ${faults.length - MAX_FAULTS} more`] : [];
  return [...faults.slice(0, MAX_FAULTS), ...more]
    .map((phrase) => phrase.endsWith("?") ? phrase : `${phrase}.`).join(" ");
}
