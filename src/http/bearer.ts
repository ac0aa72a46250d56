const BEARER = /^Bearer +([^\s]+) *$/i;

/** The bearer token in an Authorization value (RFC 6750 section 2.1); undefined if it holds none. */
export function bearerToken(authorization: string | null): string | undefined {
  return BEARER.exec(authorization ?? "")?.[1];
}
