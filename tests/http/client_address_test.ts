import { assertEquals } from "@std/assert";
import { clientAddress } from "../../src/http/client_address.ts";

const TCP: Deno.NetAddr = { transport: "tcp", hostname: "10.0.0.1", port: 80 };

Deno.test.each([
  ["X-Forwarded-For", "203.0.113.9", "203.0.113.9"],
  ["X-Forwarded-For", "198.51.100.1, 203.0.113.9", "203.0.113.9"],
  ["x-forwarded-for", "198.51.100.1,  203.0.113.9 ", "203.0.113.9"],
  ["X-Forwarded-For", "", "10.0.0.1"],
  ["X-Forwarded-For", "203.0.113.9, ", "10.0.0.1"],
  ["X-Real-IP", "203.0.113.9", "10.0.0.1"],
  [undefined, "203.0.113.9", "10.0.0.1"],
])("clientAddress() trusts %s, given X-Forwarded-For: %s", (header, value, expected) => {
  const request = new Request("http://localhost/", { headers: { "x-forwarded-for": value } });
  assertEquals(clientAddress(request, TCP, header), expected);
});

Deno.test.each([
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:db8:1:2::6", "2001:db8:1:2::/64"],
  ["2001:db8::6", "2001:db8:0:0::/64"],
  ["::1", "0:0:0:0::/64"],
  ["::ffff:192.0.2.1", "::ffff:192.0.2.1"],
])("clientAddress() of the IPv6 address %s is the network %s", (hostname, network) => {
  const address: Deno.NetAddr = { transport: "tcp", hostname, port: 1 };
  assertEquals(clientAddress(new Request("http://localhost/"), address, undefined), network);
});

Deno.test("clientAddress() is one for all who connect over a Unix socket", () => {
  const address: Deno.UnixAddr = { transport: "unix", path: "/run/animals.sock" };
  assertEquals(clientAddress(new Request("http://localhost/"), address, undefined), "local");
});
