// What a client developer would write, with types that are generated from the OpenAPI document.
import createClient from "openapi-fetch";
import type { paths } from "./schema.d.ts";

const [baseUrl = ""] = Deno.args;
const anonymous = createClient<paths>({ baseUrl });
const { data: account, error } = await anonymous.POST("/accounts", { body: { name: "me" } });
if (error) throw new Error(error.message);

const client = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${account.apiKey}` } });
const { data: rex } = await client.POST("/pets", { body: { name: "Rex", categoryId: 1 } });
if (rex === undefined) throw new Error("Rex was not added");
const { error: problem } = await client.PATCH("/pets/{petId}", {
  params: { path: { petId: rex.id } },
  body: { status: "sold" },
});
if (problem) throw new Error(problem.message);
const { data: sold } = await client.GET("/pets", { params: { query: { status: "sold" } } });
Deno.stdout.writeSync(new TextEncoder().encode(`${JSON.stringify(sold)}\n`));
