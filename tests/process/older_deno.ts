// Checks that the service itself, if not its tests, runs on an older Deno, which npm installs.
import { assertEquals, assertMatch } from "@std/assert";
import { call, type Callable, requestTo } from "../support/client.ts";
import { DenoProcess } from "./process.ts";
import { LIST, PATH, SHIPPED, textField } from "./shipped.ts";

const DENO = "deno@2.5.6";
/** Long enough for a response to be compressed. */
const TEXT = "Rex, whose name is long enough to be compressed";
const ITEM = { ...SHIPPED.examples.item, [textField(TEXT)]: TEXT };

const variables = { KV_PATH: ":memory:", HOST: "127.0.0.1", PORT: "0" };
const args = ["-y", DENO, "eval", "console.log(Deno.execPath())"];
const { stdout } = await new Deno.Command("npx", { args }).output();
const program = [new TextDecoder().decode(stdout).trim(), "task"];
const service = new DenoProcess(["start"], variables, { program });
try {
  await check(await service.wrote("stderr", /^Listening on (http:\/\/localhost:\d+)\//m));
} finally {
  service.signal("SIGTERM"); // The task passes it on. It could not pass on SIGKILL, and the service would run on.
}
assertEquals((await service.ended()).code, 0);

/** Sends the service some requests. */
async function check(origin: string): Promise<void> {
  const service: Callable = { fetch: (target, request) => fetch(requestTo(origin, target, request)) };
  const { apiKey: key } = await (await service.fetch("POST /v1/accounts", { json: { name: "CI" } })).json();
  assertEquals((await call(service, key, `POST ${PATH}`, { json: ITEM })).status, 201);
  const { headers } = await call(service, key, `${LIST}/1`);
  // If Deno before 2.9 compressed the response, its ETag would never match.
  const condition = { "if-match": headers.get("etag") ?? "" };
  const change = { headers: condition, json: SHIPPED.examples.change };
  assertEquals((await call(service, key, `PATCH ${PATH}/1`, change)).status, 200);
  const { json } = await call(service, key, LIST);
  assertEquals(json, [{ ...SHIPPED.changed({ id: 1, ...ITEM }, SHIPPED.examples.change) }]);
  assertMatch(await (await service.fetch("GET /")).text(), /^<!doctype html>[^]*start\(\);<\/script>\n$/);
}
