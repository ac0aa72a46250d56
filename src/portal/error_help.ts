import type { ErrorCode } from "../http/error.ts";

/** What an error means, and what a client should do about it. */
export interface ErrorHelp {
  readonly means: string;
  readonly todo: string;
}

const MEND = "Mend the request; the message names what was expected.";
const AGAIN = "Try again after Retry-After, and wait longer each time.";

const HELP = {
  invalid_request: { means: "A field, a parameter or a header is missing or has a wrong value.", todo: MEND },
  invalid_json: { means: "The body is not JSON in UTF-8.", todo: MEND },
  invalid_content_type: { means: "The body is not declared as plain JSON in UTF-8.", todo: MEND },
  missing_api_key: {
    means: "There is no API key in bearer form.",
    todo: "Send Authorization: Bearer API_KEY.",
  },
  invalid_api_key: {
    means: "The API key is not valid: mistyped, replaced, closed or of the other environment.",
    todo: "Use the key of an open account.",
  },
  invalid_operator_token: {
    means: "Only the operator of the service may do this, and the token sent is not the operator's.",
    todo: "Send the OPERATOR_TOKEN that the service was started with.",
  },
  account_suspended: {
    means: "The operator of the service has suspended the account: its keys and animals stay.",
    todo: "Stop, and ask the operator to resume the account.",
  },
  sign_up_closed: { means: "Nobody can sign up here.", todo: "Ask the operator of the service for a key." },
  not_your_pet: {
    means: "Another account added the animal.",
    todo: "Only the account that added an animal may change it.",
  },
  pet_not_found: { means: "No animal has this id.", todo: "List the animals." },
  not_found: { means: "There is nothing at this path.", todo: "Look at the paths in the reference." },
  method_not_allowed: {
    means: "The path does not answer this method.",
    todo: "Use a method that Allow names.",
  },
  request_timeout: { means: "The body took longer than 10 seconds.", todo: "Send it again, faster." },
  gone: { means: "The operation was removed.", todo: "Use its successor, which Link names." },
  length_required: {
    means: "The body came in chunks, of unknown length.",
    todo: "Send a Content-Length.",
  },
  precondition_failed: {
    means: "If-Match or If-None-Match does not hold for the animal as it is now.",
    todo: "Read it again and decide anew; ETag has its current tag.",
  },
  payload_too_large: { means: "The body is larger than 64 KiB.", todo: MEND },
  idempotency_key_reused: {
    means: "The Idempotency-Key was used with another body before.",
    todo: "Use a new Idempotency-Key for each new request.",
  },
  rate_limit_minute: { means: "The minute's requests are used up.", todo: AGAIN },
  rate_limit_day: { means: "The day's requests are used up (UTC).", todo: AGAIN },
  key_banned: {
    means: "Requests went on after 429: the key is banned for a while.",
    todo: "Stop until Retry-After has passed; further bans are longer.",
  },
  rotation_limit: {
    means: "Too many keys were made for the account in this hour (UTC).",
    todo: "Go on with the key that you have, or try again after Retry-After; the request itself has counted.",
  },
  queue_full: {
    means: "Too many messages of the account wait to be sent.",
    todo: "Try again after Retry-After; the request itself has counted.",
  },
  idempotency_limit: {
    means: "Too many Idempotency-Keys of the account were used on this day (UTC).",
    todo: "Go on without one, or after Retry-After; the request itself has counted.",
  },
  sign_up_limit: { means: "Too many accounts were made.", todo: AGAIN },
  internal_error: { means: "Something went wrong in the service.", todo: "Report the X-Request-Id." },
  overloaded: { means: "The service answers as many requests as it can.", todo: AGAIN },
  store_unavailable: {
    means: "The store does not answer, or the service is stopping. A write may or may not have been made.",
    todo: "Try again after Retry-After; an Idempotency-Key makes that safe for writes.",
  },
} as const satisfies Record<ErrorCode, ErrorHelp>;

/** What to know of every error code. */
export const ERROR_HELP: Readonly<Record<ErrorCode, ErrorHelp>> = HELP;
