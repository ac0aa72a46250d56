// Gateways in front of a service that validate requests and responses by its OpenAPI document.
import type { AddressInfo } from "node:net";
import { createLogger } from "@stoplight/prism-core";
import { getHttpOperationsFromSpec } from "@stoplight/prism-http";
import { createServer } from "@stoplight/prism-http-server";
import express, { type NextFunction, type Request, type Response } from "express";
import { middleware } from "express-openapi-validator";

/** Forwards every request, and notes what differs from the document in the request or the response. */
export interface Gateway extends AsyncDisposable {
  /** Takes the place of the URL of the service that the document describes, such as `http://localhost:8000/v1`. */
  readonly base: string;
  /** What differs, according to a response that came through the gateway. */
  readonly violationsIn: (headers: Headers) => readonly string[];
}

/** The gateways by name. Each takes the text of a document, and the URL of the service that it describes. */
export const GATEWAYS: Readonly<Record<string, (document: string, upstream: URL) => Promise<Gateway>>> = {
  "the proxy of Prism": openPrism,
  "express-openapi-validator": openExpress,
};

/** A server that answers with the examples of the document. */
export function openMock(document: string): Promise<Gateway> {
  return openServer(document, { isProxy: false });
}

function openPrism(document: string, upstream: URL): Promise<Gateway> {
  return openServer(document, { isProxy: true, upstream });
}

async function openServer(
  document: string,
  kind: { readonly isProxy: false } | { readonly isProxy: true; readonly upstream: URL },
): Promise<Gateway> {
  const server = createServer(await getHttpOperationsFromSpec(JSON.parse(document)), {
    cors: false,
    components: { logger: createLogger("gateway", { level: "silent" }) },
    config: {
      ...kind,
      upstreamProxy: undefined,
      validateRequest: true,
      validateResponse: true,
      checkSecurity: true,
      errors: false,
      mock: { dynamic: false },
    },
  });
  return {
    base: await server.listen(0, "127.0.0.1"),
    violationsIn: (headers) => {
      const violations: { readonly severity: string }[] = JSON.parse(headers.get("sl-violations") ?? "[]");
      return violations.map((one) => JSON.stringify(one));
    },
    [Symbol.asyncDispose]: () => server.close(),
  };
}

const VIOLATION = "x-violation";
/** Headers that belong to one connection. */
const OF_CONNECTION = ["connection", "content-length", "host", "transfer-encoding"];

async function openExpress(document: string, upstream: URL): Promise<Gateway> {
  const bodies = new WeakMap<object, Uint8Array<ArrayBuffer>>();
  const app = express();
  app.disable("x-powered-by").disable("etag");
  app.use(express.json({
    type: ["application/json", "application/merge-patch+json"],
    verify: (request, _response, bytes) => void bodies.set(request, new Uint8Array(bytes)),
  }));

  /** Forwards a request as it arrived. */
  async function forward(request: Request, response: Response): Promise<void> {
    const headers = Object.entries(request.headers).filter(([name]) => !OF_CONNECTION.includes(name));
    const answer = await fetch(new URL(request.originalUrl, upstream), {
      method: request.method,
      headers: Object.fromEntries(headers.map(([name, value]) => [name, `${value}`])),
      body: bodies.get(request) ?? null,
    });
    const text = await answer.text();
    response.status(answer.status);
    for (const [name, value] of answer.headers) {
      if (!OF_CONNECTION.includes(name) && name !== "content-encoding") response.setHeader(name, value);
    }
    if (text === "") response.end();
    else response.json(JSON.parse(text));
  }

  const note = (response: Response | undefined, error: Error) =>
    response?.setHeader(VIOLATION, encodeURIComponent(error.message));
  app.use(middleware({
    apiSpec: JSON.parse(document),
    validateSecurity: false,
    validateResponses: { onError: (error, _body, request) => void note(request.res, error) },
  }));
  app.use(forward);
  app.use((error: Error, request: Request, response: Response, _next: NextFunction) => {
    note(response, error);
    return forward(request, response);
  });
  const server = app.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    base: `http://127.0.0.1:${port}${upstream.pathname}`,
    violationsIn: (headers) => {
      const violation = headers.get(VIOLATION);
      return violation === null ? [] : [decodeURIComponent(violation)];
    },
    [Symbol.asyncDispose]: () => new Promise((resolve) => void server.close(() => resolve())),
  };
}
