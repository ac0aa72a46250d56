import { monotonicNow, msBetween, plus, SECOND } from "../base/mod.ts";
import type { Store } from "../engine/mod.ts";
import { operation, type Tag, valueResponse } from "../web/mod.ts";
import {
  boolean,
  extensibleEnum,
  integer,
  list,
  type Members,
  named,
  object,
  optional,
  output,
  type Parsed,
  text,
  timestamp,
} from "../web/schema.ts";
import { ACCESS, type Call, EXAMPLE_ACCOUNT_ID, type Operation } from "../service/mod.ts";
import { appendGap, FEED, newTag } from "../resource/mod.ts";
import {
  CHANGES_GAP,
  CHANGES_OFF,
  type ChangeStore,
  CURSOR_EXPIRED,
  type SeenChange,
} from "./change_store.ts";
import { FEED_CURSOR, type FeedCursor, textOfCursor } from "./feed_cursor.ts";

/** Path of the feed of changes, for operators. */
export const OPERATORS_FEED_PATH = "/operator/v1/changes";
/** The most days for which changes are kept. */
export const MAX_DAYS = 365;

const TAG: Tag = { name: "Changes", description: "The feed of changes of items" };
/** Maximum number of changes that a request can ask for. */
const MAX_LIMIT = 1_000;
/** A commit has fewer changes than mutations, so the rest of one cannot lead beyond this. */
const MAX_CHANGES = 2_000;
/** How long a request can wait, in s. */
const MAX_WAIT = 20;
const DESCRIPTION =
  "Returns what was created, updated and deleted after the cursor `after`, in the order of the changes, but not the items: " +
  "read those, as they are now. Take the cursor of now, list all items, then follow the feed: nothing is missed.";

const DAYS = { days: integer(0, MAX_DAYS, { description: "For how many days changes are kept; 0 is off" }) };
const EXAMPLE_DAYS = { days: 7 };
const CHANGE = {
  collection: text({ description: "The name of the collection" }),
  id: integer(1, Number.MAX_SAFE_INTEGER, { description: "Identifier of the item" }),
  change: extensibleEnum(["created", "updated", "deleted"], "What happened to the item"),
  at: timestamp({
    description: "When that was, by the clock of the process that did it: the order is that of the list",
  }),
};
const EXAMPLE = { collection: "toys", id: 7, change: "updated", at: "2027-01-15T12:00:00.000Z" };
const EXAMPLE_CURSOR = { stamp: "0000000000000001a2b4", mark: "Zb3kQ9xA-1800014400000", accountId: "acct_1" };
const PAGE = pageOf(CHANGE, {}, { change: EXAMPLE });
const PAGE_OF_ALL = pageOf(
  { ...CHANGE, accountId: optional(text({ description: "The account that the item belongs to" })) },
  DAYS,
  { change: { ...EXAMPLE, accountId: EXAMPLE_ACCOUNT_ID }, ...EXAMPLE_DAYS },
);

/** The schema of a page of changes with these members, and with further members of its own. */
function pageOf<const Of extends Members, const Own extends Members>(
  members: Of,
  own: Own,
  { change, ...ofOwn }: { readonly change: object; readonly days?: number },
) {
  const page = {
    changes: list(named("ItemChange", output(members, { examples: [change] })), MAX_CHANGES, {
      description: "The changes, oldest first",
    }),
    cursor: text({ description: "Where the next request goes on, as `after`" }),
    more: boolean({ description: "Whether there are more changes now" }),
    ...own,
  };
  const cursor = textOfCursor(EXAMPLE_CURSOR);
  return named(
    "ItemChanges",
    output(page, { examples: [{ changes: [change], cursor, more: false, ...ofOwn }] }),
  );
}

/** Whether changes are kept, and for how long. */
export const CHANGE_SETTING = named("ChangeSetting", output(DAYS, { examples: [EXAMPLE_DAYS] }));

const LISTING = {
  id: "listChanges",
  method: "GET",
  tag: TAG,
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
export function changeOperations(changes: ChangeStore): Operation[] {
  const listChanges = operation({
    ...LISTING,
    path: "/v1/changes",
    access: ACCESS.key,
    isExtension: true,
    isUnrestricted: true,
    summary: "Follow the changes of items",
    description:
      `${DESCRIPTION} A key that is restricted to collections sees only their changes. With \`wait\`, a response without ` +
      "changes is sent only after that time, and one with changes a second after the first of them.",
    query: {
      ...LISTING.query,
      wait: optional(
        integer(0, MAX_WAIT, {
          description: "For how many seconds at most to wait if there are no changes",
        }),
        0,
      ),
    },
    answers: { 200: { description: "The next changes", body: PAGE, headers: ["Cache-Control"] } },
  }, async ({ query: { after, limit, wait } }, { accountId, collections, idle, clock }: Call) => {
    const read = (after?: FeedCursor) => changes.read({ accountId, collections, after, limit, now: clock() });
    const end = plus(monotonicNow(), wait * SECOND);
    let page = await read(after);
    const hasChanged = (signal: AbortSignal) =>
      changes.hasChanged(page.cursor, msBetween(monotonicNow(), end), signal);
    let goesOn = after !== undefined;
    while (goesOn && page.changes.length === 0 && !page.more && monotonicNow() < end) {
      goesOn = await idle(hasChanged);
      // Also if nothing was found: the feed may have been switched off.
      page = await read(page.cursor);
    }
    const { cursor, more } = page;
    return valueResponse<Parsed<typeof PAGE>>({
      changes: page.changes.map(shown),
      cursor: textOfCursor(cursor),
      more,
    });
  });

  return [listChanges];
}

/** Operators' operations on the feed. */
export function operatorChangeOperations(changes: ChangeStore, { schema }: Store): Operation[] {
  const listChanges = operation({
    ...LISTING,
    path: OPERATORS_FEED_PATH,
    access: ACCESS.operator,
    timeoutMs: 30_000,
    summary: "Follow the changes of all items",
    description: DESCRIPTION,
    answers: { 200: { description: "The next changes", body: PAGE_OF_ALL, headers: ["Cache-Control"] } },
  }, async ({ query: { after, limit } }, { now }: Call) => {
    const page = await changes.read({ accountId: "", after, limit, now });
    const { more, days } = page;
    return valueResponse<Parsed<typeof PAGE_OF_ALL>>({
      changes: page.changes.map((change) => ({
        ...shown(change),
        ...change.accountId !== undefined && { accountId: change.accountId },
      })),
      cursor: textOfCursor(page.cursor),
      more,
      days,
    });
  });

  const switchChanges = operation({
    id: "switchChanges",
    method: "PUT",
    path: OPERATORS_FEED_PATH,
    access: ACCESS.operator,
    tag: TAG,
    summary: "Switch the feed of changes on or off",
    description:
      "Changes are in the feed from now on, and for that many days. 0 switches it off. It is off by default. While it is on, " +
      "earlier releases that have no feed refuse to run on the store, so switch it off before you go back to one. After it was off, readers of the feed have to list everything again.",
    confirm:
      "While it is on, earlier releases stop, and after it was off, readers list everything again. Continue?",
    body: named("ChangeSettingUpdate", object(DAYS, { examples: [EXAMPLE_DAYS] })),
    answers: { 200: { description: "The setting", body: CHANGE_SETTING, headers: ["Cache-Control"] } },
  }, async ({ body: { days } }, { transact, noteChange }: Call) => {
    const tag = newTag();
    await transact<undefined>({
      decide(rows, write) {
        if (!rows.features[FEED] && days > 0) appendGap(rows, write, tag);
        // Also if nothing changes: only a commit shows that the setting has not changed in the meantime.
        schema.switch(FEED, days, write);
      },
    });
    noteChange({ days });
    return valueResponse<Parsed<typeof CHANGE_SETTING>>({ days });
  });

  return [listChanges, switchChanges];
}

/** A change as clients see it. */
function shown({ collection, id, change, at }: SeenChange) {
  return { collection, id, change, at: new Date(at).toISOString() };
}
