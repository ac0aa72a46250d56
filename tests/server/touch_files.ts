// Preloaded into a server: tells whether it may write and read files, now and whenever it gets SIGUSR2.
const FILE = `${Deno.env.get("KV_PATH")}.txt`;

tell();
Deno.addSignalListener("SIGUSR2", tell);

function tell(): void {
  const [written, read] = [() => Deno.writeTextFileSync(FILE, "text"), () => Deno.readTextFileSync(FILE)]
    .map(outcomeOf);
  Deno.stdout.writeSync(new TextEncoder().encode(`write ${written}, read ${read}\n`));
}

function outcomeOf(use: () => unknown): string {
  try {
    use();
    return "done";
  } catch (error) {
    return error instanceof Error ? error.name : typeof error;
  }
}
