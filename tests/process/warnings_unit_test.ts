import { assertEquals } from "@std/assert";
import { warningsOfAddress, warningsOfKv, warningsOfService } from "../../src/process/warnings.ts";

const TCP = { transport: "tcp", port: 8000 } as const;

Deno.test("warningsOfAddress() warns if a header is trusted from clients of other machines", () => {
  const behindProxy = { clientAddressHeader: "x-real-ip", onDeploy: false };
  const [warning = ""] = warningsOfAddress(behindProxy, { ...TCP, hostname: "::" });

  assertEquals(
    warning.replace(/,.*/, ""),
    "Warning: clients that reach port 8000 without the proxy can choose their own address",
  );
  for (const hostname of ["0.0.0.0", "192.0.2.1", "2001:db8::1", "10.0.0.127"]) {
    assertEquals(warningsOfAddress(behindProxy, { ...TCP, hostname }), [warning]);
  }
  for (const hostname of ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"]) {
    assertEquals(warningsOfAddress(behindProxy, { ...TCP, hostname }), []);
  }
  assertEquals(warningsOfAddress(behindProxy, { transport: "unix", path: "/run/a.sock" }), []);
  for (const quiet of [{ onDeploy: true }, { clientAddressHeader: undefined }]) {
    assertEquals(warningsOfAddress({ ...behindProxy, ...quiet }, { ...TCP, hostname: "::" }), []);
  }
});

Deno.test("warningsOfService() and warningsOfKv() warn of tokens that other machines get over http", () => {
  const ofKv = (kvPath: string | undefined, kvToken = "token") => warningsOfKv({ kvPath, kvToken });

  const end = "is sent to kv.example without encryption. Begin";
  const url = "http://kv.example:4512/a";
  assertEquals(warningsOfService(url), [`Warning: the operator's token ${end} SERVICE_URL with https.`]);
  assertEquals(ofKv(url), [`Warning: DENO_KV_ACCESS_TOKEN ${end} KV_PATH with https.`]);
  assertEquals(ofKv(url, ""), []);
  const own = ["localhost", "kv.localhost", "127.0.0.1", "127.1", "[::1]", "[::ffff:127.0.0.1]"];
  for (const quiet of ["https://kv.example", ...own.map((host) => `http://${host}:4512`)]) {
    assertEquals([quiet, ...warningsOfService(quiet), ...ofKv(quiet)], [quiet]);
  }
  assertEquals([undefined, "data/animals.kv", ":memory:"].flatMap((path) => ofKv(path)), []);
  for (const other of ["127.0.0.1.example", "localhost.example", "[2001:db8::1]", "10.0.0.127"]) {
    assertEquals([warningsOfService(`http://${other}`).length, ofKv(`http://${other}`).length], [1, 1]);
  }
});
