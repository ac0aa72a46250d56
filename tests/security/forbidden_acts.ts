// Preloaded into a server: tells what comes of acts that it is not permitted, now and whenever it gets SIGUSR2.
const ACTS: Readonly<Record<string, () => unknown>> = {
  "run a program": () => new Deno.Command("true").outputSync(),
  "read a foreign variable": () => Deno.env.get("HOME"),
  "set a variable": () => Deno.env.set("PORT", "1"),
  "load a library": () => Deno.dlopen("libc.so.6", {}),
  "ask for the host's name": () => Deno.hostname(),
  "write elsewhere": () => Deno.writeTextFileSync(`${Deno.env.get("KV_PATH")}.txt`, "text"),
  "read elsewhere": () => Deno.readTextFileSync("/etc/hostname"),
  "ask for more": () => requireGranted(Deno.permissions.requestSync({ name: "run" })),
};

tell();
Deno.addSignalListener("SIGUSR2", tell);

function tell(): void {
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
