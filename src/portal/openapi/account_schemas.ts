import { ACCOUNT_NAME } from "../../accounts/account.ts";
import { PLANS } from "../../accounts/plans.ts";
import { COUNT, nameToSend, object, type Schema, TIME } from "./schema.ts";

const NULLABLE_TIME = { type: ["string", "null"], format: "date-time" };
const USAGE_WINDOW = { $ref: "#/components/schemas/UsageWindow" };
const ACCOUNT_ID = "acct_7f3kQ2mZ8xVb1LpR";
const API_KEY = "as_test_8vXn2QmT5kRj7LwZ3pYb9CdF1gHs4NaE6uVxWs";
const accountFields = {
  id: { type: "string" },
  name: { type: "string" },
  plan: { $ref: "#/components/schemas/Plan" },
};

/** The schemas of what concerns accounts. */
export const ACCOUNT_SCHEMAS: Readonly<Record<string, Schema>> = {
  NewAccount: {
    type: "object",
    required: ["name"],
    properties: { name: nameToSend("The account's name", ACCOUNT_NAME) },
    examples: [{ name: "me" }],
  },
  Plan: { type: "string", enum: PLANS },
  SignedUpAccount: {
    ...object({
      ...accountFields,
      apiKey: { type: "string", description: "Shown this once." },
    }),
    examples: [{ id: ACCOUNT_ID, name: "me", plan: "free", apiKey: API_KEY }],
  },
  UsageWindow: object({
    used: {
      ...COUNT,
      description: "Requests that were let in, and places that are held for others to come.",
    },
    reset: TIME,
  }),
  Account: {
    ...object({
      ...accountFields,
      limits: object({ minute: COUNT, day: COUNT }),
      usage: object({ minute: USAGE_WINDOW, day: USAGE_WINDOW }),
      bannedUntil: NULLABLE_TIME,
      createdAt: TIME,
      previousKeyExpiresAt: {
        ...NULLABLE_TIME,
        description: "Until when the key that the last rotation replaced is valid.",
      },
    }),
    examples: [{
      id: ACCOUNT_ID,
      name: "me",
      plan: "free",
      limits: { minute: 60, day: 1_000 },
      usage: {
        minute: { used: 1, reset: "2026-11-21T20:48:00.000Z" },
        day: { used: 1, reset: "2026-11-22T00:00:00.000Z" },
      },
      bannedUntil: null,
      createdAt: "2026-11-21T20:47:39.746Z",
      previousKeyExpiresAt: null,
    }],
  },
  KeyRotation: {
    type: "object",
    properties: {
      graceSeconds: {
        type: "integer",
        minimum: 0,
        maximum: 604_800,
        default: 60,
        description:
          "How long the key of the request stays valid; 0 for a key that has leaked. Without fraction or exponent.",
      },
    },
    examples: [{ graceSeconds: 3_600 }],
  },
  RotatedKey: {
    ...object({
      apiKey: { type: "string", description: "Shown this once." },
      previousKeyExpiresAt: NULLABLE_TIME,
    }),
    examples: [{ apiKey: API_KEY, previousKeyExpiresAt: "2026-11-21T21:47:39.746Z" }],
  },
  UsageDay: object({
    date: { type: "string", format: "date" },
    admitted: { ...COUNT, description: "Requests that were admitted, never too low." },
    refused: { ...COUNT, description: "Requests that were refused, at least." },
  }),
  UsageDays: {
    type: "array",
    items: { $ref: "#/components/schemas/UsageDay" },
    maxItems: 90,
    examples: [[{ date: "2026-11-21", admitted: 12, refused: 0 }]],
  },
};
