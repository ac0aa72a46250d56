import { MESSAGES } from "../messages/messages.ts";
import type { Part } from "../part.ts";
import { OPERATORS_PAGE, PAGE } from "../page/page_operations.ts";

/** The optional parts of the service, in the order of its documents. Your own stand in `parts/`. */
export const PARTS: readonly Part[] = [MESSAGES, PAGE, OPERATORS_PAGE];
