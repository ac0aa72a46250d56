import type { Decided, Transaction } from "../engine/mod.ts";
import { IDEMPOTENCY_KEY } from "../web/headers.ts";
import {
  ApiError,
  createResponse,
  type ErrorKind,
  ERRORS,
  invalidRequest,
  NO_STORE,
  operation,
  valueResponse,
} from "../web/mod.ts";
import {
  integer,
  type JsonObject,
  list,
  type Members,
  named,
  object,
  optional,
  output,
  type Schema,
  stringifyJson,
  text,
} from "../web/schema.ts";
import { ACCESS, type Call, EXAMPLE_ACCOUNT_ID, type Operation } from "../service/mod.ts";
import { createOnce, REPLAYED } from "./create_once.ts";
import type { Item } from "./hook.ts";
import type { Items } from "./items.ts";
import type { Added } from "./items_in.ts";
import { filterParameters, orderParameters, queryTextOf, requireOneOrder } from "./list_parameters.ts";
import type { ItemOrder } from "./order.ts";
import { patched, patchOf } from "./patch.ts";
import type { Resource } from "./resource.ts";
import type { Owned } from "./stored_item.ts";

/** Maximum number of items in a page. */
export const MAX_ITEMS = 500;

/** An item and the account that it belongs to. */
type OwnedItem = Item & { readonly accountId?: string };

/** The cursor of a list that is in the order of ids only. */
const CURSOR = integer(-Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, {
  description: "Where the page starts: the `cursor` in the `Link` header",
});
const ACCOUNT = { description: "The account that it belongs to" };
const ACCOUNT_ID = text({ max: 100, ...ACCOUNT });

/** Where operators' operations on a collection are, and their schemas, which have the account of each item. */
export interface OwnedSchemas {
  /** The path of the collection. */
  readonly path: string;
  readonly item: Schema<OwnedItem>;
  readonly list: Schema<readonly OwnedItem[]>;
  /** The fields of an item to add for an account or, if everyone may read it, for none. */
  readonly fields: Members;
  readonly creation: Schema<JsonObject>;
  readonly patch: Schema<JsonObject>;
}

/** What operators' operations need to know about the accounts that items belong to. */
export interface Owners {
  /** The error if there is no such account. */
  readonly notFound: ErrorKind;
  /** A transaction that first requires an open account, and keeps it from being removed as unused. */
  readonly addingFor: <Result extends Decided>(
    id: string,
    transaction: Transaction<Result>,
  ) => Transaction<Result>;
}

/** Path and schemas of operators' operations on a collection. */
export function ownedSchemasOf({ path, item, items, schemas, examples, readableBy }: Resource): OwnedSchemas {
  const { byOperators } = schemas;
  const fields = {
    ...byOperators.creation,
    accountId: readableBy === "owner" ? ACCOUNT_ID : optional(ACCOUNT_ID),
  };
  const owned = named(`Owned${item}`, output({ ...schemas.members, accountId: optional(text(ACCOUNT)) }));
  const example = { ...examples.item, accountId: EXAMPLE_ACCOUNT_ID };
  return {
    path: `/operator${path}`,
    item: owned,
    list: named(`Owned${items}`, list(owned, MAX_ITEMS)),
    fields,
    creation: named(`Owned${item}Creation`, object(fields, { examples: [example] })),
    patch: named(
      `Owned${item}Patch`,
      object({ ...byOperators.patch, accountId: optional(ACCOUNT_ID) }, byOperators.patchText),
    ),
  };
}

/** Operators' operations on the items of all accounts. */
export function ownedItemOperations(items: Items, owners: Owners): Operation[] {
  return [listItems(items), createItem(items, owners), updateItem(items), deleteItem(items)];
}

function updateItem(items: Items): Operation {
  const { resource } = items;
  const { errors, nouns: { an, one } } = resource;
  const owned = ownedSchemasOf(resource);
  return operation({
    ...ofItem(resource),
    id: `updateOwned${resource.item}`,
    method: "PATCH",
    summary: `Update ${an} of any account`,
    errors: [errors.notFound, ...items.errors.put],
    description:
      "Fields that you leave out stay as they are. An `id` is ignored, and `accountId` must be the one that the " +
      `${one} has, so that you can send back what you read.`,
    body: patchOf(owned.patch, resource.schemas.byOperators.patch),
    bodyType: "application/merge-patch+json",
    answers: { 200: { description: `The updated ${one}`, body: owned.item, headers: ["Cache-Control"] } },
  }, async ({ params: { [resource.id]: id = NaN }, body }, call: Call) => {
    const { accountId, ...change } = body.change;
    let before: Item | undefined;
    const after = await items.change(id, (owned) => {
      if (owned === null) throw notFound(resource, id);
      if (accountId !== undefined && accountId !== owned.ownerId) {
        const message = `The field accountId must be the account of the ${one}, or be left out.`;
        throw invalidRequest(message, "accountId");
      }
      before = owned.item;
      return patched(resource, owned.item, { ...body, change });
    }, call);
    if (after === null) throw notFound(resource, id);
    call.note(`${id}`);
    call.noteChange(differentIn(resource, before, after.item));
    return valueResponse<OwnedItem>(withOwner(after));
  });
}

function deleteItem(items: Items): Operation {
  const { resource } = items;
  const { errors, nouns: { an, one } } = resource;
  return operation({
    ...ofItem(resource),
    id: `deleteOwned${resource.item}`,
    method: "DELETE",
    summary: `Delete ${an} of any account`,
    description: `Also deletes ${an} that this release cannot read.`,
    confirm: `This deletes the ${one} permanently. Continue?`,
    errors: [
      errors.notFound,
      ...items.errors.delete.map((kind) => kind === errors.inUse ? errors.inUseCounted : kind),
    ],
    answers: { 204: { description: `The ${one} was deleted` } },
  }, async ({ params: { [resource.id]: id = NaN } }, call: Call) => {
    if (!await items.remove(id, call)) throw notFound(resource, id);
    call.note(`${id}`);
    return createResponse(null, { status: 204 });
  });
}

function createItem(items: Items, owners: Owners): Operation {
  const { resource } = items;
  const owned = ownedSchemasOf(resource);
  const { nouns: { an, one } } = resource;
  const id = `createOwned${resource.item}`;
  return operation({
    ...commonOf(resource),
    id,
    method: "POST",
    path: owned.path,
    summary: `Add ${an} for any account`,
    description: resource.readableBy === "owner"
      ? `Adds ${an} that only the account can see.`
      : `Adds ${an}. Without \`accountId\`, it belongs to no account.`,
    headers: { "Idempotency-Key": IDEMPOTENCY_KEY },
    body: owned.creation,
    answers: {
      201: {
        description: `The created ${one}`,
        body: owned.item,
        headers: ["Location", "Cache-Control", "Idempotency-Replayed"],
        paths: { Location: `${owned.path}/1` },
      },
    },
    errors: [ERRORS.idempotency_key_reused, owners.notFound, ...items.errors.put],
  }, async ({ headers, body, bytes }, call: Call) => {
    const { accountId, ...fields } = body;
    const ownerId = typeof accountId === "string" ? accountId : "";
    const creation = items.adding(fields, call.acting, ownerId);
    const response = await createOnce<Added>(headers["Idempotency-Key"], call, {
      ...{ operation: id, bytes, body, fields: owned.fields },
      creation: ownerId === "" ? creation : owners.addingFor(ownerId, creation),
      reply({ item }) {
        const location = `${call.base}${owned.path}/${item.id}`;
        const body = stringifyJson(withOwner({ item, ownerId }));
        return { status: 201, headers: { ...NO_STORE, location }, body };
      },
    });
    const [itemId = ""] = /\d+$/.exec(response.headers.get("location") ?? "") ?? [];
    for (const known of [itemId, ownerId]) if (known !== "") call.note(known);
    if (!response.headers.has(REPLAYED)) call.noteChange(Object.keys(fields));
    return response;
  });
}

function listItems(items: Items): Operation {
  const { resource } = items;
  const { path, list: page } = ownedSchemasOf(resource);
  const { many } = resource.nouns;
  const after = (cursor: ItemOrder["cursor"], query: JsonObject & ItemOrder) =>
    resource.sorts.length > 0
      ? queryTextOf(resource, { ...query, cursor })
      : `${queryTextOf(resource, { ...query, sort: undefined, cursor: undefined })}&cursor=${cursor}`;
  return operation({
    ...commonOf(resource),
    id: `listOwned${resource.items}`,
    method: "GET",
    path,
    summary: `List ${many} with their owners`,
    query: {
      limit: optional(integer(1, MAX_ITEMS, { description: `Maximum number of ${many} returned` }), 100),
      ...selectionOf(resource),
    },
    answers: {
      200: {
        description: `A page of ${many}`,
        body: page,
        headers: ["Link", "Cache-Control"],
      },
    },
  }, async ({ query }) => {
    requireOneOrder(resource, query);
    const { limit } = query;
    const { items: some, next } = await items.listOwned(limit, query);
    const headers = next === undefined
      ? {}
      : { link: `<${path}?limit=${limit}${after(next, query)}>; rel="next"` };
    return valueResponse<readonly OwnedItem[]>(some.map(withOwner), { headers });
  });
}

/** The parameters that select items of a list, and their order. */
export function selectionOf(resource: Resource) {
  return { ...filterParameters(resource, resource.operatorsFilters), ...orderParameters(resource, CURSOR) };
}

function commonOf({ tag }: Resource) {
  return { access: ACCESS.operator, tag, timeoutMs: 30_000 } as const;
}

function ofItem(resource: Resource) {
  const { id } = resource;
  return {
    ...commonOf(resource),
    path: `${ownedSchemasOf(resource).path}/{${id}}`,
    params: { [id]: integer(1, Number.MAX_SAFE_INTEGER) },
  } as const;
}

function notFound({ errors, nouns: { one } }: Resource, id: number): ApiError {
  return new ApiError(errors.notFound, `There is no ${one} with the id ${id}.`);
}

/** The names of the fields whose values differ. The log has no values of items. */
function differentIn({ fields }: Resource, before: Item | undefined, after: Item): readonly string[] {
  return Object.keys(fields).filter((name) => stringifyJson(before?.[name]) !== stringifyJson(after[name]));
}

function withOwner({ item, ownerId }: Owned): OwnedItem {
  return ownerId === "" ? item : { ...item, accountId: ownerId };
}
