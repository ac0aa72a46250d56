/** A bare `Deno.serve` that makes one response over and over, without a look at the request. */

const { status, headers, body } = JSON.parse(Deno.args[0] ?? "{}");

Deno.serve(
  { port: Number(Deno.env.get("PORT")), hostname: "127.0.0.1", onListen() {} },
  () => new Response(body, { status, headers }),
);
