/** Bytes of memory that a process has; Deno itself reads such files only with every permission. */
export async function residentMemory(pid: number): Promise<number> {
  const { stdout } = await new Deno.Command("cat", { args: [`/proc/${pid}/status`] }).output();
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(new TextDecoder().decode(stdout)) ?? [];
  if (kilobytes === undefined) throw new Error(`There is no process ${pid}`);
  return Number(kilobytes) * 1024;
}
