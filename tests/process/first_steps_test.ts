import { assertEquals, assertStringIncludes } from "@std/assert";
import { DEFAULT_KV_PATH } from "../../src/catalogue/catalogue.ts";
import { readConfig } from "../../src/process/config.ts";
import { describeStart, printFirstSteps } from "../../src/process/first_steps.ts";
import { Harness } from "../support/harness.ts";
import { CapturedErrors } from "./standard_streams.ts";

Deno.test.each([
  [DEFAULT_KV_PATH, ""],
  ["other.kv", "KV_PATH='other.kv' "],
  ["it's.kv", "KV_PATH='it'\\''s.kv' "],
])("printFirstSteps() prints the command for %s with the prefix %j", async (kvPath, variables) => {
  await using service = await Harness.open();
  using errors = new CapturedErrors();
  const config = readConfig((name) => name === "KV_PATH" ? kvPath : undefined);

  await printFirstSteps(service.store, config, "http://localhost:8000");

  assertStringIncludes(errors.text, `$(${variables}deno task accounts create me)`);
  assertEquals(errors.text.match(/KV_PATH=/g)?.length ?? 0, variables === "" ? 0 : 1);
});

Deno.test.each<[Deno.Addr, string]>([
  [
    { transport: "tcp", hostname: "::", port: 80 },
    "http://localhost:80/ and on all other addresses of this machine",
  ],
  [
    { transport: "tcp", hostname: "0.0.0.0", port: 80 },
    "http://localhost:80/ and on all other IPv4 addresses of this machine",
  ],
  [{ transport: "tcp", hostname: "::1", port: 80 }, "http://[::1]:80/"],
  [{ transport: "unix", path: "/run/a.sock" }, "the Unix socket /run/a.sock"],
  [{ transport: "vsock", cid: 3, port: 80 }, "port 80 of the vsock 3"],
])("describeStart() describes %j", (address, expected) => {
  const [line] = describeStart(readConfig(() => undefined), { address, schema: 1 }).split("\n");

  assertEquals(line, `Listening on ${expected}`);
});
