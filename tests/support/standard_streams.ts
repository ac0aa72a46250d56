// Standard input and error in the hands of a test.

/** Standard error in the hands of a test, until it is disposed of. */
export class CapturedErrors implements Disposable {
  /** What was written. */
  text = "";
  /** Whether nothing more can be written. */
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

/** Has standard input bring these pieces, until it is disposed of. */
export function standardInput(...pieces: readonly string[]): Disposable {
  const readable = ReadableStream.from(pieces.map((piece) => new TextEncoder().encode(piece)));
  return { [Symbol.dispose]: replace("stdin", { readable }) };
}

/** Puts something in the place of a stream; gives what undoes that. */
function replace(name: "stdin" | "stderr", value: unknown): () => void {
  const original = Deno[name];
  Object.defineProperty(Deno, name, { configurable: true, value });
  return () => void Object.defineProperty(Deno, name, { configurable: true, value: original });
}
