/** Answers a request; never rejects. */
type Handle<Info> = (request: Request, info: Info) => Promise<Response>;

/** A handler that can be waited for. */
export interface Drainable<Info> {
  readonly handle: Handle<Info>;
  /** Resolves as soon as no request is being answered. */
  readonly drained: () => Promise<void>;
}

/**
 * Counts the requests that a handler is answering, so that a server can let them end before it shuts
 * down: `Deno.HttpServer.shutdown()` cuts off request bodies that are still arriving.
 */
export function drainable<Info>(handle: Handle<Info>): Drainable<Info> {
  const idle = Promise.withResolvers<void>();
  let awaited = false;
  let answering = 0;

  function check(): void {
    if (awaited && answering === 0) idle.resolve();
  }

  function finish(response: Response): Response {
    answering--;
    check();
    return response;
  }

  return {
    handle: (request, info) => {
      answering++;
      return handle(request, info).then(finish);
    },
    drained: () => {
      awaited = true;
      check();
      return idle.promise;
    },
  };
}
