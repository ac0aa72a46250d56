import { isIPv4, isIPv6 } from "node:net";

/**
 * The client's address, of IPv6 its network: the connection's, or behind a proxy the last entry of the
 * header in which it passes addresses on, which is the one entry that a client cannot forge. An entry that is
 * no address counts as the connection's own.
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
  const own = "hostname" in remoteAddr ? remoteAddr.hostname : "local";
  return parse(forwarded?.split(",").at(-1)?.trim() ?? "") ?? parse(own) ?? own;
}

const WITH_PORT = /^(?:\[(.+)\]|([\d.]+))(?::\d+)?$/;
const MAPPED = /^::ffff:([\da-f]+):([\da-f]+)$/;

/** The IPv4 address, or of an IPv6 address the network: its last 64 bits are the client's to choose. */
function parse(text: string): string | undefined {
  const [, bracketed, dotted] = WITH_PORT.exec(text) ?? [];
  const address = bracketed ?? dotted ?? text;
  if (isIPv4(address)) return address;
  return isIPv6(address) ? networkOf(address) : undefined;
}

function networkOf(address: string): string {
  // The URL parser writes an address the one way that RFC 5952 says; it knows no zones.
  const canonical = new URL(`http://[${address.replace(/%.*/, "")}]`).hostname.slice(1, -1);
  const [, high, low] = MAPPED.exec(canonical) ?? [];
  if (high !== undefined && low !== undefined) return dotted(parseInt(high, 16), parseInt(low, 16));
  const [before = [], after = []] = canonical.split("::").map((part) => part === "" ? [] : part.split(":"));
  const zeros = Array<string>(8 - before.length - after.length).fill("0");
  return `${[...before, ...zeros, ...after].slice(0, 4).join(":")}::/64`;
}

/** An IPv4 address that came mapped into IPv6 (RFC 4291 section 2.5.5.2). */
function dotted(high: number, low: number): string {
  return [high >> 8, high & 255, low >> 8, low & 255].join(".");
}
