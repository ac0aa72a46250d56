import { isIPv4, isIPv6 } from "node:net";

/**
 * Whether a header that must have one value was sent twice: its values, joined by `Headers`, are invalid together and
 * valid alone.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * const headers = new Headers([["Content-Length", "5"], ["Content-Length", "7"]]);
 * assertEquals(wasSentTwice(headers.get("Content-Length") ?? "", (length) => /^\d+$/.test(length)), true);
 * ```
 */
export function wasSentTwice(joined: string, isValid: (value: string) => boolean): boolean {
  return !isValid(joined) && joined.split(", ").every(isValid);
}

const BEARER = /^Bearer +([^\s]+) *$/i;
const USUAL = "Bearer ";

/** The bearer token in an Authorization header (RFC 6750 section 2.1); undefined if there is none. */
export function bearerToken(authorization: string | null): string | undefined {
  if (authorization === null) return undefined;
  const token = authorization.startsWith(USUAL) ? authorization.slice(USUAL.length) : "";
  if (token !== "" && !/\s/.test(token)) return token; // Much faster than the expression for all forms.
  return BEARER.exec(authorization)?.[1];
}

/**
 * The client's IPv4 address or IPv6 network. Behind a proxy, it is the last entry of `header`, the only one that a
 * client cannot forge. Without a header, or if the entry is not an address, it is the address of the connection.
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
  return addressIn(forwarded?.split(",").at(-1)?.trim() ?? "") ?? addressIn(own) ?? own;
}

const WITH_PORT = /^(?:\[(.+)\]|([\d.]+))(?::\d+)?$/;
const MAPPED = /^::ffff:([\da-f]+):([\da-f]+)$/;

/** The IPv4 address or IPv6 network in a text. Clients can choose the last 64 bits of an IPv6 address. */
function addressIn(text: string): string | undefined {
  const [, bracketed, dotted] = WITH_PORT.exec(text) ?? [];
  const address = bracketed ?? dotted ?? text;
  if (isIPv4(address)) return address;
  return isIPv6(address) ? networkOf(address) : undefined;
}

function networkOf(address: string): string {
  // The URL parser formats addresses according to RFC 5952. It does not accept zones.
  const canonical = new URL(`http://[${address.replace(/%.*/, "")}]`).hostname.slice(1, -1);
  const [, high, low] = MAPPED.exec(canonical) ?? [];
  if (high !== undefined && low !== undefined) return dotted(parseInt(high, 16), parseInt(low, 16));
  const [before = [], after = []] = canonical.split("::").map((part) => part === "" ? [] : part.split(":"));
  const zeros = Array<string>(8 - before.length - after.length).fill("0");
  return `${[...before, ...zeros, ...after].slice(0, 4).join(":")}::/64`;
}

/** An IPv4 address from the last two groups of an IPv4-mapped IPv6 address (RFC 4291 section 2.5.5.2). */
function dotted(high: number, low: number): string {
  return [high >> 8, high & 255, low >> 8, low & 255].join(".");
}
