// Standard input and error under the control of a test.

/** Captures standard error until it is disposed. */
export class CapturedErrors implements Disposable {
  /** The text written so far. */
  text = "";
  /** Whether writes fail. */
  isFull = false;
  readonly #restore: () => void;

  constructor() {
    this.#restore = replace("stderr", {
      writeSync: (bytes: Uint8Array) => {
        if (this.isFull) throw new Error("No space left on device");
        this.text += new TextDecoder().decode(bytes);
      },
    });
  }

  [Symbol.dispose](): void {
    this.#restore();
  }
}

/** Replaces standard input with these pieces until it is disposed. */
export function standardInput(...pieces: readonly string[]): Disposable {
  const readable = ReadableStream.from(pieces.map((piece) => new TextEncoder().encode(piece)));
  return { [Symbol.dispose]: replace("stdin", { readable }) };
}

/** Replaces a stream until the result is disposed. */
function replace(name: "stdin" | "stderr", value: unknown): () => void {
  const original = Deno[name];
  Object.defineProperty(Deno, name, { configurable: true, value });
  return () => void Object.defineProperty(Deno, name, { configurable: true, value: original });
}
