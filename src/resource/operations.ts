import { whenReady } from "../base/mod.ts";
import {
  type Deprecation,
  deprecationHeaders,
  DEPRECATIONS_PATH,
  entityTags,
  IDEMPOTENCY_KEY,
  IF_NONE_MATCH,
  inWords,
  NOT_MODIFIED,
  type Preconditions,
  quickEtagOf,
  requirePreconditions,
} from "../web/headers.ts";
import { ApiError, createResponse, type ErrorKind, ERRORS, jsonResponse, operation } from "../web/mod.ts";
import { integer, optional, type Schema, stringifyJson } from "../web/schema.ts";
import { ACCESS, type Acting, type Call, type Operation } from "../service/mod.ts";
import { createOnce } from "./create_once.ts";
import type { Item } from "./hook.ts";
import type { Items } from "./items.ts";
import type { Added } from "./items_in.ts";
import { filterParameters, orderParameters, requireOneOrder } from "./list_parameters.ts";
import { Pages } from "./pages.ts";
import { patched, patchOf } from "./patch.ts";
import { MAX_PAGE, requireWriter, type Resource } from "./resource.ts";
import type { Owned } from "./stored_item.ts";

/** Options of {@linkcode itemOperations}. */
export interface ItemOperationsOptions {
  /** Prefix of URLs; undefined for relative ones. */
  readonly publicUrl: string | undefined;
  /** Maximum memory of kept responses, in bytes. */
  readonly maxBytes: number;
}

/** Clients' operations on a collection: list and get and, if accounts may write, create, update and delete. */
export function itemOperations(
  items: Items,
  { publicUrl = "", maxBytes }: ItemOperationsOptions,
): Operation[] {
  const { resource } = items;
  const deprecated = resource.get?.deprecated && {
    ...resource.get.deprecated,
    document: publicUrl + DEPRECATIONS_PATH,
    successor: publicUrl + resource.path,
  };
  const pages = new Pages(items, { maxBytes, itemHeaders: deprecated ? deprecationHeaders(deprecated) : {} });
  const [list, get] = [listItems(resource, pages), getItem(resource, pages, deprecated)];
  if (resource.writableBy === "operator") return [list, get];
  return [list, createItem(items), get, updateItem(items), deleteItem(items)];
}

function listItems(resource: Resource, pages: Pages): Operation {
  const { schemas, nouns: { many } } = resource;
  return operation(
    {
      ...ofCollection(resource),
      ...leniencyOf(resource),
      id: `list${resource.items}`,
      method: "GET",
      summary: `List ${many}`,
      description: `Returns ${whichOf(resource)} in order of id${
        resource.sorts.map((field) => `, or of \`${field}\` if \`sort\` says so`).join("")
      }. If there are more, \`Link\` with \`rel="next"\` has the next page's URL.`,
      query: {
        limit: optional(integer(1, MAX_PAGE, { description: `Maximum number of ${many} returned` }), 20),
        ...filterParameters(resource, resource.filters),
        ...orderParameters(resource),
      },
      headers: { "If-None-Match": IF_NONE_MATCH },
      answers: {
        200: {
          description: `A paginated list of ${many}`,
          body: schemas.list,
          headers: ["ETag", "Cache-Control", "Link"],
        },
        304: { ...NOT_MODIFIED, headers: ["ETag", "Cache-Control", "Link"] },
      },
    },
    ({ query, headers }, { base, accountId }: Call) => {
      requireOneOrder(resource, query);
      return whenReady(
        pages.page(query, accountId),
        (page) => page.respondTo(headers["If-None-Match"], base),
      );
    },
  );
}

function createItem(items: Items): Operation {
  const { resource } = items;
  const { path, fields, schemas, nouns: { an, one } } = resource;
  const id = `create${resource.item}`;
  return operation({
    ...ofCollection(resource),
    ...leniencyOf(resource),
    id,
    method: "POST",
    summary: `Add ${an}`,
    description: resource.readableBy === "owner"
      ? `Adds ${an} that only your account can see.`
      : `Adds ${an} to the catalogue.`,
    headers: { "Idempotency-Key": IDEMPOTENCY_KEY },
    body: schemas.creation,
    answers: {
      201: {
        description: `The created ${one}, including the assigned \`id\``,
        body: schemas.item,
        headers: ["Location", "Content-Location", "ETag", "Idempotency-Replayed"],
        paths: { "Location": `${path}/1`, "Content-Location": `${path}/1` },
      },
    },
    errors: [ERRORS.idempotency_key_reused, ...items.errors.put],
  }, async ({ headers, body, bytes }, call: Call) => {
    return await createOnce<Added>(headers["Idempotency-Key"], call, {
      ...{ operation: id, bytes, body, fields },
      creation: items.adding(body, call.acting),
      reply({ item, json }) {
        const location = `${call.base}${path}/${item.id}`;
        // The body is the content of the location (RFC 9110 section 8.7). With a head this long, Deno sends head and
        // body in one system call.
        const headers = { location, "content-location": location, etag: quickEtagOf(json) };
        return { status: 201, headers, body: json };
      },
    });
  });
}

function getItem(resource: Resource, pages: Pages, deprecated: Deprecation | undefined): Operation {
  const { schemas, errors, nouns: { an, one } } = resource;
  return operation(
    {
      ...ofItem(resource),
      ...leniencyOf(resource),
      ...deprecated && {
        deprecated,
        description: `Deprecated, and will be removed on ${
          inWords(deprecated.sunset)
        }. ${deprecated.advice} instead.`,
      },
      id: `get${resource.item}`,
      method: "GET",
      summary: `Get ${an}`,
      headers: { "If-None-Match": IF_NONE_MATCH },
      answers: {
        200: { description: `The ${one}`, body: schemas.item, headers: ["ETag", "Cache-Control"] },
        304: NOT_MODIFIED,
      },
      errors: [errors.notFound],
    },
    ({ params: { [resource.id]: id = NaN }, headers }, { accountId }: Call) =>
      whenReady(pages.single(id, accountId), (single) => {
        if (single === null) throw notFound(resource);
        return single.respondTo(headers["If-None-Match"]);
      }),
  );
}

function updateItem(items: Items): Operation {
  const { resource } = items;
  const { schemas, nouns: { an, one } } = resource;
  return operation({
    ...ofOwner(resource, items.errors.put),
    ...resource.update,
    id: `update${resource.item}`,
    method: "PATCH",
    summary: `Update ${an}`,
    description:
      `Only the account that added the ${one} can update it. Fields that you leave out stay as they are. An \`id\` is ` +
      "ignored, so that you can send back what you read.",
    body: patchOf(schemas.patch, schemas.changes),
    bodyType: "application/merge-patch+json",
    answers: { 200: { description: `The updated ${one}`, body: schemas.item, headers: ["ETag"] } },
  }, async ({ params: { [resource.id]: id = NaN }, headers, body }, call: Call) => {
    const changed = await items.change(
      id,
      (owned) => patched(resource, changeable(resource, owned, call.acting, headers), body),
      call,
    );
    if (changed === null) throw notFound(resource);
    const json = stringifyJson(changed.item);
    return jsonResponse(json, { headers: { etag: quickEtagOf(json) }, isCacheable: false });
  });
}

function deleteItem(items: Items): Operation {
  const { resource } = items;
  const { an, one } = resource.nouns;
  return operation({
    ...ofOwner(resource, items.errors.delete),
    ...resource.delete,
    id: `delete${resource.item}`,
    method: "DELETE",
    summary: `Delete ${an}`,
    description: `Only the account that added the ${one} can delete it. Its id is never reused.`,
    answers: { 204: { description: `The ${one} was deleted` } },
  }, async ({ params: { [resource.id]: id = NaN }, headers }, call: Call) => {
    await items.change(id, (owned) => {
      changeable(resource, owned, call.acting, headers);
      return null;
    }, call);
    return createResponse(null, { status: 204 });
  });
}

function ofCollection({ name, tag, path }: Resource) {
  return { access: ACCESS.key, tag, path, collections: [name] } as const;
}

function ofItem(resource: Resource) {
  const { path, id } = resource;
  return { ...ofCollection(resource), path: `${path}/{${id}}`, params: { [id]: idOf(resource) } };
}

function ofOwner(resource: Resource, refusals: readonly ErrorKind[]) {
  const { notYours, notFound } = resource.errors;
  const errors = [
    ...(resource.readableBy === "everyone" ? [notYours] : []),
    notFound,
    ERRORS.precondition_failed,
    ...refusals,
  ];
  return { ...ofItem(resource), headers: preconditionsOf(resource), errors };
}

function leniencyOf({ isLenient }: Resource): Pick<Resource, "isLenient"> {
  return isLenient ? { isLenient } : {};
}

/** The item. Throws an ApiError unless the account owns it and the preconditions hold (RFC 9110 section 13.2). */
function changeable(
  resource: Resource,
  owned: Owned | null,
  acting: Acting,
  preconditions: Preconditions,
): Item {
  if (owned === null) throw notFound(resource);
  requireWriter(resource, owned.ownerId, acting);
  const { one } = resource.nouns;
  requirePreconditions(preconditions, quickEtagOf(stringifyJson(owned.item)), one);
  return owned.item;
}

/** The items that a list shows. */
function whichOf({ readableBy, nouns: { many } }: Resource): string {
  return readableBy === "owner" ? `the ${many} of your account` : many;
}

/** The id in a path, at most 2^53 - 1. An invalid one gets 404, because no item can have it. */
function idOf(resource: Resource): Schema<number> {
  return {
    ...integer(1, Number.MAX_SAFE_INTEGER),
    json: {
      type: "integer",
      format: "int64",
      description: `Identifier of the ${resource.nouns.one}`,
      examples: [1],
    },
    fromStrings([text = ""]) {
      if (!/^[1-9]\d*$/.test(text)) throw notFound(resource, `; ${resource.id} must be an integer from 1`);
      if (!Number.isSafeInteger(Number(text))) throw notFound(resource);
      return Number(text);
    },
  };
}

function preconditionsOf({ path, id, nouns: { one } }: Resource) {
  return {
    "If-Match": entityTags(
      `Requires the ${one}'s ETag to be one of these tags. Each tag is in double quotes; \`*\` matches any. Use this ` +
        `header to avoid overwriting a change that you have not seen. POST, PATCH and \`GET ${path}/{${id}}\` return ` +
        `the ${one}'s ETag. A PATCH with \`{}\` changes nothing, but returns it too. The ETag of a list is a different ` +
        "one.",
    ),
    "If-None-Match": entityTags(
      `Requires the ${one}'s ETag to be none of these tags. Each tag is in double quotes.`,
    ),
  };
}

function notFound({ errors, nouns: { one }, id }: Resource, reason = ""): ApiError {
  return new ApiError(errors.notFound, `No ${one} has this ${id}${reason}.`);
}
