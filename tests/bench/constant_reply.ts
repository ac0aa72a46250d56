/** A bare `Deno.serve` that sends the response in REPLY to every request. Arguments: a transfer coding, and `native`. */

const { status, headers, body } = JSON.parse(Deno.env.get("REPLY") ?? "{}");
const [coding = "", native] = Deno.args;
if (coding !== "") headers.push(["transfer-encoding", coding]);

function reply(): Response {
  return new Response(body, { status, headers });
}

// Deno answers in native code if the handler has no parameters, which no service that reads requests can have.
const handler = native === "native" ? reply : (_request: Request) => reply();
Deno.serve({ port: 0, hostname: "127.0.0.1" }, handler);
