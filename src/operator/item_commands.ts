import {
  Invalid,
  type JsonObject,
  type Members,
  object,
  resolved,
  type Schema,
  stringifyJson,
} from "../web/schema.ts";
import {
  type Catalogue,
  check,
  type Item,
  MAX_ITEMS,
  ownedSchemasOf,
  queryTextOf,
  rebuild,
  type Resource,
  selectionOf,
} from "../resource/mod.ts";
import { type Client, onClient, type Target } from "./client.ts";
import {
  type Arguments,
  type Command,
  type CommandGroup,
  type Option,
  parseCount,
  UsageError,
} from "./command_line.ts";
import { type Columns, printableJson, startTable } from "./table.ts";

/** The option of an Idempotency-Key. */
const KEY = "idempotency-key";
const EITHER = new Intl.ListFormat("en-GB", { type: "disjunction" });

/** Commands on the items of all collections, such as `items toys list`. */
export function itemCommands(catalogue: Pick<Catalogue, "title" | "resources">): CommandGroup<Target> {
  const commands = catalogue.resources.flatMap((resource) => [
    ...Object.entries(onClient(commandsOn(resource))),
    ...Object.entries(commandsOnStore(catalogue, resource)),
  ]);
  return { name: "items", commands: Object.fromEntries(commands) };
}

/** The commands on a collection. Each name begins with that of the collection. */
function commandsOn(resource: Resource): Readonly<Record<string, Command<Client>>> {
  const { name, fields, sorts, operatorsFilters, readableBy, nouns: { an, one, many } } = resource;
  const { cursor: _, ...parameters } = selectionOf(resource);
  const isSelected = sorts.length + operatorsFilters.length > 0;
  const selection: Members = isSelected ? parameters : {};
  const { path, ...owned } = ownedSchemasOf(resource);
  const names = Object.keys(fields);
  const [signed] = Object.entries(fields).find(([, schema]) => canBeNegative(schema)) ?? [];
  const negative = signed === undefined ? "" : `; if N is negative, write --${optionOf(signed)}=-5`;
  return {
    [`${name} list`]: {
      options: { json: {}, ...optionsOf(selection) },
      help: `list all ${many}${isSelected ? ", or those that options select" : ""}: id, ${
        names.join(", ")
      }, the account that added each${
        sorts.map((field) => `; for descending order, write --sort=-${field}`).join("")
      }`,
      prepare({ options }, io) {
        const query = queryTextOf(resource, parseFields(selection, object(selection), options));
        return async (client) => {
          const all = await client.list(`${path}?limit=${MAX_ITEMS}${query}`, owned.list);
          const write = startTable(columnsOf(["id", ...names, "accountId"]), options.has("json"), io);
          for await (const item of all) await write(item);
        };
      },
    },
    [`${name} add`]: {
      options: { ...optionsOf(owned.fields), [KEY]: { value: "KEY" } },
      help:
        `add ${an} for an account${readableBy === "owner" ? "" : " or, without --account-id, for none"}; ` +
        `with the same --${KEY}, it is safe to repeat${negative}`,
      prepare({ options }, { out }) {
        const body = parseFields(owned.fields, owned.creation, options);
        const [key] = options.get(KEY) ?? [];
        const headers = key === undefined ? {} : { "idempotency-key": key };
        return async (client) => {
          const added = await client.call("POST", path, owned.item, body, headers);
          await out(printableJson(stringifyJson(added)));
        };
      },
    },
    [`${name} set`]: setCommand(resource, negative),
    [`${name} delete`]: {
      words: ["ID"],
      help: `delete ${an} of any account`,
      prepare({ words }, { err }) {
        const id = parseCount("ID", words[0]);
        return async (client) => {
          await client.send("DELETE", `${path}/${id}`);
          err(`Deleted: ${one} ${id}.`);
        };
      },
    },
  };
}

/** The command that changes an item. `note` follows its help. */
function setCommand(resource: Resource, note: string): Command<Client> {
  const { schemas: { byOperators: { creation: fields } }, nouns: { an } } = resource;
  const owned = ownedSchemasOf(resource);
  return {
    words: ["ID"],
    options: optionsOf(fields),
    help: `update ${an} of any account${note}`,
    prepare({ name, words, options }, { out }) {
      const target = `${owned.path}/${parseCount("ID", words[0])}`;
      if (options.size === 0) {
        const names = Object.keys(optionsOf(fields)).map((option) => `--${option}`);
        throw new UsageError(`${name} needs ${EITHER.format(names)}`);
      }
      const patch = parseFields(fields, owned.patch, options);
      return async (client) => {
        const { accountId: _, ...item } = await client.call("PATCH", target, owned.item, patch);
        await out(printableJson(stringifyJson(item)));
      };
    },
  };
}

/** The commands that read a whole collection, in the store itself. */
function commandsOnStore(
  catalogue: Pick<Catalogue, "title" | "resources">,
  resource: Resource,
): Readonly<Record<string, Command<Target>>> {
  const { name, nouns: { many } } = resource;
  return {
    [`${name} check`]: {
      help:
        `read all ${many}, and print a line for each that this release cannot read; exits with 1 if there are any; ` +
        "not with SERVICE_URL",
      prepare: (_, { out, err }) => ({ store }) =>
        check(resource, { catalogue, store: store(), out, notice: err }),
    },
    [`${name} rebuild`]: {
      help:
        `write all rows that are derived from ${many} again, after their declaration has changed; first stop every ` +
        "process of the service; not with SERVICE_URL",
      prepare: (_, { clock, err }) => ({ store }) =>
        rebuild(resource, { catalogue, store: store(), clock, notice: err }),
    },
  };
}

function columnsOf(names: readonly string[]): Columns<Item> {
  return Object.fromEntries(names.map((name) => [name, (item: Item) => item[name]]));
}

/** The options of fields that operators set. */
function optionsOf(fields: Members): Readonly<Record<string, Option>> {
  return Object.fromEntries(
    Object.entries(fields).filter(([, { isHidden = false }]) => !isHidden)
      .map(([field, schema]) => [optionOf(field), valueOf(schema)]),
  );
}

/** Parses the options of fields. @throws {UsageError} */
function parseFields(
  fields: Members,
  schema: Schema<JsonObject>,
  options: Arguments["options"],
): JsonObject {
  try {
    const members = Object.entries(fields).flatMap(([name, schema]) => {
      const texts = options.get(optionOf(name));
      return texts ? [[name, valueIn(texts, name, schema)] as const] : [];
    });
    return schema.parse(Object.fromEntries(members), "");
  } catch (error) {
    if (!(error instanceof Invalid)) throw error;
    const nameOption = (fault: string) =>
      fault.replace(/^The field (\w+)/, (_, name) => `--${optionOf(name)}`);
    throw new UsageError(error.faults.map(nameOption).join("; "));
  }
}

/** The value of a field in an option. Commands write true and false as `yes` and `no`. */
function valueIn(texts: readonly string[], name: string, schema: Schema): unknown {
  if (typeOf(schema) !== "boolean") return schema.fromStrings(texts, `--${optionOf(name)}`);
  const [text, ...more] = texts;
  if (more.length === 0 && text === "yes") return true;
  if (more.length === 0 && text === "no") return false;
  throw new UsageError(`--${optionOf(name)} must be yes or no`);
}

/** The option of a field: `category-id` for `categoryId`. */
function optionOf(field: string): string {
  return field.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

const PLACEHOLDERS: Readonly<Record<string, string>> = { integer: "N", boolean: "yes|no", object: "JSON" };

/** The value of a field's option: its choices or a placeholder. The option of a list can be repeated. */
function valueOf(schema: Schema): Option {
  const { items } = resolved(schema);
  const { enum: choices, type } = resolved(items ? { ...schema, json: items } : schema);
  return {
    value: choices?.map(String).join("|") ?? PLACEHOLDERS[String(type)] ?? "TEXT",
    ...(items && { isRepeatable: true }),
  };
}

function canBeNegative(schema: Schema): boolean {
  return typeOf(schema) === "integer" && (resolved(schema).minimum ?? -1) < 0;
}

function typeOf(schema: Schema): string {
  return String(resolved(schema).type);
}
