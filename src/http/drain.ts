/** Answers a request; never rejects. */
type Handle<Info> = (request: Request, info: Info) => Promise<Response>;

/** A handler that can be waited for. */
export interface Drainable<Info> {
  readonly handle: Handle<Info>;
  /** Resolves when no request is being answered; from the call on, connections are closed after their answer. */
  readonly drain: () => Promise<void>;
}

/**
 * Counts the requests that a handler is answering, so that a server can let them end before it shuts
 * down: `Deno.HttpServer.shutdown()` cuts off request bodies that are still arriving.
 */
export function drainable<Info>(handle: Handle<Info>): Drainable<Info> {
  const drained = Promise.withResolvers<void>();
  let answering = 0;
  let draining = false;

  function finish(response: Response): Response {
    answering--;
    if (draining) response.headers.set("connection", "close");
    if (draining && answering === 0) drained.resolve();
    return response;
  }

  return {
    handle: (request, info) => {
      answering++;
      return handle(request, info).then(finish);
    },
    drain: () => {
      draining = true;
      if (answering === 0) drained.resolve();
      return drained.promise;
    },
  };
}
