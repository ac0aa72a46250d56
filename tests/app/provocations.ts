import { needsToken } from "../../src/service/mod.ts";
import { MAX_ADDITIONS, MAX_ROTATIONS } from "../../src/accounts/account.ts";
import { MAX_ADDED_KEYS } from "../../src/accounts/added_keys.ts";
import type { Limits } from "../../src/limits/usage.ts";
import { IN_FLIGHT_LIMITS, InFlight } from "../../src/app/in_flight.ts";
import { getBanned, type HarnessRequest, JSON_TYPE } from "../support/client.ts";
import { switchFeed } from "../support/feed.ts";
import { Harness, type HarnessOptions } from "../support/harness.ts";
import { addKnownAccounts, ALL, CLOSED, credentialFor, OPEN, type Sample } from "../support/operations.ts";
import { HAMMER, SUNSET } from "../support/things.ts";

/** An operation about to be called. */
export interface Stage {
  readonly service: Harness;
  readonly apiKey: string;
  readonly isOperators: boolean;
  /** The body of a valid request, if it has one. */
  readonly json: unknown;
  /** Sends a valid request with these changes. */
  readonly send: (changes?: HarnessRequest) => Promise<Response>;
}

/** How to provoke an error. */
export interface Provocation {
  /** Options of the service. */
  readonly options?: () => HarnessOptions;
  /** The account's limits. */
  readonly limits?: Limits;
  /** What happens before that. */
  readonly before?: (stage: Stage) => Promise<unknown> | void;
  /** Sends the request, by default a valid one. */
  readonly act?: (stage: Stage) => Promise<Response>;
}

const NONSENSE = { headers: { authorization: "Bearer nonsense" } };
const READ_TOKEN = "a-token-of-an-operator-who-only-reads";
const STOPPED = new InFlight();
await STOPPED.stop();

const WAYS = {
  invalid_request: { act: ({ send }) => send({ headers: { host: "a/b" } }) },
  missing_api_key: { act: ({ send }) => send({ headers: { authorization: "" } }) },
  invalid_api_key: { act: ({ send }) => send(NONSENSE) },
  invalid_operator_token: { act: ({ send }) => send(NONSENSE) },
  read_only_token: {
    options: () => ({ operatorReadTokens: [{ token: READ_TOKEN }] }),
    act: ({ send }) => send({ headers: { authorization: `Bearer ${READ_TOKEN}` } }),
  },
  not_found: { options: () => ({ securityContact: undefined }) },
  rate_limit_minute: { limits: { minute: 2, day: 9 }, act: (stage) => sendAfter(60, stage) },
  rate_limit_day: { limits: { minute: 9, day: 1 }, act: (stage) => sendAfter(1, stage) },
  key_banned: {
    limits: { minute: 1, day: 9 },
    before: ({ service, apiKey }) => getBanned(service, apiKey, 1),
    act: sendUntilRefused,
  },
  overloaded: {
    options: () => ({ inFlight: new InFlight({ ...IN_FLIGHT_LIMITS, capacity: 0, monitoring: 0 }) }),
  },
  service_stopping: { options: () => ({ inFlight: STOPPED }) },
  invalid_json: { act: ({ send }) => send({ body: "{", headers: JSON_TYPE }) },
  invalid_content_type: {
    act: ({ send }) => send({ body: "{}", headers: { "content-type": "text/plain" } }),
  },
  payload_too_large: { act: ({ send }) => send({ body: " ".repeat(1_048_577), headers: JSON_TYPE }) },
  idempotency_key_reused: {
    act: async (stage) => {
      await addKnownAccounts(stage.service, await idOf(stage));
      const headers = { "idempotency-key": "1" };
      await stage.send({ headers });
      return await stage.send({ headers, json: otherThan(stage.json) });
    },
  },
  key_scope: {
    act: async (stage) => {
      const { service, send } = stage;
      const collections = ["none"];
      const added = await service.accounts.addKey(await idOf(stage), {
        label: "a",
        scope: "read",
        collections,
      });
      return await send({ headers: { authorization: `Bearer ${added.apiKey}` } });
    },
  },
  key_not_found: {
    before: ({ service }) => addKnownAccounts(service),
    act: async ({ send }) => {
      await send();
      return await send();
    },
  },
  key_exists: {
    before: ({ service }) => addKnownAccounts(service),
    act: async ({ send }) => {
      await send();
      return await send();
    },
  },
  too_many_keys: {
    before: ({ service }) => addKnownAccounts(service),
    act: async (stage) => {
      for (const id of [await idOf(stage), OPEN]) await addKeys(stage, id);
      return await stage.send();
    },
  },
  key_additions_limit: {
    act: async ({ service, apiKey, send }) => {
      for (let count = 0; count < MAX_ADDITIONS; count++) {
        await service.fetch("POST /v1/account/keys", { key: apiKey, json: { label: `${count}` } });
      }
      return await send();
    },
  },
  account_suspended: {
    before: async (stage) => await stage.service.accounts.suspend(await idOf(stage), stage.service.now),
  },
  sign_up_closed: { options: () => ({ signUpIsOpen: false }) },
  sign_up_limit: { act: ({ send }) => sendAgain(5, send) },
  thing_not_found: {},
  account_not_found: {},
  account_exists: {
    before: ({ service }) => addKnownAccounts(service),
    act: async ({ service, send }) => {
      const json = { name: "me", reference: "customer-8" };
      await service.fetch("POST /operator/v1/accounts", { key: ALL.operatorToken, json });
      return await send({ json });
    },
  },
  reference_set: {
    before: ({ service }) => addKnownAccounts(service),
    act: async ({ send }) => {
      await send({ json: { reference: "one" } });
      return await send({ json: { reference: "other" } });
    },
  },
  account_open: { before: ({ service }) => addKnownAccounts(service, undefined, null) },
  messages_waiting: {
    before: async ({ service }) => {
      await addKnownAccounts(service);
      await service.kv.set(["messages_waiting", CLOSED], new Deno.KvU64(1n));
    },
  },
  not_your_thing: {
    before: async ({ service }) => await addThing(service, (await service.createAccount()).apiKey),
  },
  precondition_failed: {
    before: ({ service, apiKey }) => addThing(service, apiKey),
    act: ({ send }) => send({ headers: { "if-match": '"other"' } }),
  },
  gone: { before: ({ service }) => void (service.now = SUNSET) },
  cursor_expired: { act: (stage) => followAfter(stage, ({ kv }) => removeAll(kv, ["changes"])) },
  changes_gap: { act: (stage) => followAfter(stage, () => Promise.resolve()) },
  rotation_limit: { act: ({ send }) => sendAgain(MAX_ROTATIONS, send) },
  queue_full: {
    before: async (stage) => {
      await stage.service.kv.set(["messages_waiting", await idOf(stage)], new Deno.KvU64(1_000n));
    },
  },
} as const satisfies Readonly<Record<string, Provocation>>;

/** How to provoke each error that a client can cause, except a request timeout, which takes too long. */
const PROVOCATIONS: Readonly<Record<string, Provocation>> = WAYS;

/** Opens a service and provokes this error of the operation; by default, with a valid request without what it needs. */
export async function provoke(
  code: string,
  { operation, target, request, errors }: Sample,
): Promise<Response> {
  const own = errors[code];
  const provocation: Provocation = own
    ? { before: async (stage) => await own(stage.service, await idOf(stage)) }
    : PROVOCATIONS[code] ?? {};
  const { options, limits = { minute: 100, day: 1_000 }, before, act = ({ send }) => send() } = provocation;
  await using service = await Harness.open({ ...ALL, ...options?.() });
  const { apiKey } = await service.createAccount(limits);
  const stage: Stage = {
    service,
    apiKey,
    isOperators: needsToken(operation.access),
    json: request.json,
    send: ({ headers = {}, ...changes } = {}) =>
      service.fetch(target, {
        ...(new Headers(headers).has("authorization") ? {} : credentialFor(operation, apiKey)),
        ...(changes.body === undefined ? request : {}),
        ...changes,
        headers,
      }),
  };
  await before?.(stage);
  return await act(stage);
}

/** Follows the feed of changes from a cursor that is older than what happens to the store, and than a gap. */
async function followAfter(
  { service, apiKey, isOperators }: Stage,
  happen: (service: Harness) => Promise<unknown>,
): Promise<Response> {
  const target = `GET ${isOperators ? "/operator" : ""}/v1/changes`;
  const key = isOperators ? ALL.operatorToken : apiKey;
  await switchFeed(service);
  const { cursor } = await (await service.fetch(target, { key })).json();
  await happen(service);
  for (const days of [0, 7]) await switchFeed(service, days);
  return await service.fetch(`${target}?after=${cursor}`, { key });
}

async function removeAll(kv: Deno.Kv, prefix: Deno.KvKey): Promise<void> {
  for await (const { key } of kv.list({ prefix })) await kv.delete(key);
}

/** A body in which the first value is another one. */
function otherThan(json: unknown): object {
  const [[name = "", value] = []] = Object.entries(Object(json));
  return { ...Object(json), [name]: typeof value === "number" ? value + 1 : `${value}s` };
}

/** The id of the account. */
async function idOf({ service, apiKey: key }: Stage): Promise<string> {
  return (await (await service.fetch("GET /v1/account", { key })).json()).id;
}

/** Adds as many keys to an account as it can have. */
async function addKeys({ service }: Stage, id: string): Promise<void> {
  for (let made = 0; made < MAX_ADDED_KEYS; made++) {
    await service.accounts.addKey(id, { label: `Key ${made}`, scope: "read" }).catch(() => undefined);
  }
}

/** Sends the request after the same request has been sent this many times. */
async function sendAgain(count: number, send: Stage["send"]): Promise<Response> {
  for (let sent = 0; sent < count; sent++) await send();
  return await send();
}

/** Sends the request after others that count toward the limits of the key and of the address. */
async function sendAfter(count: number, stage: Stage): Promise<Response> {
  const { service, apiKey } = stage;
  for (let sent = 0; sent < count; sent++) {
    await service.fetch("GET /v1/account");
    if (sent < 2) await service.fetch("GET /v1/account", { key: apiKey });
  }
  return await sendUntilRefused(stage);
}

/** Sends it until it is refused. A few requests of an account may be served although its limits are used up. */
async function sendUntilRefused({ isOperators, send }: Stage): Promise<Response> {
  for (let count = 0; count < 10; count++) {
    const response = await send(isOperators ? NONSENSE : {});
    if (!response.ok) return response;
    await response.body?.cancel();
  }
  return await send();
}

function addThing(service: Harness, key: string): Promise<Response> {
  return service.fetch("POST /v1/things", { key, json: HAMMER });
}
