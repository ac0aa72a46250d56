/** A request of the console, before it is sent. */
export interface ConsoleRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string | undefined;
}

/** What is selected in the console, and under which key. */
export interface Selection {
  /** What the URLs of the service begin with. */
  readonly base: string;
  readonly method: string;
  /** With parameters in braces. */
  readonly path: string;
  /** Media type of the body; empty where there is none. */
  readonly bodyType: string;
  /** The API key; empty to send none. */
  readonly key: string;
}

/** A field of the console's form, as it was filled in. */
export interface Field {
  readonly name: string;
  readonly place: string;
  readonly type: string;
  readonly value: string;
}

/** The request that the fields make; those left empty are left out. */
export function buildRequest(
  { base, method, path, bodyType, key }: Selection,
  fields: readonly Field[],
): ConsoleRequest {
  const filled = fields.filter(({ value, place }) => value !== "" || place === "path");
  const at = (place: string) => filled.filter((field) => field.place === place);
  const pathname = at("path").reduce(
    (text, { name, value }) => text.replace(`{${name}}`, encodeURIComponent(value.toWellFormed())),
    path,
  );
  const query = at("query").map(({ name, value }) => `${name}=${encodeURIComponent(value.toWellFormed())}`)
    .join("&");
  const members = at("body").map(({ name, type, value }) =>
    `${JSON.stringify(name)}:${jsonValue(type, value)}`
  );
  return {
    method,
    url: base + pathname + (query && `?${query}`),
    headers: [
      ...(key ? [["Authorization", `Bearer ${key}`] as const] : []),
      ...(bodyType ? [["Content-Type", bodyType] as const] : []),
      ...at("header").map(({ name, value }) => [name, value] as const),
    ],
    body: bodyType ? `{${members.join(",")}}` : undefined,
  };
}

/** The field as JSON. An integer keeps its digits: as a JavaScript number it could lose some. */
export function jsonValue(type: string, value: string): string {
  return type === "integer" && /^-?(?:0|[1-9]\d*)$/.test(value) ? value : JSON.stringify(value);
}
