import { MESSAGES } from "../../../src/messages/messages.ts";
import type { Part } from "../../../src/operator/part.ts";
import { PAGE } from "../../../src/page/page_operations.ts";
import { CANCELLATIONS } from "./parts/cancellations.ts";

/** The optional parts of the service, in the order of its documents. Your own stand in `parts/`. */
export const PARTS: readonly Part[] = [CANCELLATIONS, MESSAGES, PAGE];
