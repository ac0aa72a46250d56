// Preloaded into a server: attempts forbidden acts and prints the outcomes, now and at every SIGUSR2.
const ACTS: Readonly<Record<string, () => unknown>> = {
  "run a program": () => new Deno.Command("true").outputSync(),
  "read another variable": () => Deno.env.get("HOME"),
  "set a variable": () => Deno.env.set("PORT", "1"),
  "load a library": () => Deno.dlopen("libc.so.6", {}),
  "read the host name": () => Deno.hostname(),
  "write another file": () => Deno.writeTextFileSync(`${Deno.env.get("KV_PATH")}.txt`, "text"),
  "read another file": () => Deno.readTextFileSync("/etc/hostname"),
  "request a permission": () => requireGranted(Deno.permissions.requestSync({ name: "run" })),
};

attemptAll();
Deno.addSignalListener("SIGUSR2", attemptAll);

function attemptAll(): void {
  const outcomes = Object.entries(ACTS).map(([name, act]) => `${name}: ${outcomeOf(act)}`);
  Deno.stdout.writeSync(new TextEncoder().encode(`${outcomes.join(", ")}\n`));
}

function outcomeOf(act: () => unknown): string {
  try {
    act();
    return "done";
  } catch (error) {
    return error instanceof Error ? error.name : typeof error;
  }
}

function requireGranted({ state }: Deno.PermissionStatus): void {
  if (state !== "granted") throw new Deno.errors.NotCapable(state);
}
