import { Buffer } from "node:buffer";
import { Invalid, type Schema, text } from "../web/schema.ts";

/** A position in the feed: a row of operators' log, up to which a reader has read. */
export interface FeedCursor {
  /** The versionstamp of the row. */
  readonly stamp: string;
  /** What tells the row from one that has taken its place, such as after a restore. */
  readonly mark: string;
  /** Whose cursor it is; empty for operators. */
  readonly accountId: string;
}

/** A cursor as its readers get it. It is opaque, so that they do not rely on its content. */
export const FEED_CURSOR: Schema<FeedCursor> = {
  ...text(),
  json: {
    type: "string",
    pattern: "^[A-Za-z0-9_-]+$",
    description:
      "The `cursor` of an earlier response. Without it, the response has no changes, and the cursor of now.",
  },
  accepts: (value): value is FeedCursor => typeof value === "object",
  parse(value, subject) {
    const cursor = typeof value === "string" ? decoded(value) : undefined;
    if (cursor !== undefined && textOfCursor(cursor) === value) return cursor;
    throw new Invalid(`${subject} must be a cursor from this feed`);
  },
};

/** The text of a cursor. */
export function textOfCursor({ stamp, mark, accountId }: FeedCursor): string {
  return Buffer.from(`${stamp} ${mark} ${accountId}`).toString("base64url");
}

function decoded(cursor: string): FeedCursor | undefined {
  const content = Buffer.from(cursor, "base64url").toString();
  const [, stamp, mark, accountId] = /^([0-9a-f]{20}) (\w+-\d+) (\w*)$/.exec(content) ?? [];
  return stamp === undefined || mark === undefined || accountId === undefined
    ? undefined
    : { stamp, mark, accountId };
}
