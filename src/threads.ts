/** The thread that a call goes to: a worker, or a port to the main thread. */
type Thread = Pick<MessagePort, "postMessage">;

/** A call on its way. */
interface Sent<Call> {
  readonly call: Call;
  /** Receives the outcome. */
  readonly reply: MessagePort;
}

/** The outcome of a call. */
type Outcome = { readonly result: unknown } | { readonly failure: string };

/**
 * Calls another thread, where {@linkcode answerCall} handles the call. Resolves to the result.
 *
 * @throws {Error} with the message of the error that was thrown there.
 *
 * @example
 * ```ts
 * import { assertEquals, assertRejects } from "@std/assert";
 *
 * const { port1: here, port2: there } = new MessageChannel();
 * there.onmessage = (event) =>
 *   answerCall<{ divide: number }>(event, ({ divide }) => {
 *     if (divide === 0) throw new RangeError("Division by zero");
 *     return 1 / divide;
 *   });
 * assertEquals(await callThread(here, { divide: 2 }), 0.5);
 * await assertRejects(() => callThread(here, { divide: 0 }), Error, "Division by zero");
 * for (const port of [here, there]) port.close();
 * ```
 */
export function callThread(
  thread: Thread,
  call: object,
  transfer: readonly MessagePort[] = [],
): Promise<unknown> {
  const { port1: own, port2: reply } = new MessageChannel();
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  own.onmessage = ({ data }: MessageEvent<Outcome>) => {
    own.close();
    if ("result" in data) resolve(data.result);
    else reject(new Error(data.failure));
  };
  thread.postMessage({ call, reply }, [reply, ...transfer]);
  return promise;
}

/** Answers a call from another thread. */
export async function answerCall<Call>(
  { data: { call, reply } }: MessageEvent<Sent<Call>>,
  answer: (call: Call) => unknown,
): Promise<void> {
  let outcome: Outcome;
  try {
    outcome = { result: await answer(call) };
  } catch (error) {
    outcome = { failure: error instanceof Error ? error.message : typeof error };
  }
  reply.postMessage(outcome);
  reply.close();
}
