import { assertEquals } from "@std/assert";
import { clientAddress } from "../../src/web/request.ts";

const FORWARDED = "X-Forwarded-For";

/** The client's address in a request from `hostname` with this X-Forwarded-For. */
function addressOf(hostname: string, forwarded?: string, header?: string): string {
  const request = new Request("http://localhost/", { headers: { [FORWARDED]: forwarded ?? "" } });
  return clientAddress(request, { transport: "tcp", hostname, port: 80 }, header);
}

Deno.test.each([
  [FORWARDED, "203.0.113.9", "203.0.113.9"],
  ["x-forwarded-for", "198.51.100.1,  203.0.113.9 ", "203.0.113.9"],
  [FORWARDED, "", "10.0.0.1"],
  [FORWARDED, "203.0.113.9, ", "10.0.0.1"],
  ["X-Real-IP", "203.0.113.9", "10.0.0.1"],
  [undefined, "203.0.113.9", "10.0.0.1"],
])(
  "clientAddress() with the trusted header %s and X-Forwarded-For '%s' returns %s",
  (header, value, expected) => {
    assertEquals(addressOf("10.0.0.1", value, header), expected);
  },
);

Deno.test("clientAddress() returns the last entry of several lines", () => {
  const lines = ["192.0.2.1", "198.51.100.1, 203.0.113.9"];
  const headers = lines.map((line): [string, string] => [FORWARDED, line]);
  const request = new Request("http://localhost/", { headers });

  assertEquals(
    clientAddress(request, { transport: "tcp", hostname: "10.0.0.1", port: 80 }, FORWARDED),
    "203.0.113.9",
  );
});

Deno.test.each([
  ["203.0.113.9", "203.0.113.9 203.0.113.9:4711 [203.0.113.9]:4711"],
  ["2001:db8:1:2::/64", "2001:db8:1:2:3:4:5:6 2001:db8:1:2::6 2001:DB8:0001:2:0:0:0:6 2001:db8:1:2:3:4:5::"],
  ["2001:db8:1:2::/64", "[2001:db8:1:2::6] [2001:db8:1:2:3:4:5:6]:4711 2001:db8:1:2::6%eth0"],
  ["2001:db8:1:2::/64", "[2001:db8:1:2::%25a]:1"],
  ["2001:db8:0:0::/64", "2001:db8:: 2001:db8::6 2001:db8::1:2:3:4"],
  ["0:2:3:4::/64", "::2:3:4:5:6:7:8"],
  ["0:0:0:0::/64", ":: ::1 [::1]:80 ::fffe:192.0.2.1"],
  ["192.0.2.1", "::ffff:192.0.2.1 ::FFFF:192.0.2.1 ::ffff:c000:201 [::ffff:c000:201]:80"],
  ["192.0.2.1", "0:0:0:0:0:ffff:c000:0201"],
  ["0.0.0.1", "::ffff:0:1 0::ffff:0.0.0.1%eth0"],
])("clientAddress() returns %s for each of %s", (expected, spellings) => {
  for (const text of spellings.split(" ")) {
    assertEquals([text, addressOf(text)], [text, expected]);
    assertEquals([text, addressOf("10.0.0.1", `1.1.1.1, ${text}`, FORWARDED)], [text, expected]);
  }
});

Deno.test("clientAddress() returns the connection's address if the entry is not an address", () => {
  for (const entry of "unknown _hidden 203.0.113 203.0.113.256 203.0.113.9: 1:2:3 [::1 [] a:1".split(" ")) {
    assertEquals([entry, addressOf("::ffff:10.0.0.1", `203.0.113.9, ${entry}`, FORWARDED)], [
      entry,
      "10.0.0.1",
    ]);
  }
});

Deno.test("clientAddress() falls back to the host name, or to local for a Unix socket", () => {
  const unix: Deno.UnixAddr = { transport: "unix", path: "/run/things.sock" };

  assertEquals(addressOf("somewhere"), "somewhere");
  assertEquals(clientAddress(new Request("http://localhost/"), unix, undefined), "local");
});
