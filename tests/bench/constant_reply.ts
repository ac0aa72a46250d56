/** A bare `Deno.serve` that sends the response in REPLY to every request; an argument sets its transfer coding. */

const { status, headers, body } = JSON.parse(Deno.env.get("REPLY") ?? "{}");
const [coding] = Deno.args;
if (coding !== undefined) headers.push(["transfer-encoding", coding]);

Deno.serve({ port: 0, hostname: "127.0.0.1" }, () => new Response(body, { status, headers }));
