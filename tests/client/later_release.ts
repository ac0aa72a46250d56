// The service as a later release may be: its objects have one more field, and its accounts another plan.
import { isJsonObject, parseJson, stringifyJson } from "../../src/web/json.ts";

/** What a later release adds to every object in a response, also to errors. */
const LATER = { later: { since: [1, null] } };
/** The plan of every account. */
export const PLAN = "platinum";

/** Forwards requests to a service, and changes the JSON of its responses. */
export function serveLaterRelease(service: string): Deno.HttpServer<Deno.NetAddr> {
  return Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, async (request) => {
    const { pathname, search } = new URL(request.url);
    const { method, headers, body } = request;
    const response = await fetch(service + pathname + search, { method, headers, body, redirect: "manual" });
    if (response.headers.get("content-type") !== "application/json") return response;
    const changed = stringifyJson(later(parseJson(await response.text())));
    const kept = [...response.headers].filter(([name]) => !/^content-(?:length|encoding)$/.test(name));
    return new Response(changed, { status: response.status, headers: kept });
  });
}

function later(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(later);
  if (!isJsonObject(value)) return value;
  const members = Object.entries(value).map((
    [name, member],
  ) => [name, name === "plan" ? PLAN : later(member)]);
  return { ...Object.fromEntries(members), ...LATER };
}
