import { load } from "../load.ts";
import { figure, ratio, table } from "../report.ts";
import { startService } from "../service.ts";
import { Session } from "../session.ts";
import type { Target } from "../target.ts";
import { note } from "../terminal.ts";
import { type Work, WORKS } from "../works.ts";

const FEW_REQUESTS = 10_000;
const FEW_CONNECTIONS = 1;
const DEADLINE = 10 * 60_000;

/** The service's resident memory after few and after many requests. */
export async function memoryReport(many: number, seconds: number, signal: AbortSignal): Promise<string> {
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(DEADLINE)]);
  await using session = new Session(deadline);
  const service = await startService(session);
  const work = WORKS["list-100-keys"];
  const start = await residentMebibytes(service);
  const gentle = { ...work, connections: FEW_CONNECTIONS };
  const few = await sendAtLeast(FEW_REQUESTS, {
    target: service,
    work: gentle,
    seconds: 1,
    signal: deadline,
  });
  const afterFew = await residentMebibytes(service);
  const rest = await sendAtLeast(many - few, { target: service, work, seconds, signal: deadline });
  const afterMany = await residentMebibytes(service);
  return [
    "Resident memory of the service in MiB. In brackets: as a multiple of that after few requests.",
    "",
    table(["", "memory"], [
      ["after the start", figure(start)],
      [`after ${figure(few)} requests`, figure(afterFew)],
      [
        `after ${figure(few + rest)} requests`,
        `${figure(afterMany)} (${ratio(afterMany, afterFew)})`,
      ],
    ]),
  ].join("\n");
}

interface Sending {
  readonly target: Target;
  readonly work: Work;
  readonly seconds: number;
  readonly signal: AbortSignal;
}

async function sendAtLeast(count: number, { target, work, seconds, signal }: Sending): Promise<number> {
  let sent = 0;
  while (sent < count) {
    sent += (await load(target, work, { seconds, signal })).requests;
    note(`memory: ${sent} requests, ${figure(await residentMebibytes(target))} MiB`);
  }
  return sent;
}

async function residentMebibytes({ server: { pid } }: Target): Promise<number> {
  const { stdout } = await new Deno.Command("ps", { args: ["-o", "rss=", "-p", `${pid}`] }).output();
  return Number(new TextDecoder().decode(stdout)) / 1024;
}
