// Preloaded before tests: a test that does not end fails after a time, under its name, even in an endless loop.

/** In ms. The slowest test takes 15 s alone. A test can set another time. */
const timeout = Number(Deno.env.get("TEST_TIMEOUT_MS") || 180_000);

/** What `Deno.test()` is given: a definition, or a name, options if any, and a function. */
type Given = [first: string | Deno.TestDefinition, second?: object, third?: object];

/** They make a name, options and a function of what is given. */
const PARTS = [
  ([first]: Given) => typeof first === "string" ? first : first.name,
  ([first, second, third]: Given) => {
    if (typeof first === "string") return { timeout, ...(third && second) };
    const { name: _, fn: __, ...options } = first;
    return { timeout, ...options };
  },
  ([first, second, third]: Given) => typeof first === "string" ? third ?? second : second ?? first.fn,
] as const;

/**
 * Adds the time to what registers tests. Deno reports a test at the nearest JavaScript that registers it. That stays the
 * file of the test, because these calls stand in WebAssembly:
 *
 *     (func (param externref externref externref)
 *       (call $register
 *         (call $name (local.get 0) (local.get 1) (local.get 2)) (call $options …) (call $function …)))
 */
function limited(register: CallableFunction): object {
  const [any, call, end] = [0x6f, 0x10, 0x0b];
  const given = [0x20, 0, 0x20, 1, 0x20, 2];
  const sized = (...bytes: number[]) => [bytes.length, ...bytes];
  const imported = (index: number) => [...sized(), ...sized(0x30 + index), 0, index < 3 ? 0 : 1];
  const bytes = [
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...[1, ...sized(2, 0x60, 3, any, any, any, 1, any, 0x60, 3, any, any, any, 0)],
    ...[2, ...sized(4, ...[0, 1, 2, 3].flatMap(imported))],
    ...[3, ...sized(1, 1)],
    ...[7, ...sized(1, ...sized(0x30), 0, 4)],
    ...[10, ...sized(1, ...sized(0, ...[0, 1, 2].flatMap((index) => [...given, call, index]), call, 3, end))],
  ];
  const imports = Object.fromEntries(
    [...PARTS.map((part) => (...all: Given) => part(all)), register].map((called, index) => [index, called]),
  );
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(new Uint8Array(bytes)), {
    "": imports,
  });
  return exports[0] ?? register;
}

const { test } = Deno;
const each = (cases: readonly unknown[]) => limited(test.each(cases));
Object.assign(Deno, { test: Object.assign(limited(test), test, { each }) });
