import { IF_NONE_MATCH, NOT_MODIFIED, type Operation } from "./operation.ts";

/** What clients do with their account, and what anybody may ask of the service. */
export const ACCOUNT_OPERATIONS: readonly Operation[] = [
  {
    id: "createAccount",
    method: "POST",
    path: "/v1/accounts",
    tag: "Account",
    summary: "Sign up",
    description:
      "Makes an account of the Free plan and shows its API key, this once. At most 5 an hour from one " +
      "address, and 1,000 a day in all: the limit headers describe the hour, or the limit that refused. An " +
      "Idempotency-Key is refused: keys are not kept.",
    isExtension: true,
    access: "address",
    body: "NewAccount",
    successes: [{
      status: 201,
      description: "The account",
      schema: "SignedUpAccount",
      headers: ["Cache-Control"],
    }],
    errors: ["sign_up_closed", "sign_up_limit"],
  },
  {
    id: "getAccount",
    method: "GET",
    path: "/v1/account",
    tag: "Account",
    summary: "Get the account, its limits and what it has used",
    isExtension: true,
    access: "key",
    successes: [{ status: 200, description: "The account", schema: "Account", headers: ["Cache-Control"] }],
  },
  {
    id: "closeAccount",
    method: "DELETE",
    path: "/v1/account",
    tag: "Account",
    summary: "Close the account",
    description: "For good: its key ends.",
    isExtension: true,
    access: "key",
    successes: [{ status: 204, description: "The account is closed" }],
  },
  {
    id: "rotateKey",
    method: "POST",
    path: "/v1/account/key",
    tag: "Account",
    summary: "Replace the API key",
    description:
      "What has been used stays counted. The key that you send stays valid for `graceSeconds`, a minute unless you " +
      "send another number, so that a lost answer does not lock you out: ask again with the same key. It gets the " +
      "grace anew, and the key that an earlier request gave ends at once, whether it arrived or not. A key that " +
      "has leaked wants `graceSeconds` 0: it ends at once, and so does every key before it. At most 10 rotations " +
      "of an account in an hour of the UTC clock. An Idempotency-Key is refused: keys are not kept.",
    isExtension: true,
    access: "key",
    body: "KeyRotation",
    bodyIsOptional: true,
    successes: [{
      status: 201,
      description: "The new key",
      schema: "RotatedKey",
      headers: ["Cache-Control"],
    }],
    errors: ["rotation_limit"],
  },
  {
    id: "getUsage",
    method: "GET",
    path: "/v1/account/usage",
    tag: "Account",
    summary: "Get what was used day by day",
    description: "Newest first, today (UTC) included.",
    isExtension: true,
    access: "key",
    parameters: [{
      name: "days",
      in: "query",
      description: "How many days",
      schema: { type: "integer", minimum: 1, maximum: 90, default: 30 },
    }],
    successes: [{ status: 200, description: "Days", schema: "UsageDays", headers: ["Cache-Control"] }],
    errors: ["invalid_request"],
  },
  {
    id: "getOpenApi",
    method: "GET",
    path: "/v1/openapi.json",
    tag: "Service",
    summary: "Get this document",
    isExtension: true,
    access: "public",
    parameters: [IF_NONE_MATCH],
    successes: [
      { status: 200, description: "This document", schema: "Document", headers: ["ETag", "Cache-Control"] },
      NOT_MODIFIED,
    ],
  },
];
