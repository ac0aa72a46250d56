/** One response of the service, to be repeated as a constant. */

const OF_THE_HTTP_LAYER = ["connection", "content-length", "date", "keep-alive", "transfer-encoding"];

const [url = "", key = ""] = Deno.args;
const original = await fetch(url, {
  headers: { authorization: `Bearer ${key}`, "accept-encoding": "identity" },
});
const body = await original.text();
const headers = [...original.headers].filter(([name]) => !OF_THE_HTTP_LAYER.includes(name));
const { status } = original;

/** The response, made anew each time. */
export function constantReply(): Response {
  return new Response(body, { status, headers });
}
