import { whenReady } from "../base/mod.ts";
import {
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
import { ApiError, createResponse, ERRORS, jsonResponse, operation } from "../web/mod.ts";
import {
  integer,
  type Optional,
  optional,
  resolved,
  type Schema,
  stringifyJson,
  withoutDefault,
} from "../web/schema.ts";
import { ACCESS } from "./access.ts";
import type { Call, Operation } from "./call.ts";
import { createOnce } from "./create_once.ts";
import type { Items, Owned } from "./items.ts";
import { CURSOR, Pages } from "./pages.ts";
import { type Item, MAX_PAGE, type Resource } from "./resource.ts";

/** Options of {@linkcode itemOperations}. */
export interface ItemOperationsOptions {
  /** Prefix of URLs; undefined for relative ones. */
  readonly publicUrl: string | undefined;
  /** Maximum memory of kept responses, in bytes. */
  readonly maxBytes: number;
}

/** Clients' operations on a collection: list, create, get, update and delete. */
export function itemOperations(
  items: Items,
  { publicUrl = "", maxBytes }: ItemOperationsOptions,
): Operation[] {
  const { resource } = items;
  const { path, schemas, errors, nouns: { an, one, many } } = resource;
  const deprecated = resource.get?.deprecated && {
    ...resource.get.deprecated,
    document: publicUrl + DEPRECATIONS_PATH,
    successor: publicUrl + path,
  };
  const pages = new Pages(items, { maxBytes, itemHeaders: deprecated ? deprecationHeaders(deprecated) : {} });
  const common = { access: ACCESS.key, tag: resource.tag } as const;
  const lenient = resource.isLenient ? { isLenient: true } as const : {};
  const ofItem = { ...common, path: `${path}/{${resource.id}}`, params: { [resource.id]: idOf(resource) } };
  const ofOwner = {
    ...ofItem,
    headers: preconditionsOf(resource),
    errors: [errors.notYours, errors.notFound, ERRORS.precondition_failed],
  };

  const list = operation(
    {
      ...common,
      ...lenient,
      id: `list${resource.items}`,
      method: "GET",
      path,
      summary: `List ${many}`,
      description:
        `Returns ${many} in ascending order of id. If there are more, \`Link\` with \`rel="next"\` has the next page's URL.`,
      query: {
        limit: optional(integer(1, MAX_PAGE, { description: `Maximum number of ${many} returned` }), 20),
        ...filtersOf(resource),
        cursor: optional(CURSOR),
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
    ({ query, headers }, { base }) =>
      whenReady(pages.page(query), (page) => page.respondTo(headers["If-None-Match"], base)),
  );

  const createId = `create${resource.item}`;
  const create = operation({
    ...common,
    ...lenient,
    id: createId,
    method: "POST",
    path,
    summary: `Add ${an}`,
    description: `Adds ${an} to the catalogue.`,
    headers: { "Idempotency-Key": IDEMPOTENCY_KEY },
    body: schemas.creation,
    answers: {
      201: {
        description: `The created ${one}, including the assigned \`id\``,
        body: schemas.item,
        headers: ["Location", "Content-Location", "ETag", "Idempotency-Replayed"],
      },
    },
    errors: [ERRORS.idempotency_key_reused],
  }, async ({ headers, body, bytes }, call: Call) => {
    const id = await items.ids.next();
    return await createOnce<string>(headers["Idempotency-Key"], call, {
      operation: createId,
      ...{ bytes, body, fields: resource.fields },
      creation: items.adding({ id, ...body }, call.accountId),
      reply(json) {
        const location = `${call.base}${path}/${id}`;
        // The body is the content of the location (RFC 9110 section 8.7). With a head this long, Deno sends head and
        // body in one system call.
        const headers = { location, "content-location": location, etag: quickEtagOf(json) };
        return { status: 201, headers, body: json };
      },
      unused: () => items.ids.giveBack(id),
    });
  });

  const get = operation(
    {
      ...ofItem,
      ...lenient,
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
    ({ params, headers }) =>
      whenReady(pages.single(idIn(params)), (single) => {
        if (single === null) throw notFound(resource);
        return single.respondTo(headers["If-None-Match"]);
      }),
  );

  const update = operation({
    ...ofOwner,
    ...resource.update,
    id: `update${resource.item}`,
    method: "PATCH",
    summary: `Update ${an}`,
    description:
      `Only the account that added the ${one} can update it. Fields that you leave out stay as they are. An \`id\` is ` +
      "ignored, so that you can send back what you read.",
    body: schemas.patch,
    bodyType: "application/merge-patch+json",
    answers: { 200: { description: `The updated ${one}`, body: schemas.item, headers: ["ETag"] } },
  }, async ({ params, headers, body }, { transact, accountId }: Call) => {
    const changed = await transact(
      items.changing(idIn(params), (owned) => resource.changed(changeable(owned, accountId, headers), body)),
    );
    if (changed === null) throw notFound(resource);
    const json = stringifyJson(changed.item);
    return jsonResponse(json, { headers: { etag: quickEtagOf(json) } });
  });

  const remove = operation({
    ...ofOwner,
    ...resource.delete,
    id: `delete${resource.item}`,
    method: "DELETE",
    summary: `Delete ${an}`,
    description: `Only the account that added the ${one} can delete it. Its id is never reused.`,
    answers: { 204: { description: `The ${one} was deleted` } },
  }, async ({ params, headers }, { transact, accountId }: Call) => {
    await transact(items.changing(idIn(params), (owned) => {
      changeable(owned, accountId, headers);
      return null;
    }));
    return createResponse(null, { status: 204 });
  });

  function idIn({ [resource.id]: id = NaN }: Readonly<Record<string, number>>): number {
    return id;
  }

  /** The item. Throws an ApiError unless the account owns it and the preconditions hold (RFC 9110 section 13.2). */
  function changeable(owned: Owned | null, accountId: string, headers: Preconditions): Item {
    if (owned === null) throw notFound(resource);
    if (owned.ownerId !== accountId) {
      throw new ApiError(errors.notYours, `Only the account that added ${an} may update or delete it.`);
    }
    requirePreconditions(headers, quickEtagOf(stringifyJson(owned.item)), one);
    return owned.item;
  }

  return [list, create, get, update, remove];
}

/** The query parameters of a list's filters. */
function filtersOf({ filters, fields }: Resource): Readonly<Record<string, Optional<unknown>>> {
  const filtered = Object.entries(fields).filter(([name]) => filters.some((filter) => filter === name));
  return Object.fromEntries(filtered.map(([name, field]) => {
    const schema = withoutDefault(field);
    const { description = name } = resolved(schema);
    const text = `Filter by ${description.charAt(0).toLowerCase()}${description.slice(1)}`;
    return [name, optional({ ...schema, json: { ...schema.json, description: text } })];
  }));
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
