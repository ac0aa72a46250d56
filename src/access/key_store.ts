import { batched } from "../kv/batcher.ts";
import { decodeJson, encodeJson, type JsonValue } from "../kv/json_value.ts";
import { retried } from "../kv/retry.ts";
import type { Store } from "../kv/store.ts";
import type { ApiKey, KeyState } from "./api_key.ts";
import { keyRow, readKeyRows, secretRow, usageRow } from "./key_rows.ts";
import type { Limits, Plan } from "./plans.ts";
import { createSecret, type Environment, hashSecret, randomBase62 } from "./secret.ts";
import { pardon, UNUSED } from "./usage.ts";

/** What a key is made of. */
export interface NewKey {
  readonly account: string;
  readonly plan: Plan;
  readonly limits: Limits;
  readonly environment: Environment;
}

/** A key, and its secret: the only time that it is known. */
export interface IssuedKey {
  readonly key: ApiKey;
  readonly secret: string;
}

const LIST_PAGE = 100;
const MAX_RETIRING = 9;

/** Stores and changes API keys. A change is seen by the next request in every process. */
export class KeyStore {
  /** The id of the key that the secret with this hash belongs to. */
  readonly findId: (hash: string) => Promise<string | undefined>;
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
    this.findId = batched(async (round) => {
      const hashes = [...new Set(round.map(({ item }) => item))];
      const entries = await store.getMany<JsonValue<string>>(hashes.map(secretRow));
      const ids = new Map(hashes.map((hash, index) => {
        const entry = entries[index];
        return [hash, entry ? decodeJson(entry.value) : undefined];
      }));
      for (const { item, resolve } of round) resolve(ids.get(item));
    });
  }

  /**
   * Makes and stores a key.
   *
   * @throws {StoreUnavailable}
   */
  async create({ account, plan, limits, environment }: NewKey, now: number): Promise<IssuedKey> {
    const secret = createSecret(environment);
    const hash = hashSecret(secret);
    const id = `key_${randomBase62(16)}`;
    const secrets = [{ hash }];
    const key: ApiKey = { id, account, environment, plan, limits, createdAt: now, secrets };
    await retried(() =>
      this.#store.commit(`key/${id}`, (operation) => {
        operation.check({ key: keyRow(id), versionstamp: null });
        operation.set(keyRow(id), encodeJson(key));
        operation.set(usageRow(id), encodeJson(UNUSED));
        operation.set(secretRow(hash), encodeJson(id));
      })
    );
    return { key, secret };
  }

  /** The key, if there is one with this id. */
  async find(id: string): Promise<KeyState | undefined> {
    const [rows] = await readKeyRows(this.#store, [id]);
    return rows && { ...rows.key.value, usage: rows.usage.value };
  }

  /** Every key, in the order of ids. */
  async *list(): AsyncGenerator<KeyState> {
    let start: Deno.KvKey = keyRow("");
    while (true) {
      const keys = await this.#store.list({ start, end: keyRow("~") }, LIST_PAGE);
      const ids = keys.map(({ key }) => String(key.at(-1)));
      for (const rows of await readKeyRows(this.#store, ids)) {
        if (rows) yield { ...rows.key.value, usage: rows.usage.value };
      }
      const last = ids.at(-1);
      if (last === undefined) return;
      start = keyRow(`${last}\0`);
    }
  }

  /** Gives the key a new secret; its secrets until now stay valid for `grace` ms more. */
  async rotate(id: string, grace: number, now: number): Promise<IssuedKey | undefined> {
    const current = await this.find(id);
    if (current === undefined) return undefined;
    const secret = createSecret(current.environment);
    const hash = hashSecret(secret);
    const key = await this.#changeValid(
      id,
      (key) => ({ ...key, secrets: [...retire(key, now + grace, now), { hash }] }),
      hash,
    );
    return key && { key, secret };
  }

  /** Ends the key for good. */
  revoke(id: string, now: number): Promise<ApiKey | undefined> {
    return this.#changeValid(id, (key) => ({ ...key, revokedAt: now }));
  }

  /** Moves the key to another plan; what it has used in the running windows stays counted. */
  setPlan(id: string, plan: Plan, limits: Limits): Promise<ApiKey | undefined> {
    return this.#changeValid(id, (key) => ({ ...key, plan, limits }));
  }

  /** Ends the key's ban and forgets its strikes. */
  unban(id: string): Promise<ApiKey | undefined> {
    return this.#changeValid(id, ({ usage, ...key }) => ({ ...key, usage: pardon(usage) }));
  }

  /** Stores the changed key, and its new secret's row if it got one. Undefined when no valid key has the id. */
  async #changeValid(
    id: string,
    change: (state: KeyState) => KeyState,
    newHash?: string,
  ): Promise<ApiKey | undefined> {
    const { changed } = await retried(async () => {
      const [rows] = await readKeyRows(this.#store, [id]);
      if (rows === undefined || rows.key.value.revokedAt !== undefined) return { changed: undefined };
      const { usage, ...changed } = change({ ...rows.key.value, usage: rows.usage.value });
      const versionstamp = await this.#store.commit(`key/${id}`, (operation) => {
        operation.check(rows.key, rows.usage);
        operation.set(rows.key.key, encodeJson(changed)).set(rows.usage.key, encodeJson(usage));
        if (newHash !== undefined) operation.set(secretRow(newHash), encodeJson(id));
      });
      return versionstamp === undefined ? undefined : { changed };
    });
    return changed;
  }
}

/** The newest of the secrets still valid, none beyond `end`; the row has to stay small. */
function retire({ secrets }: ApiKey, end: number, now: number): ApiKey["secrets"] {
  return secrets
    .map(({ hash, expiresAt = Infinity }) => ({ hash, expiresAt: Math.min(expiresAt, end) }))
    .filter(({ expiresAt }) => expiresAt > now)
    .slice(-MAX_RETIRING);
}
