// A later release of the service, as a fork meets it: it touches every folder but the adopter's, adds an operation with an
// error and a setting, and raises the version.
import { rewrite } from "../process/checkout.ts";

const OPERATION = `const getMessage = operation({
    id: "getMessage",
    method: "GET",
    path: "/v1/messages/{messageId}",
    access: ACCESS.key,
    tag: MESSAGES_TAG,
    isExtension: true,
    summary: "Get a message",
    params: { messageId: text({ max: 100, description: "The message" }) },
    answers: { 200: { description: "The message", body: MESSAGE, headers: ["Cache-Control"] } },
    errors: [MESSAGE_NOT_FOUND],
  }, async ({ params: { messageId } }) => {
    const [found] = await messages.find([messageId]);
    if (found === undefined) throw new ApiError(MESSAGE_NOT_FOUND, "There is no such message.");
    const { id, message, status, createdAt } = found;
    return valueResponse({ id, message, status, createdAt });
  });

  return [createMessage, getMessage];`;
const ERROR = `const MESSAGE_NOT_FOUND: ErrorKind = {
  code: "message_not_found",
  status: 404,
  means: "No message has this id.",
  todo: "Use the id in the response of a creation.",
};

/** Operations on messages. */
export function`;
const MESSAGE =
  `{ id: "msg_2", accountId: "acct_1", message: "Hello", status: "queued", createdAt: "2027-01-11T09:00:00.000Z" }`;
const GOOD = `getMessage: {
    params: { messageId: "msg_2" },
    seed: (service) => service.kv.set(["messages", "msg_2"], encodeJson(${MESSAGE})),
  },
  createMessage: {`;
const PROVOCATION = `message_not_found: {
    act: ({ service, apiKey: key }) => service.fetch("GET /v1/messages/msg_3", { key }),
  },
  invalid_json: {`;

/** What changes in which file: a text that it has, and what takes its place. */
const EDITS: readonly (readonly [path: string, from: string, to: string])[] = [
  ["src/messages/message_operations.ts", "return [createMessage];", OPERATION],
  ["src/messages/message_operations.ts", "/** Operations on messages. */\nexport function", ERROR],
  [
    "src/messages/message_operations.ts",
    "import { ERRORS,",
    "import { ApiError, type ErrorKind, ERRORS, valueResponse,",
  ],
  ["tests/support/operations.ts", "createMessage: {", GOOD],
  ["tests/app/provocations.ts", "invalid_json: {", PROVOCATION],
  [
    "src/process/config.ts",
    "securityContact: optional(",
    `motto: optional("MOTTO", "words for nobody", text().parse),\n  securityContact: optional(`,
  ],
  ["deno.json", '"SECURITY_CONTACT",', '"SECURITY_CONTACT",\n        "MOTTO",'],
  [
    "tests/process/config_unit_test.ts",
    "securityContact: undefined,",
    "motto: undefined,\n    securityContact: undefined,",
  ],
  ["deno.json", `"version": "`, `"version": "9.`],
  ["src/CHANGES.md", "\n## ", "\n## 9.VERSION\n\n- Messages can be read.\n\n## "],
];

/** Makes a later release of a copy of the checkout. Throws if the copy lacks a text that it replaces. */
export async function makeLaterRelease(folder: string): Promise<void> {
  const { version } = JSON.parse(await Deno.readTextFile(`${folder}/deno.json`));
  for (const [path, from, to] of EDITS) {
    await rewrite(`${folder}/${path}`, (text) => {
      if (!text.includes(from)) throw new Error(`${path} lacks ${from}`);
      return text.replace(from, () => to.replace("VERSION", version));
    });
  }
  for (const top of ["src", "tests"]) await touch(`${folder}/${top}`);
}

/** Adds a comment to a file in each folder, except the adopter's. */
async function touch(folder: string): Promise<void> {
  const entries = await Array.fromAsync(Deno.readDir(folder));
  const [first] = entries.map(({ name }) => name).filter((name) => /\.(?:ts|js)$/.test(name)).sort();
  if (first !== undefined) {
    await rewrite(`${folder}/${first}`, (text) => `${text}\n// Touched by a later release.\n`);
  }
  for (const { name, isDirectory } of entries) {
    if (isDirectory && name !== "catalogue") await touch(`${folder}/${name}`);
  }
}
