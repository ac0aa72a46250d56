import type { Part } from "../../../src/operator/part.ts";
import { MESSAGES } from "../../../src/messages/messages.ts";
import { PAGE } from "../../../src/page/page_operations.ts";
import { CANCELLATIONS } from "./parts/cancellations.ts";

/** The optional parts of the service. */
export const PARTS: readonly Part[] = [CANCELLATIONS, MESSAGES, PAGE];
