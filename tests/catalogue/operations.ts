// Valid requests to the operations of your own parts, by their IDs. Tests of all operations send them.
import type { Good } from "../support/operations.ts";

/**
 * They send them to a service with things and with your own collections, and also provoke the errors that an operation
 * declares. For example, for `POST /v1/notes/{noteId}/print`, which is called `printNote`:
 *
 * ```ts ignore
 * printNote: { params: { noteId: "1" }, seed: (service) => service.kv.set(["notes", 1], "Milk"), status: 202 },
 * ```
 */
export const OWN: Readonly<Record<string, Good>> = {};
