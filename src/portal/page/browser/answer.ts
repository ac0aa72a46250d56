/** A piece of JSON text and what it is. */
export interface JsonPiece {
  readonly text: string;
  readonly kind: "name" | "string" | "number" | "literal" | "plain";
}

/** A limit as the headers of a response describe it. */
export interface LimitWindow {
  readonly name: string;
  readonly limit: number;
  readonly remaining: number;
  /** Until it opens again. */
  readonly seconds: number;
}

/** JSON text indented and in pieces to colour. It is not parsed: every digit of a number stays. */
export function jsonPieces(text: string): JsonPiece[] {
  const token = /"(?:[^"\\]|\\.)*"(\s*:)?|-?\d[\d.eE+-]*|true|false|null|[{}[\],]/g;
  const pieces: JsonPiece[] = [];
  const add = (kind: JsonPiece["kind"], text: string) => pieces.push({ kind, text });
  let depth = 0;
  const breakLine = () => add("plain", `\n${"  ".repeat(depth)}`);
  let previous = "";
  for (const [found, colon] of text.matchAll(token)) {
    const opened = previous === "{" || previous === "[";
    if (found === "}" || found === "]") {
      depth--;
      if (!opened) breakLine();
      add("plain", found);
    } else {
      if (opened) breakLine();
      if (found === "{" || found === "[") depth++;
      if (colon !== undefined) {
        add("name", found.slice(0, -colon.length));
        add("plain", ": ");
      } else {
        add(jsonKind(found), found);
      }
      if (found === ",") breakLine();
    }
    previous = found;
  }
  return pieces;
}

/** What a token is, other than a name. */
export function jsonKind(token: string): JsonPiece["kind"] {
  if (token.startsWith('"')) return "string";
  if (/^[-\d]/.test(token)) return "number";
  return /^[a-z]/.test(token) ? "literal" : "plain";
}

/** The limits that a response tells of: `RateLimit-Policy` says how many requests, `RateLimit` how many are left. */
export function readLimits(headers: Headers): LimitWindow[] {
  const limits = new Map(
    [...(headers.get("ratelimit-policy") ?? "").matchAll(/"(\w+)";q=(\d+)/g)]
      .map(([, name, limit]) => [name, Number(limit)]),
  );
  return [...(headers.get("ratelimit") ?? "").matchAll(/"(\w+)";r=(\d+);t=(\d+)/g)]
    .map(([, name = "", remaining, seconds]) => ({
      name,
      limit: limits.get(name) ?? 0,
      remaining: Number(remaining),
      seconds: Number(seconds),
    }));
}

/** The headers of a response: those that a client acts on, in the order in which they matter, and the rest. */
export function sortHeaders(headers: Headers): { first: [string, string][]; rest: [string, string][] } {
  const telling = [
    "retry-after",
    "www-auth",
    "allow",
    "location",
    "link",
    "etag",
    "idempotency",
    "deprec",
    "sunset",
  ];
  const place = (name: string) =>
    [...telling, "ratelimit", "x-ratelimit"].findIndex((it) => name.startsWith(it));
  const all = [...headers];
  return {
    first: all.filter(([name]) => place(name) >= 0).sort(([one], [other]) => place(one) - place(other)),
    rest: all.filter(([name]) => place(name) < 0),
  };
}

/** The cursor in the link to the next page; empty on the last page. */
export function nextCursor(link: string | null): string {
  return /[?&]cursor=([^&>]+)[^,]*rel="next"/.exec(link ?? "")?.[1] ?? "";
}

/** The `code` and `message` of an Error body; both empty where it is none. */
export function readProblem(text: string): { code: string; message: string } {
  try {
    const { code = "", message = "" } = JSON.parse(text);
    return { code: String(code), message: String(message) };
  } catch {
    return { code: "", message: "" };
  }
}
