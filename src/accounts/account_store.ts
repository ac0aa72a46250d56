import { DAY, dayOf } from "../base/mod.ts";
import {
  CorruptRow,
  type Decided,
  decodeJson,
  encodeJson,
  type Entry,
  type Rows,
  type Store,
  type Transaction,
  type VersionRow,
  type Write,
} from "../engine/mod.ts";
import {
  changeLimits,
  DAYS_KEPT,
  type DayTotal,
  dayTotalKey,
  decodeState,
  encodeUsage,
  type HolderState,
  isSameLimits,
  pastDay,
  readDayTotals,
  stateKeys,
  UNUSED,
  type Usage,
  usageKey,
} from "../limits/mod.ts";
import type { ErrorKind } from "../web/mod.ts";
import { type Environment, insufficientScope, randomBase62 } from "../service/mod.ts";
import type { Owners } from "../resource/mod.ts";
import {
  type Account,
  ACCOUNT_NOT_FOUND,
  AccountExists,
  accountKey,
  accountNotFound,
  ACCOUNTS,
  apiKeyKey,
  countAddition,
  countRotation,
  decodeAccount,
  hasKey,
  type Issued,
  referenceKey,
  signUpKey,
} from "./account.ts";
import {
  type AddedKey,
  addedKeysOf,
  isFirstKey,
  keyHashesOf,
  validKeysOf,
  withAddedKeys,
  withKey,
  withoutKey,
} from "./added_keys.ts";
import { hashApiKey, type KeyForm } from "./api_key.ts";

/** An account and its usage, with their rows. */
export type AccountState = HolderState<Account>;

/** Some accounts, in the order of their IDs. */
export interface AccountPage {
  readonly states: readonly AccountState[];
  /** ID of the last account that was read, if there may be more. */
  readonly next: string | undefined;
}

/** Options of an {@linkcode AccountStore}. */
export interface AccountStoreOptions {
  /** Environment for new accounts. */
  readonly environment: Environment;
  readonly keys: KeyForm;
  /** The usage of an account as it is shown; by default the stored one. */
  readonly usageOf?: ((state: AccountState) => Usage) | undefined;
  /** Called with each account that a page leaves out. */
  readonly report?: (fault: CorruptRow) => void;
}

/** An account before and after a change. */
export interface AccountChange {
  readonly before: Account;
  readonly after: Account;
}

/** A reference that an account gets. */
export interface Claim {
  readonly reference?: string | undefined;
  /** The ID of an account that had the reference and has been removed. */
  readonly gone?: string | undefined;
}

/** An account with a new first key, which is not stored, and how many of its added keys that has ended. */
export interface Rotated extends Issued {
  readonly endedKeys: number;
}

/** The data for a key that is added to an account. */
export type NewKey = Pick<AddedKey, "label" | "scope" | "collections" | "expiresAt">;

/** A key that was added to an account. The API key is not stored. */
export interface Added {
  readonly key: AddedKey;
  readonly apiKey: string;
}

/** The data for a new account. */
export type NewAccount = Pick<Account, "name" | "plan" | "limits" | "signedUp" | "reference">;

/** What an optional part adds to the removal of an account. */
export interface Removal {
  /** Errors of `extend`. */
  readonly errors: readonly ErrorKind[];
  /** Extends the transaction that removes an account, or makes it throw an ApiError. */
  readonly extend: <Result extends Decided>(
    accountId: string,
    removal: Transaction<Result>,
  ) => Transaction<Result>;
}

/** Maximum number of accounts whose environments are read. */
export const ENVIRONMENTS_READ = 100;

/** The environments of the first accounts in a store. */
export async function environmentsIn(store: Store): Promise<ReadonlySet<Environment>> {
  const accounts = await store.list({ start: accountKey(""), end: accountKey("~") }, ENVIRONMENTS_READ);
  return new Set(accounts.map((entry) => decodeAccount(entry).environment));
}

/** The warning that the first accounts are all of the other environment; undefined if there are none, or not all are. */
export function foreignWarning(
  environments: ReadonlySet<Environment>,
  environment: Environment,
): string | undefined {
  if (environments.size === 0 || environments.has(environment)) return undefined;
  return `Warning: none of the first ${ENVIRONMENTS_READ} accounts belongs to the environment ${environment}, so ` +
    "their API keys are not valid here. Is ENVIRONMENT right?";
}

/**
 * Accounts, and transactions that change them. Methods that read throw StoreUnavailable if KV fails.
 */
export class AccountStore {
  readonly #store: Store;
  readonly #version: VersionRow;
  readonly #environment: Environment;
  readonly #keys: KeyForm;
  readonly #usageOf: (state: AccountState) => Usage;
  readonly #report: (fault: CorruptRow) => void;

  /**
   * Transactions that change or remove an account bump `version`. New accounts do not, because no process has cached
   * them.
   */
  constructor(
    store: Store,
    version: VersionRow,
    { environment, keys, usageOf = ({ usage }) => usage, report = () => {} }: AccountStoreOptions,
  ) {
    this.#store = store;
    this.#version = version;
    this.#environment = environment;
    this.#keys = keys;
    this.#usageOf = usageOf;
    this.#report = report;
  }

  /**
   * Creates an account with a key. The transaction throws AccountExists if another account has its reference, except
   * `gone`, the ID of an account that has been removed.
   */
  creating(newAccount: NewAccount, now: number, gone?: string): Transaction<Issued> {
    const environment = this.#environment;
    const apiKey = this.#keys.create(environment);
    const id = `acct_${randomBase62(16)}`;
    const account: Account = {
      id,
      ...newAccount,
      environment,
      createdAt: now,
      suspendedAt: null,
      closedAt: null,
      keyHash: hashApiKey(apiKey),
      previousKey: null,
    };
    const { reference } = newAccount;
    const reads = reference === undefined ? [] : [referenceKey(reference)];
    return {
      reads,
      decide(rows, write) {
        if (reference !== undefined) claim(reference, { id, gone }, rows, write);
        write.set(accountKey(id), encodeJson(account));
        write.set(usageKey(id), encodeUsage(UNUSED));
        write.set(apiKeyKey(account.keyHash), encodeJson(id));
        return { account, apiKey };
      },
    };
  }

  /** Reads an account and its usage; null if no account has this ID. */
  async find(id: string): Promise<AccountState | null> {
    return this.#decode(id, await this.#store.getMany(stateKeys(ACCOUNTS, id))) ?? null;
  }

  /** Reads the account with this reference, if there is one. */
  async pageOf(reference: string): Promise<AccountPage> {
    const id = ownerIn(await this.#store.get(referenceKey(reference)));
    const state = id === undefined ? null : await this.find(id);
    return { states: state ? [state] : [], next: undefined };
  }

  /** Requests of an account per day (UTC), for the last `count` days, starting with today. */
  async usagePerDay(
    { holder: { id }, usage }: Pick<AccountState, "holder" | "usage">,
    count: number,
    now: number,
  ): Promise<({ readonly date: string } & DayTotal)[]> {
    const totals = await readDayTotals(this.#store, { id, usage }, count, now);
    return totals.map(({ admitted, refused }, ago) => ({
      date: new Date(now - ago * DAY).toISOString().slice(0, 10),
      admitted,
      refused,
    }));
  }

  /** Reads `size` accounts, in the order of their IDs, from the first one after `after`. Leaves out unreadable ones. */
  async page(after: string | undefined, size: number): Promise<AccountPage> {
    const start = after === undefined ? accountKey("") : [...accountKey(after), ""];
    const accounts = await this.#store.list({ start, end: accountKey("~") }, size);
    const ids = accounts.map(({ key }) => String(key.at(-1)));
    const usages = await this.#store.getMany(ids.map(usageKey));
    const states = accounts.map((account, index) => {
      const id = ids[index] ?? "";
      try {
        return this.#decode(id, [account, usages[index] ?? null]);
      } catch (error) {
        if (!(error instanceof CorruptRow)) throw error;
        this.#report(new CorruptRow(`The account ${id} cannot be read: ${error.message}`));
        return undefined;
      }
    });
    return {
      states: states.filter((state) => state !== undefined),
      next: accounts.length === size ? ids.at(-1) : undefined,
    };
  }

  /**
   * Gives an open account a new first key. The key with the hash `replaced`, by default the latest, stays valid for
   * `grace` ms. If that is 0, every other key stops working; otherwise, added keys stay. A client that never received
   * its new key can ask again and keep using the key it has. The result is null if no open account has this ID, or if
   * the replaced key is not valid at `now` or is an added one. Only clients' rotations pass `replaced`. With it, the
   * transaction can throw the ApiError `rotation_limit`.
   */
  rotating(id: string, grace: number, now: number, replaced?: string): Transaction<Rotated | null> {
    const apiKeyIn = this.#newApiKeys();
    return this.#ofOpen(id, (before, write) => {
      const hash = replaced ?? before.keyHash;
      if (!isFirstKey(before, hash, now)) return null;
      const apiKey = apiKeyIn(before.environment);
      const rotated = {
        ...before,
        keyHash: hashApiKey(apiKey),
        previousKey: grace > 0 ? { hash, expiresAt: now + grace } : null,
        ...(replaced === undefined ? {} : { rotations: countRotation(before.rotations, now) }),
      };
      const kept = grace > 0 ? addedKeysOf(before) : [];
      const account = before.addedKeys ? withAddedKeys(rotated, kept) : rotated;
      this.#putKeys(before, account, write);
      return { account, apiKey, endedKeys: grace > 0 ? 0 : validKeysOf(before, now).length };
    });
  }

  /**
   * Adds a key to an open account. The result is null if no open account has this ID, or if the key with the hash `by`
   * is not valid at `now`. Only clients pass `by`. The transaction throws the ApiErrors of {@linkcode withKey}, and with
   * `by` also `key_scope`, unless that is the first key, and `key_additions_limit`.
   */
  addingKey(id: string, newKey: NewKey, now: number, by?: string): Transaction<Added | null> {
    const apiKeyIn = this.#newApiKeys();
    const keyId = `key_${randomBase62(16)}`;
    return this.#ofOpen(id, (before, write) => {
      if (by !== undefined && !hasKey(before, by, now)) return null;
      if (by !== undefined && by !== before.keyHash) {
        throw insufficientScope(
          "Only the first key of the account can do this, and not the key that it replaces.",
        );
      }
      const apiKey = apiKeyIn(before.environment);
      const key: AddedKey = { id: keyId, ...newKey, hash: hashApiKey(apiKey), createdAt: now };
      const after = withAddedKeys(before, withKey(before, key, now));
      const counted = by === undefined ? {} : { keyAdditions: countAddition(before.keyAdditions, now) };
      this.#putKeys(before, { ...after, ...counted }, write);
      // An account for which an operator has added a key stays, even if it never sends a request.
      if (by === undefined && before.signedUp) write.delete(signUpKey(before.createdAt, id));
      return { key, apiKey };
    });
  }

  /**
   * Revokes an added key of an open account. The result is null if no open account has this ID, or if the key with the
   * hash `by` is not valid at `now` or is an added one. Only clients pass `by`. The transaction throws the ApiError
   * `key_not_found` if there is no such key.
   */
  revokingKey(id: string, keyId: string, now: number, by?: string): Transaction<Account | null> {
    return this.#ofOpen(id, (before, write) => {
      if (by !== undefined && !isFirstKey(before, by, now)) return null;
      const after = withAddedKeys(before, withoutKey(before, keyId));
      this.#putKeys(before, after, write);
      return after;
    });
  }

  /**
   * Changes an open account. The result is null if no open account has this ID. If the account may get a `reference`, it
   * is named here. The transaction then throws AccountExists as `creating` does.
   */
  changing(
    id: string,
    change: (before: Account) => Partial<Account>,
    { reference, gone }: Claim = {},
  ): Transaction<AccountChange | null> {
    return this.#ofState(id, ({ holder: before, usage }, write, rows) => {
      if (before.closedAt !== null) return null;
      const after = { ...before, ...change(before) };
      if (JSON.stringify(after) === JSON.stringify(before)) return { before, after };
      if (reference !== undefined && before.reference !== reference) {
        claim(reference, { id, gone }, rows, write);
        if (before.reference !== undefined) write.delete(referenceKey(before.reference));
      }
      if (!isSameLimits(after.limits, before.limits)) {
        write.set(usageKey(id), encodeUsage(changeLimits(usage, after.limits)));
      }
      this.#put(after, write);
      return { before, after };
    }, reference === undefined ? [] : [referenceKey(reference)]);
  }

  /**
   * Changes the usage of an open account, for an operator. The result is the account and its usage afterwards; null if
   * no open account has this ID. The account's row is written, too, so that processes with leases for the account
   * notice.
   */
  changingUsage(
    id: string,
    change: (usage: Usage) => Usage,
  ): Transaction<Pick<AccountState, "holder" | "usage"> | null> {
    return this.#ofState(id, (before, write) => {
      if (before.holder.closedAt !== null) return null;
      const usage = change(before.usage);
      const past = pastDay(before.usage, usage);
      this.#put(before.holder, write);
      write.set(usageKey(id), encodeUsage(usage));
      if (past) write.set(dayTotalKey(past.day, id), encodeJson(past.total));
      return { holder: before.holder, usage };
    });
  }

  /**
   * Removes an account and the rows that belong only to it, if `condition` allows it and the row `required`, if given, is
   * there. The result is whether it was removed; null if no account has this ID.
   */
  removing(
    { id, reference }: Pick<Account, "id" | "reference">,
    condition: (state: AccountState) => boolean,
    required?: Deno.KvKey,
  ): Transaction<boolean | null> {
    const references = reference === undefined ? [] : [referenceKey(reference)];
    return this.#ofState(id, (before, write, rows) => {
      if (!condition(before) || (required && rows.get(required) === null)) return false;
      const day = dayOf(before.usage.minute);
      for (const key of [accountKey(id), usageKey(id), ...references]) write.delete(key);
      for (const hash of keyHashesOf(before.holder)) write.delete(apiKeyKey(hash));
      for (let ago = 0; ago <= DAYS_KEPT; ago++) write.delete(dayTotalKey(day - ago, id));
      write.bump(this.#version);
      return true;
    }, [...references, ...(required ? [required] : [])]);
  }

  /** A transaction on an open account; null if no open account has this ID. */
  #ofOpen<Result extends Decided>(
    id: string,
    decide: (account: Account, write: Write) => Result,
  ): Transaction<Result | null> {
    const key = accountKey(id);
    return {
      reads: [key],
      decide(rows, write) {
        const entry = rows.get(key);
        const account = entry && decodeAccount(entry);
        return account?.closedAt === null ? decide(account, write) : null;
      },
    };
  }

  /** A transaction on an account, its usage and `others`; null if no account has this ID. */
  #ofState<Result extends Decided>(
    id: string,
    decide: (state: AccountState, write: Write, rows: Rows) => Result,
    others: readonly Deno.KvKey[] = [],
  ): Transaction<Result | null> {
    const keys = stateKeys(ACCOUNTS, id);
    return {
      reads: [...keys, ...others],
      decide(rows, write) {
        const state = decodeState(ACCOUNTS, id, keys.map((key) => rows.get(key)));
        return state ? decide(state, write, rows) : null;
      },
    };
  }

  /** Decodes an account's rows, with the usage as it is shown; undefined if there is no account. */
  #decode(id: string, rows: readonly (Entry | null)[]): AccountState | undefined {
    const state = decodeState(ACCOUNTS, id, rows);
    return state && { ...state, usage: this.#usageOf(state) };
  }

  /** Returns a function for a new API key of an environment. It is pure, because a transaction may call it again. */
  #newApiKeys(): (environment: Environment) => string {
    const keys = { production: this.#keys.create("production"), staging: this.#keys.create("staging") };
    return (environment) => keys[environment];
  }

  /** Writes an account whose keys have changed, and the rows of its keys. */
  #putKeys(before: Account, after: Account, write: Write): void {
    this.#put(after, write);
    const [old, present] = [new Set(keyHashesOf(before)), new Set(keyHashesOf(after))];
    for (const hash of present.difference(old)) write.set(apiKeyKey(hash), encodeJson(after.id));
    for (const hash of old.difference(present)) write.delete(apiKeyKey(hash));
  }

  #put(account: Account, write: Write): void {
    write.set(accountKey(account.id), encodeJson(account));
    write.bump(this.#version);
  }
}

/** What operators' operations on items need to know about accounts. */
export const OWNERS: Owners = { notFound: ACCOUNT_NOT_FOUND, addingFor };

/**
 * Extends a transaction that adds something for an account: it throws the ApiError `account_not_found` unless an open
 * account has this ID. From then on, the account stays even if it never sends a request.
 */
function addingFor<Result extends Decided>(
  id: string,
  transaction: Transaction<Result>,
): Transaction<Result> {
  const key = accountKey(id);
  return {
    ...transaction,
    reads: [key, ...transaction.reads ?? []],
    decide(rows, write, now) {
      const row = rows.get(key);
      const account = row && decodeAccount(row);
      if (account?.closedAt !== null) throw accountNotFound(id, "open ");
      if (account.signedUp) write.delete(signUpKey(account.createdAt, id));
      return transaction.decide(rows, write, now);
    },
  };
}

/**
 * Gives a reference to the account `id`.
 *
 * @throws {AccountExists} if another account has it, except `gone`.
 */
function claim(
  reference: string,
  { id, gone }: Pick<Claim, "gone"> & Pick<Account, "id">,
  rows: Rows,
  write: Write,
): void {
  const key = referenceKey(reference);
  const owner = ownerIn(rows.get(key));
  if (owner !== undefined && owner !== gone) throw new AccountExists(owner);
  write.set(key, encodeJson(id));
}

/** The ID of the account that has a reference. */
function ownerIn(row: Entry | null): string | undefined {
  return row ? decodeJson<string>(row) : undefined;
}
