import { isAuthority } from "./authority.ts";

/**
 * Scheme and authority that the client used, also when a proxy forwarded the request and said so in
 * `X-Forwarded-Proto` and `X-Forwarded-Host`. Empty, for relative references, when neither is usable.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * const headers = { "X-Forwarded-Proto": "https", "X-Forwarded-Host": "pets.example" };
 * assertEquals(clientOrigin(new Request("http://10.0.0.1:8000/v1/pets", { headers })), "https://pets.example");
 * ```
 */
export function clientOrigin(request: Request): string {
  const [scheme = "", , host = ""] = request.url.split("/", 3);
  const forwardedScheme = first(request.headers.get("x-forwarded-proto"));
  const authority = [first(request.headers.get("x-forwarded-host")), host].find(isAuthority);
  if (authority === undefined) return "";
  return `${
    forwardedScheme === "https" || forwardedScheme === "http" ? `${forwardedScheme}:` : scheme
  }//${authority}`;
}

/** Of what several proxies appended, the first is what the client used. */
function first(list: string | null): string {
  return list?.split(",", 1)[0]?.trim() ?? "";
}
