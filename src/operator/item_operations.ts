import { IDEMPOTENCY_KEY } from "../web/headers.ts";
import {
  ApiError,
  createResponse,
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
import { ACCESS, type Call, type Operation } from "../service/mod.ts";
import {
  type Added,
  createOnce,
  type Item,
  type Items,
  type Owned,
  patched,
  patchOf,
  requireOneOrder,
  type Resource,
  SORT,
} from "../resource/mod.ts";
import { ACCOUNT_NOT_FOUND } from "../accounts/account.ts";
import { addingFor } from "../accounts/account_store.ts";
import { EXAMPLE_ID } from "../accounts/account_view.ts";

/** Maximum number of items in a page. */
export const MAX_ITEMS = 500;

/** An item and the account that it belongs to. */
type OwnedItem = Item & { readonly accountId?: string };

const ACCOUNT_ID = text({ max: 100, description: "The account that it belongs to" });

/** Path of the items of all accounts. */
export function pathOf({ path }: Resource): string {
  return `/operator${path}`;
}

/** The schema of an item with its account. */
export function ownedItemOf({ item, schemas }: Resource): Schema<OwnedItem> {
  return named(`Owned${item}`, output({ ...schemas.members, accountId: optional(text()) }));
}

/** The fields of an item to add for an account or, if everyone may read it, for none. */
export function ownedFieldsOf({ schemas, readableBy }: Resource): Members {
  return {
    ...schemas.byOperators.creation,
    accountId: readableBy === "owner" ? ACCOUNT_ID : optional(ACCOUNT_ID),
  };
}

/** The schema of an item to add, with its account. */
export function ownedCreationOf(resource: Resource): Schema<JsonObject> {
  const { item, examples } = resource;
  return named(
    `Owned${item}Creation`,
    object(ownedFieldsOf(resource), { examples: [{ ...examples.item, accountId: EXAMPLE_ID }] }),
  );
}

/** The schema of a change to an item, with its account. */
export function ownedPatchOf({ item, schemas: { byOperators } }: Resource): Schema<JsonObject> {
  return named(
    `Owned${item}Patch`,
    object({ ...byOperators.patch, accountId: optional(ACCOUNT_ID) }, byOperators.patchText),
  );
}

/** The schema of a page of items with their accounts. */
export function ownedItemsOf(resource: Resource): Schema<readonly OwnedItem[]> {
  return named(`Owned${resource.items}`, list(ownedItemOf(resource), MAX_ITEMS));
}

/** Operators' operations on the items of all accounts. */
export function ownedItemOperations(items: Items): Operation[] {
  const { resource } = items;
  const { errors, nouns: { an, one } } = resource;
  const owned = ownedItemOf(resource);
  const ofItem = {
    ...commonOf(resource),
    path: `${pathOf(resource)}/{${resource.id}}`,
    params: { [resource.id]: integer(1, Number.MAX_SAFE_INTEGER) },
  } as const;

  const updateItem = operation({
    ...ofItem,
    id: `updateOwned${resource.item}`,
    method: "PATCH",
    summary: `Update ${an} of any account`,
    errors: [errors.notFound, ...items.errors.put],
    description:
      "Fields that you leave out stay as they are. An `id` is ignored, and `accountId` must be the one that the " +
      `${one} has, so that you can send back what you read.`,
    body: patchOf(ownedPatchOf(resource), resource.schemas.byOperators.patch),
    bodyType: "application/merge-patch+json",
    answers: { 200: { description: `The updated ${one}`, body: owned, headers: ["Cache-Control"] } },
  }, async ({ params: { [resource.id]: id = NaN }, body }, call: Call) => {
    const { accountId, ...change } = body.change;
    let before: Item | undefined;
    const changed = await items.change(id, (owned) => {
      const { item, ownerId } = found(owned, id);
      if (accountId !== undefined && accountId !== ownerId) {
        const message = `The field accountId must be the account of the ${one}, or be left out.`;
        throw invalidRequest(message, "accountId");
      }
      before = item;
      return patched(resource, item, { ...body, change });
    }, call);
    const after = found(changed, id);
    call.note(`${id}`);
    call.noteChange(differentIn(resource, before, after.item));
    return valueResponse<OwnedItem>(withOwner(after));
  });

  const deleteItem = operation({
    ...ofItem,
    id: `deleteOwned${resource.item}`,
    method: "DELETE",
    summary: `Delete ${an} of any account`,
    description: `Also deletes ${an} that this release cannot read.`,
    errors: [
      errors.notFound,
      ...items.errors.delete.map((kind) => kind === errors.inUse ? errors.inUseCounted : kind),
    ],
    answers: { 204: { description: `The ${one} was deleted` } },
  }, async ({ params: { [resource.id]: id = NaN } }, call: Call) => {
    if (!await items.remove(id, call)) throw notFound(id);
    call.note(`${id}`);
    return createResponse(null, { status: 204 });
  });

  function found(owned: Owned | null, id: number): Owned {
    if (owned === null) throw notFound(id);
    return owned;
  }

  function notFound(id: number): ApiError {
    return new ApiError(errors.notFound, `There is no ${one} with the id ${id}.`);
  }

  return [listItems(items), createItem(items), updateItem, deleteItem];
}

function createItem(items: Items): Operation {
  const { resource } = items;
  const { nouns: { an, one } } = resource;
  const id = `createOwned${resource.item}`;
  return operation({
    ...commonOf(resource),
    id,
    method: "POST",
    path: pathOf(resource),
    summary: `Add ${an} for any account`,
    description: resource.readableBy === "owner"
      ? `Adds ${an} that only the account can see.`
      : `Adds ${an}. Without \`accountId\`, it belongs to no account.`,
    headers: { "Idempotency-Key": IDEMPOTENCY_KEY },
    body: ownedCreationOf(resource),
    answers: {
      201: {
        description: `The created ${one}`,
        body: ownedItemOf(resource),
        headers: ["Location", "Cache-Control", "Idempotency-Replayed"],
        paths: { Location: `${pathOf(resource)}/1` },
      },
    },
    errors: [ERRORS.idempotency_key_reused, ACCOUNT_NOT_FOUND, ...items.errors.put],
  }, async ({ headers, body, bytes }, call: Call) => {
    const { accountId, ...fields } = body;
    const ownerId = typeof accountId === "string" ? accountId : "";
    const creation = items.adding(fields, call.acting, ownerId);
    const response = await createOnce<Added>(headers["Idempotency-Key"], call, {
      ...{ operation: id, bytes, body, fields: ownedFieldsOf(resource) },
      creation: ownerId === "" ? creation : addingFor(ownerId, creation),
      reply({ item }) {
        const location = `${call.base}${pathOf(resource)}/${item.id}`;
        const body = stringifyJson(withOwner({ item, ownerId }));
        return { status: 201, headers: { ...NO_STORE, location }, body };
      },
    });
    const [itemId = ""] = /\d+$/.exec(response.headers.get("location") ?? "") ?? [];
    for (const known of [itemId, ownerId]) if (known !== "") call.note(known);
    call.noteChange(Object.keys(fields));
    return response;
  });
}

function listItems(items: Items): Operation {
  const { resource } = items;
  const { many } = resource.nouns;
  const path = pathOf(resource);
  return operation({
    ...commonOf(resource),
    id: `listOwned${resource.items}`,
    method: "GET",
    path,
    summary: `List ${many} with their owners`,
    query: {
      limit: optional(integer(1, MAX_ITEMS, { description: `Maximum number of ${many} returned` }), 100),
      cursor: optional(integer(-Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, {
        description: "Where the page starts: the `cursor` in the `Link` header",
      })),
      sort: optional(SORT),
    },
    answers: {
      200: {
        description: `A page of ${many}`,
        body: ownedItemsOf(resource),
        headers: ["Link", "Cache-Control"],
      },
    },
  }, async ({ query }) => {
    requireOneOrder(query);
    const { limit } = query;
    const { items: some, next } = await items.listOwned(limit, query);
    const headers = next === undefined ? {} : { link: `<${path}?limit=${limit}&cursor=${next}>; rel="next"` };
    return valueResponse<readonly OwnedItem[]>(some.map(withOwner), { headers });
  });
}

function commonOf({ tag }: Resource) {
  return { access: ACCESS.operator, tag, timeoutMs: 30_000 } as const;
}

/** The names of the fields whose values differ. The log has no values of items. */
function differentIn({ fields }: Resource, before: Item | undefined, after: Item): readonly string[] {
  return Object.keys(fields).filter((name) => stringifyJson(before?.[name]) !== stringifyJson(after[name]));
}

function withOwner({ item, ownerId }: Owned): OwnedItem {
  return ownerId === "" ? item : { ...item, accountId: ownerId };
}
