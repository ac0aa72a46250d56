import type { Limits } from "../../src/access/plans.ts";
import { KeyStore } from "../../src/access/key_store.ts";
import { createSecret } from "../../src/access/secret.ts";
import { openStore } from "../../src/kv/open.ts";
import { AMPLE, ANIMALS, KEY_COUNT, SPENT_AT_ONCE } from "./contenders/fixture.ts";
import type { Session } from "./session.ts";
import type { Callers, Target } from "./target.ts";

/** How a measurement wants the service. */
export interface ServiceOptions {
  /** Fills the KV file before the start; otherwise the service gets the animals of every contender. */
  readonly seed?: (path: string) => Promise<void>;
  /** A module to run in the process before the service. */
  readonly preload?: string;
}

/** The service's column heading. */
export const SERVICE = "This service";

const ENVIRONMENT = "staging";

/** Starts the service, with keys and animals, on a KV file of its own. */
export async function startService(
  session: Session,
  { seed, preload }: ServiceOptions = {},
): Promise<Target> {
  const folder = await session.makeFolder();
  const path = `${folder}/service.db`;
  const callers = await createCallers(path);
  await seed?.(path);
  const server = await session.start({
    args: [...preload === undefined ? ["-P"] : ["-P=bench", `--preload=${preload}`], "main.ts"],
    env: { KV_PATH: path, ENVIRONMENT, ACCESS_LOG: "off" },
  });
  if (seed === undefined) await addAnimals(server.origin, callers);
  return { name: SERVICE, server, callers, folder };
}

async function createCallers(path: string): Promise<Callers> {
  const store = await openStore(path);
  const keys = new KeyStore(store);
  const create = async (limits: Limits): Promise<string> => {
    const newKey = { account: "bench", plan: "enterprise", limits, environment: ENVIRONMENT } as const;
    return (await keys.create(newKey, Date.now())).secret;
  };
  const ample: string[] = [];
  while (ample.length < KEY_COUNT) ample.push(await create({ minute: AMPLE.perMinute, day: AMPLE.perDay }));
  const limited = await create({ minute: SPENT_AT_ONCE.perMinute, day: SPENT_AT_ONCE.perDay });
  await store.close();
  return { ample, limited, unknown: createSecret(ENVIRONMENT) };
}

async function addAnimals(origin: string, { ample: [key] }: Callers): Promise<void> {
  for (const animal of ANIMALS) {
    const response = await fetch(`${origin}/v1/pets`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify(animal),
    });
    await response.body?.cancel();
    if (response.status !== 201) throw new Error(`The service answered ${response.status} to a new animal.`);
  }
}
