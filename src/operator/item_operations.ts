import { ApiError, createResponse, operation } from "../web/mod.ts";
import { answer, integer, list, named, optional, type Schema, text } from "../web/schema.ts";
import {
  ACCESS,
  type Call,
  cursorAfter,
  type Item,
  type Items,
  type Operation,
  type Owned,
  requireOneOrder,
  type Resource,
  SORT,
} from "../resource/mod.ts";
import { shown } from "../accounts/account_view.ts";

/** Maximum number of items in a page. */
export const MAX_ITEMS = 500;

/** An item and the account that added it. */
type OwnedItem = Item & { readonly accountId: string };

/** Path of the items of all accounts. */
export function pathOf({ path }: Resource): string {
  return `/operator${path}`;
}

/** The schema of an item with the account that added it. */
export function ownedItemOf({ item, schemas }: Resource): Schema<OwnedItem> {
  return named(`Owned${item}`, answer({ ...schemas.members, accountId: text() }));
}

/** The schema of a page of items with their accounts. */
export function ownedItemsOf(resource: Resource): Schema<readonly OwnedItem[]> {
  return named(`Owned${resource.items}`, list(ownedItemOf(resource), MAX_ITEMS));
}

/** Operators' operations on the items of all accounts. */
export function ownedItemOperations(items: Items): Operation[] {
  const { resource } = items;
  const { schemas, errors, nouns: { an, one } } = resource;
  const owned = ownedItemOf(resource);
  const ofItem = {
    ...commonOf(resource),
    path: `${pathOf(resource)}/{${resource.id}}`,
    params: { [resource.id]: integer(1, Number.MAX_SAFE_INTEGER) },
    errors: [errors.notFound],
  } as const;

  const updateItem = operation({
    ...ofItem,
    id: `updateOwned${resource.item}`,
    method: "PATCH",
    summary: `Update ${an} of any account`,
    body: schemas.patch,
    bodyType: "application/merge-patch+json",
    answers: { 200: { description: `The updated ${one}`, body: owned, headers: ["Cache-Control"] } },
  }, async ({ params: { [resource.id]: id = NaN }, body }, { transact, note }: Call) => {
    const changed = await transact(
      items.changing(id, (owned) => resource.changed(found(owned, id).item, body)),
    );
    note(`${id}`);
    return shown<typeof owned>(withOwner(found(changed, id)));
  });

  const deleteItem = operation({
    ...ofItem,
    id: `deleteOwned${resource.item}`,
    method: "DELETE",
    summary: `Delete ${an} of any account`,
    answers: { 204: { description: `The ${one} was deleted` } },
  }, async ({ params: { [resource.id]: id = NaN } }, { transact, note }: Call) => {
    await transact(items.changing(id, (owned) => (found(owned, id), null)));
    note(`${id}`);
    return createResponse(null, { status: 204 });
  });

  function found(owned: Owned | null, id: number): Owned {
    if (owned === null) throw new ApiError(errors.notFound, `There is no ${one} with the id ${id}.`);
    return owned;
  }

  return [listItems(items), updateItem, deleteItem];
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
      sort: optional(SORT),
      cursor: optional(integer(-Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, {
        description: "Where the page starts: the `cursor` in the `Link` header",
      })),
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
    const some = await items.listOwned(limit, query);
    const last = some.length === limit ? some.at(-1)?.item.id : undefined;
    const headers = last === undefined
      ? {}
      : { link: `<${path}?limit=${limit}&cursor=${cursorAfter(last, query)}>; rel="next"` };
    return shown<Schema<readonly OwnedItem[]>>(some.map(withOwner), 200, headers);
  });
}

function commonOf({ tag }: Resource) {
  return { access: ACCESS.operator, tag, timeoutMs: 30_000 } as const;
}

function withOwner({ item, ownerId }: Owned): OwnedItem {
  return { ...item, accountId: ownerId };
}
