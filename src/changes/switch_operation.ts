import type { Store, Transaction } from "../engine/mod.ts";
import { operation, valueResponse } from "../web/mod.ts";
import { integer, named, object, output, type Parsed } from "../web/schema.ts";
import { ACCESS, type Call, type Operation } from "../service/mod.ts";
import { appendGap, FEED, newTag } from "../resource/mod.ts";
import { CHANGES_TAG } from "./change_operations.ts";

/** Path of the feed of changes, for operators. */
export const OPERATORS_FEED_PATH = "/operator/v1/changes";
/** The most days for which changes are kept. */
export const MAX_DAYS = 365;

const DAYS = { days: integer(0, MAX_DAYS, { description: "For how many days changes are kept; 0 is off" }) };
const EXAMPLES = { examples: [{ days: 7 }] };

/** Whether changes are kept, and for how long. */
export const CHANGE_SETTING = named("ChangeSetting", output(DAYS, EXAMPLES));

/** The operation that switches the feed of changes. */
export function switchOperation(store: Store): Operation {
  return operation({
    id: "switchChanges",
    method: "PUT",
    path: OPERATORS_FEED_PATH,
    access: ACCESS.operator,
    tag: CHANGES_TAG,
    summary: "Switch the feed of changes on or off",
    description:
      "Changes are in the feed from now on, and for that many days; 0, the default, switches it off. While it is on, " +
      "earlier releases that have no feed refuse to run on the store, so switch it off before you go back to one. After it was off, readers of the feed have to list everything again.",
    confirm:
      "While it is on, earlier releases stop, and after it was off, readers list everything again. Continue?",
    body: named("ChangeSettingUpdate", object(DAYS, EXAMPLES)),
    answers: { 200: { description: "The setting", body: CHANGE_SETTING, headers: ["Cache-Control"] } },
  }, async ({ body: { days } }, { transact, noteChange }: Call) => {
    const tag = newTag();
    await transact(switching(store, days, tag));
    noteChange({ days });
    return valueResponse<Parsed<typeof CHANGE_SETTING>>({ days });
  });
}

/** Switches the feed. It always writes: only a commit shows that the setting has not changed in the meantime. */
function switching({ schema }: Store, days: number, tag: string): Transaction<undefined> {
  return {
    decide(rows, write) {
      if (!rows.features[FEED] && days > 0) appendGap(rows, write, tag);
      schema.switch(FEED, days, write);
    },
  };
}
