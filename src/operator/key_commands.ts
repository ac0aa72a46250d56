import { isValid, type Parsed } from "../web/schema.ts";
import { KEY_SCOPES } from "../service/mod.ts";
import type { Catalogue } from "../resource/mod.ts";
import { MAX_NAME_LENGTH } from "../accounts/account.ts";
import type { OperatorSchemas } from "../accounts/account_view.ts";
import { KEY_LABEL, type KeySchemas } from "../accounts/key_view.ts";
import { accountPathOf, idIn, ofAccount, parseSeconds, printApiKey } from "./account_command.ts";
import type { Client } from "./client.ts";
import { type Arguments, type Command, UsageError } from "./command_line.ts";
import { type Columns, printable, startTable } from "./table.ts";

type AddedKey = Parsed<KeySchemas["keys"]>[number];

/** Commands on the added keys of an account. */
export function keyCommands(
  catalogue: Catalogue,
  { addedKeys: { keys, created } }: OperatorSchemas,
): Readonly<Record<string, Command<Client>>> {
  return {
    keys: ofAccount({
      help: "list the keys that were added to the account: id, label, scope, collections, created, expires",
      result: keys,
      request: () => ["GET", "/keys"],
      async print(keys, io) {
        const write = startTable(COLUMNS, false, io);
        for (const key of keys) await write(key);
      },
    }),
    "add-key": addCommand(catalogue, created),
    "revoke-key": REVOKE,
  };
}

function addCommand({ resources }: Catalogue, created: KeySchemas["created"]): Command<Client> {
  const names = resources.map(({ name }) => name);
  return {
    words: ["ID", "LABEL"],
    options: {
      scope: { value: KEY_SCOPES.join("|") },
      collections: { value: "A,B" },
      expires: { value: "90d" },
    },
    help:
      `add a key to the account and print it, which is shown only once; by default its --scope is read, it is for all
      collections, and it does not expire; --collections restricts it to some of ${
        names.join(", ")
      }, and --expires (s,
      m, h or d) ends it after that time. LABEL says what it is for; no two valid keys of an account have the same`,
    prepare(args, io) {
      const [id, body] = [idIn(args), additionIn(args, names, io.clock())];
      return async (client) => {
        const key = await client.call("POST", `${accountPathOf(id)}/keys`, created, body);
        io.err(printable(`Added: ${key.id}, ${key.label}, ${key.scope}.`));
        await printApiKey(key.apiKey, `revoke it with accounts revoke-key ${id} ${key.id}.`, io);
      };
    },
  };
}

/** The body of the request for a new key. @throws {UsageError} */
function additionIn({ words: [, label = ""], options }: Arguments, names: readonly string[], now: number) {
  if (!isValid(KEY_LABEL, label)) {
    throw new UsageError(
      `The LABEL must have 1 to ${MAX_NAME_LENGTH} printable characters, not only whitespace`,
    );
  }
  const [scope, list, expires] = ["scope", "collections", "expires"].map((name) => options.get(name)?.at(-1));
  if (scope !== undefined && !KEY_SCOPES.some((known) => known === scope)) {
    throw new UsageError(`--scope must be one of ${KEY_SCOPES.join(", ")}`);
  }
  const collections = list?.split(",");
  if (collections?.some((name) => !names.includes(name))) {
    throw new UsageError(`--collections must be some of ${names.join(", ")}, separated by commas`);
  }
  const end = expires === undefined ? undefined : now + parseSeconds("--expires", expires) * 1_000;
  return {
    label,
    ...(scope && { scope }),
    ...(collections && { collections }),
    ...(end && { expiresAt: new Date(end).toISOString() }),
  };
}

const REVOKE: Command<Client> = {
  words: ["ID", "KEY_ID"],
  help: "revoke a key that was added to the account; it stops working immediately",
  prepare(args, { err }) {
    const [id, keyId = ""] = [idIn(args), args.words[1]];
    if (!/^key_\w+$/.test(keyId)) {
      throw new UsageError("The KEY_ID must be the key_... that accounts keys prints");
    }
    return async (client) => {
      await client.send("DELETE", `${accountPathOf(id)}/keys/${keyId}`);
      err(`Revoked: ${keyId} of account ${id}.`);
    };
  },
};

/** Columns of `accounts keys`. */
const COLUMNS: Columns<AddedKey> = {
  id: ({ id }) => id,
  label: ({ label }) => label,
  scope: ({ scope }) => scope,
  collections: ({ collections }) => collections?.join(","),
  created: ({ createdAt }) => createdAt,
  expires: ({ expiresAt }) => expiresAt,
};
