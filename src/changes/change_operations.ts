import { monotonicNow, msBetween, plus, SECOND } from "../base/mod.ts";
import { operation, type Tag, valueResponse } from "../web/mod.ts";
import {
  boolean,
  extensibleEnum,
  integer,
  list,
  type Members,
  named,
  optional,
  output,
  type Parsed,
  text,
  timestamp,
} from "../web/schema.ts";
import { ACCESS, type Call, EXAMPLE_ACCOUNT_ID, type Operation } from "../service/mod.ts";
import {
  CHANGES_GAP,
  CHANGES_OFF,
  type ChangeStore,
  CURSOR_EXPIRED,
  type SeenChange,
} from "./change_store.ts";
import { FEED_CURSOR, textOfCursor } from "./feed_cursor.ts";

/** Operations on the feed of changes. */
export const CHANGES_TAG: Tag = { name: "Changes", description: "The feed of changes of items" };

/** Maximum number of changes that a request can ask for. */
const MAX_LIMIT = 1_000;
/** A commit has fewer changes than mutations, so the rest of one cannot lead beyond this. */
const MAX_CHANGES = 2_000;
/** How long a request can wait, in s. */
const MAX_WAIT = 20;
const WAIT = optional(
  integer(0, MAX_WAIT, { description: "For how many seconds at most to wait if there are no changes" }),
  0,
);
const DESCRIPTION =
  "Returns what was created, updated and deleted after the cursor `after`, in the order of the changes, but not the items: " +
  "read those, as they are now. What was changed together is in one response, which can make it longer than `limit`. " +
  "Without `after`, there are no changes, and `cursor` is that of now: take it first, then list all items, then follow " +
  "the feed, and nothing is missed.";

const CURSOR_OF_EXAMPLE = { stamp: "0000000000000001a2b4", mark: "Zb3kQ9xA-1800014400000" };
const EXAMPLE = { collection: "toys", id: 7, change: "updated", at: "2027-01-15T12:00:00.000Z" };
const CHANGE = {
  collection: text({ description: "The name of the collection" }),
  id: integer(1, Number.MAX_SAFE_INTEGER, { description: "Identifier of the item" }),
  change: extensibleEnum(["created", "updated", "deleted"], "What happened to the item"),
  at: timestamp({
    description: "When that was, by the clock of the process that did it: the order is that of the list",
  }),
};
const PAGE = pageOf(CHANGE, EXAMPLE, "acct_1");
const PAGE_OF_ALL = pageOf(
  { ...CHANGE, accountId: optional(text({ description: "The account that the item belongs to" })) },
  { ...EXAMPLE, accountId: EXAMPLE_ACCOUNT_ID },
  "",
);

/** The schema of a page of changes. */
function pageOf<const Of extends Members>(members: Of, example: object, accountId: string) {
  const cursor = textOfCursor({ ...CURSOR_OF_EXAMPLE, accountId });
  return named(
    "ItemChanges",
    output({
      changes: list(named("ItemChange", output(members, { examples: [example] })), MAX_CHANGES, {
        description: "The changes, oldest first",
      }),
      cursor: text({ description: "Where the next request goes on, as `after`" }),
      more: boolean({ description: "Whether there are more changes now" }),
    }, { examples: [{ changes: [example], cursor, more: false }] }),
  );
}

const COMMON = {
  id: "listChanges",
  method: "GET",
  tag: CHANGES_TAG,
  query: {
    after: optional(FEED_CURSOR),
    limit: optional(
      integer(1, MAX_LIMIT, {
        description: "Number of changes after which the response ends with their commit",
      }),
      100,
    ),
  },
  errors: [CHANGES_OFF, CURSOR_EXPIRED, CHANGES_GAP],
} as const;

/** Clients' operation on the feed. */
export function changeOperations(store: ChangeStore): Operation[] {
  const listChanges = operation({
    ...COMMON,
    path: "/v1/changes",
    access: ACCESS.key,
    isExtension: true,
    isUnrestricted: true,
    summary: "Follow the changes of items",
    description:
      `${DESCRIPTION} A key that is restricted to collections sees only their changes. With \`wait\`, a response without ` +
      "changes is sent only after that time: as soon as there are some, further ones are gathered for a second.",
    query: { ...COMMON.query, wait: WAIT },
    answers: { 200: { description: "The next changes", body: PAGE, headers: ["Cache-Control"] } },
  }, async ({ query: { after, limit, wait } }, { accountId, collections, idle, clock }: Call) => {
    const reader = { accountId, collections };
    const end = plus(monotonicNow(), wait * SECOND);
    let page = await store.read(reader, { after, limit, now: clock() });
    const mayWait = () =>
      after !== undefined && page.changes.length === 0 && !page.more && monotonicNow() < end;
    const hasChanged = (signal: AbortSignal) =>
      store.hasChanged(page.cursor, msBetween(monotonicNow(), end), signal);
    for (let goesOn = mayWait(); goesOn;) {
      const isFound = await idle(hasChanged);
      // Also if nothing was found: the feed may have been switched off.
      page = await store.read(reader, { after: page.cursor, limit, now: clock() });
      goesOn = isFound && mayWait();
    }
    const { changes, cursor, more } = page;
    return valueResponse<Parsed<typeof PAGE>>({
      changes: changes.map(shown),
      cursor: textOfCursor(cursor),
      more,
    });
  });

  return [listChanges];
}

/** Operators' operation on the feed. */
export function operatorChangeOperations(store: ChangeStore): Operation[] {
  const listChanges = operation({
    ...COMMON,
    path: "/operator/v1/changes",
    access: ACCESS.operator,
    timeoutMs: 30_000,
    summary: "Follow the changes of all items",
    description: DESCRIPTION,
    answers: { 200: { description: "The next changes", body: PAGE_OF_ALL, headers: ["Cache-Control"] } },
  }, async ({ query: { after, limit } }, { now }: Call) => {
    const page = await store.read({ accountId: "" }, { after, limit, now });
    const changes = page.changes.map((change) => ({
      ...shown(change),
      ...change.accountId !== undefined && { accountId: change.accountId },
    }));
    const { more } = page;
    return valueResponse<Parsed<typeof PAGE_OF_ALL>>({ changes, cursor: textOfCursor(page.cursor), more });
  });

  return [listChanges];
}

/** A change as clients see it. */
function shown({ collection, id, change, at }: SeenChange) {
  return { collection, id, change, at: new Date(at).toISOString() };
}
