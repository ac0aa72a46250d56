/**
 * The client's address: the connection's, or behind a proxy the last entry of the header in which it
 * passes addresses on, which is the one entry that a client cannot forge.
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
  return last || ("hostname" in remoteAddr ? remoteAddr.hostname : "local");
}
