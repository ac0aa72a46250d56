import { unauthorized } from "./access/authenticator.ts";
import { Gate } from "./access/gate.ts";
import { setLimitHeaders } from "./access/limit_headers.ts";
import { Refusals } from "./access/refusals.ts";
import type { Environment } from "./access/secret.ts";
import type { Verdict } from "./access/usage.ts";
import { problemOf, STOPPING } from "./failures.ts";
import { healthRoutes } from "./health/health_routes.ts";
import { requireValidHost } from "./http/authority.ts";
import { optionsResponse, setCorsHeaders } from "./http/cors.ts";
import type { Drain } from "./http/drain.ts";
import { ApiError, problemResponse } from "./http/error.ts";
import type { Log } from "./http/log.ts";
import { createRequestIds } from "./http/request_id.ts";
import { type Call, createMatcher, type Match } from "./http/router.ts";
import { targetOf } from "./http/target.ts";
import { ReplyStore } from "./idempotency/reply_store.ts";
import type { Store } from "./kv/store.ts";
import { messageRoutes } from "./messages/message_routes.ts";
import { MessageStore } from "./messages/message_store.ts";
import { petRoutes } from "./pets/pet_routes.ts";
import { PetStore } from "./pets/pet_store.ts";

/** What the app stands on. */
export interface Services {
  readonly store: Store;
  readonly environment: Environment;
  /** The time, in ms since the epoch. */
  readonly clock: () => number;
  readonly log: Log;
  /** The client's address, for requests without a valid key. */
  readonly clientAddress: (request: Request, info: ConnectionInfo) => string;
  /** Counts the requests being answered, and says when to turn them away. */
  readonly drain: Drain;
}

/** What the server knows of a request's connection. */
export interface ConnectionInfo {
  readonly remoteAddr: Deno.Addr;
}

/** Answers a request; never rejects. */
export type App = (request: Request, info: ConnectionInfo) => Promise<Response>;

/** What is known of a request while it is answered. */
interface Exchange extends Call {
  readonly id: string;
  readonly path: string;
  readonly address: () => string;
  /** Pattern of the path, where one matched. */
  route: string;
  params: Call["params"];
  keyId: string;
  verdict?: Verdict;
}

const BASE = "/v1";

/** The whole service as a function of a request: the request path, top to bottom. */
export function createApp({ store, environment, clock, log, clientAddress, drain }: Services): App {
  const replies = new ReplyStore(store);
  const pets = new PetStore(store);
  const match = createMatcher([
    ...petRoutes(pets, replies),
    ...messageRoutes(new MessageStore(store), replies),
    ...healthRoutes(store),
  ]);
  const gate = new Gate({ store, environment, clock, confirmed: pets.catalogue });
  const refusals = new Refusals();
  const requestId = createRequestIds();

  return async function app(request: Request, info: ConnectionInfo): Promise<Response> {
    drain.enter();
    const { path, query } = targetOf(request.url);
    const exchange: Exchange = {
      id: requestId(request),
      now: clock(),
      arrived: pets.catalogue.moment,
      path,
      query,
      address: () => clientAddress(request, info),
      route: "",
      params: {},
      keyId: "",
    };
    try {
      return finish(request, await answer(request, exchange), exchange);
    } catch (error) {
      return finish(request, problemResponse(problemOf(error, exchange, log)), exchange);
    } finally {
      drain.leave();
    }
  };

  async function answer(request: Request, exchange: Exchange): Promise<Response> {
    if (drain.stopping) return problemResponse(STOPPING);
    requireValidHost(request);
    const matched = match(request.method, exchange.path);
    exchange.route = patternOf(matched);
    if (request.method === "OPTIONS" && matched.kind === "allow") {
      return optionsResponse(request, matched.allow);
    }
    if (request.method !== "OPTIONS" && isCharged(matched, exchange)) {
      const authorization = request.headers.get("authorization");
      const { keyId, verdict } = await gate.admit(authorization, exchange.address, exchange.now);
      exchange.verdict = verdict;
      exchange.keyId = keyId ?? "";
      if (verdict.refusal) return refusals.respondTo(verdict, verdict.refusal);
      if (keyId === undefined && matched.kind === "route") {
        return unauthorized(authorization);
      }
    }
    switch (matched.kind) {
      case "route":
        exchange.params = matched.params;
        return await matched.route.handler(request, exchange);
      case "allow":
        throw new ApiError("method_not_allowed", `This path answers ${matched.allow}.`, {
          allow: matched.allow,
        });
      case "none":
        throw new ApiError("not_found", "There is nothing at this path.");
    }
  }

  function finish(request: Request, response: Response, exchange: Exchange): Response {
    const { headers, status } = response;
    const { id, now, route, keyId, verdict } = exchange;
    // The 429s that requests share have them already.
    if (isVersioned(exchange) && verdict?.refusal === undefined) {
      setLimitHeaders(headers, verdict ?? gate.peek(exchange.address(), now));
    }
    headers.set("x-request-id", id);
    if (request.headers.get("origin") !== null) setCorsHeaders(headers);
    if (log.access) {
      const time = new Date(now).toISOString();
      log.access({ time, id, method: request.method, route, status, ms: clock() - now, keyId });
    }
    return response;
  }
}

function patternOf(matched: Match): string {
  switch (matched.kind) {
    case "route":
      return matched.route.path;
    case "allow":
      return matched.path;
    case "none":
      return "";
  }
}

/** Whether the request counts against a limit: calls of operations do, and misses below the base path. */
function isCharged(matched: Match, exchange: Exchange): boolean {
  return matched.kind === "route" ? matched.route.access === "key" : isVersioned(exchange);
}

function isVersioned({ route, path }: Exchange): boolean {
  const place = route || path;
  return place === BASE || place.startsWith(`${BASE}/`);
}
