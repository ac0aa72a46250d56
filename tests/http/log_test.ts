import { assertEquals } from "@std/assert";
import { createSecret, SECRET_LIKE } from "../../src/access/secret.ts";
import { createLog, describeError } from "../../src/http/log.ts";
import { StoreUnavailable } from "../../src/kv/deadline.ts";
import { Harness } from "../harness.ts";

const ACCESS = {
  time: "2027-01-15T12:00:00.000Z",
  id: "r1",
  method: "GET",
  route: "/",
  status: 200,
  ms: 1,
  keyId: "",
};
const ERROR = {
  time: "2027-01-15T12:00:00.000Z",
  id: "r1",
  route: "/",
  error: "TypeError",
  at: "src/app.ts:1",
};

Deno.test("createLog() writes a JSON line to standard output for a request, if asked to", () => {
  const lines = capture(Deno.stdout, () => createLog({ access: true, secret: SECRET_LIKE }).access?.(ACCESS));
  assertEquals(lines, [`${JSON.stringify(ACCESS)}\n`]);
});

Deno.test("createLog() writes nothing for a request unless asked to", () => {
  assertEquals(createLog({ access: false, secret: SECRET_LIKE }).access, undefined);
});

Deno.test.each([true, false])("createLog() writes a JSON line to standard error for an error", (access) => {
  const lines = capture(Deno.stderr, () => createLog({ access, secret: SECRET_LIKE }).error(ERROR));
  assertEquals(lines, [`${JSON.stringify(ERROR)}\n`]);
});

Deno.test("createLog() leaves keys out, wherever a client put them", () => {
  const [id, method] = [createSecret("staging"), `GET_${createSecret("production")}`];
  const log = createLog({ access: true, secret: SECRET_LIKE });

  const lines = [
    ...capture(Deno.stdout, () => log.access?.({ ...ACCESS, id, method })),
    ...capture(Deno.stderr, () => log.error({ ...ERROR, id })),
  ];

  assertEquals(lines, [
    `${JSON.stringify({ ...ACCESS, id: "[secret]", method: "GET_[secret]" })}\n`,
    `${JSON.stringify({ ...ERROR, id: "[secret]" })}\n`,
  ]);
});

Deno.test("createLog() goes on when nobody reads the log any more", () => {
  const { writeSync } = Deno.stdout;
  Deno.stdout.writeSync = () => {
    throw new Deno.errors.BrokenPipe("Broken pipe");
  };
  try {
    createLog({ access: true, secret: SECRET_LIKE }).access?.(ACCESS);
  } finally {
    Deno.stdout.writeSync = writeSync;
  }
});

Deno.test("describeError() names an error and its cause, without their messages", () => {
  const error = new StoreUnavailable("secret", { cause: new TypeError("secret") });
  assertEquals(describeError(error), { error: "StoreUnavailable (TypeError)", at: "" });
});

Deno.test.each([
  ["a string", "secret", "string"],
  ["nothing", undefined, "undefined"],
  ["an error whose cause is a string", new Error("secret", { cause: "secret" }), "Error"],
])("describeError() says no more than the type of %s", (_, thrown, error) => {
  assertEquals(describeError(thrown), { error, at: "" });
});

Deno.test("describeError() tells the place in the source that an error came from", () => {
  const error = new Error("secret at src/decoy.ts:1");
  error.stack =
    "Error: secret\n    at f (file:///srv/src/kv/store.ts:12:3)\n    at g (file:///srv/src/app.ts:1:1)";
  assertEquals(describeError(error).at, "src/kv/store.ts:12");
});

Deno.test("app() records each request under its route's pattern and its key's id", async () => {
  using service = await Harness.open();
  const { key: { id: keyId }, secret: key } = await service.issueKey({ minute: 5, day: 100 });
  const { key: { id: spentId }, secret: spent } = await service.issueKey({ minute: 0, day: 100 });
  const headers = { "x-request-id": "r1" };

  await service.fetch("POST /v1/pets", { key, headers, json: { name: "Rex", categoryId: 7 } });
  await service.fetch("GET /v1/pets?status=sold&secret=1", { key, headers });
  await service.fetch("HEAD /v1/pets/1", { key, headers });
  await service.fetch("GET /v1/pets/private", { key, headers });
  await service.fetch("GET /v1/private", { key, headers });
  await service.fetch("GET /v1/pets", { headers });
  await service.fetch("GET /v1/pets", { key: spent, headers });
  await service.fetch("OPTIONS /v1/pets", { headers });
  await service.fetch("GET /health", { headers });

  const record = { time: "2027-01-15T12:00:00.000Z", id: "r1", ms: 0 };
  assertEquals(service.accesses, [
    { ...record, method: "POST", route: "/v1/pets", status: 201, keyId },
    { ...record, method: "GET", route: "/v1/pets", status: 200, keyId },
    { ...record, method: "HEAD", route: "/v1/pets/:petId", status: 200, keyId },
    { ...record, method: "GET", route: "/v1/pets/:petId", status: 404, keyId },
    { ...record, method: "GET", route: "", status: 404, keyId },
    { ...record, method: "GET", route: "/v1/pets", status: 401, keyId: "" },
    { ...record, method: "GET", route: "/v1/pets", status: 429, keyId: spentId },
    { ...record, method: "OPTIONS", route: "/v1/pets", status: 204, keyId: "" },
    { ...record, method: "GET", route: "/health", status: 200, keyId: "" },
  ]);
});

Deno.test("app() records how long the answer took", async () => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();
  const slow = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      service.now += 250;
      controller.close();
    },
  }, { highWaterMark: 0 });

  await service.fetch("POST /v1/pets", { key, body: slow, headers: { "content-type": "application/json" } });

  assertEquals(service.accesses.map(({ status, ms }) => [status, ms]), [[400, 250]]);
});

Deno.test("app() never logs a key, valid or not", async () => {
  const service = await Harness.open();
  const { secret } = await service.issueKey();
  const mistyped = secret.slice(0, -1);

  await service.fetch("GET /v1/pets", { key: secret });
  await service.fetch("GET /v1/pets", { key: mistyped });
  await service.fetch(`GET /v1/pets?key=${secret}`);
  await service.fetch(`GET /v1/${secret}`);
  service.kv.close();
  await service.fetch("GET /v1/pets", { key: secret });

  assertEquals([service.accesses.length, service.errors.length], [5, 1]);
  assertEquals(JSON.stringify([service.accesses, service.errors]).includes(mistyped), false);
});

/** What is written to the output in the meantime. */
function capture(output: { writeSync(bytes: Uint8Array): number }, run: () => void): string[] {
  const lines: string[] = [];
  const original = output.writeSync;
  output.writeSync = (bytes) => {
    lines.push(new TextDecoder().decode(bytes));
    return bytes.length;
  };
  try {
    run();
  } finally {
    output.writeSync = original;
  }
  return lines;
}
