/**
 * The client's address, of IPv6 its network: the connection's, or behind a proxy the last entry of the
 * header in which it passes addresses on, which is the one entry that a client cannot forge.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * const remoteAddr: Deno.NetAddr = { transport: "tcp", hostname: "10.0.0.1", port: 80 };
 * const request = new Request("http://localhost/", { headers: { "X-Forwarded-For": "1.2.3.4, 5.6.7.8" } });
 * assertEquals(clientAddress(request, remoteAddr, "X-Forwarded-For"), "5.6.7.8");
 * assertEquals(clientAddress(request, remoteAddr, undefined), "10.0.0.1");
 * ```
 */
export function clientAddress(request: Request, remoteAddr: Deno.Addr, header: string | undefined): string {
  const forwarded = header === undefined ? null : request.headers.get(header);
  const last = forwarded?.split(",").at(-1)?.trim();
  return networkOf(last || ("hostname" in remoteAddr ? remoteAddr.hostname : "local"));
}

/** Of an IPv6 address, the first 64 bits: the rest is the client's to choose (RFC 4291 section 2.5.4). */
function networkOf(address: string): string {
  if (!address.includes(":") || address.includes(".")) return address;
  const [head = "", tail = ""] = address.split("::");
  const given = [...groups(head), ...groups(tail)].length;
  const all = [...groups(head), ...Array<string>(Math.max(0, 8 - given)).fill("0"), ...groups(tail)];
  return `${all.slice(0, 4).join(":")}::/64`;
}

function groups(text: string): string[] {
  return text === "" ? [] : text.split(":");
}
