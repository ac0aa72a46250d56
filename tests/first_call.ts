// The first call in README.md, for curl and in TypeScript, from the declaration of a collection.
import { CATALOGUE } from "../src/catalogue/catalogue.ts";
import { SHIPPED } from "./process/shipped.ts";
import { withDefaults } from "../src/resource/resource.ts";
import { stringifyJson } from "../src/web/json.ts";

const CAN_ADD = CATALOGUE.resources.includes(SHIPPED);
const RESOURCE = CAN_ADD ? SHIPPED : CATALOGUE.resources[0];
const { name, path, nouns: { an, many }, fields, filters: [filter], examples: { item } } = RESOURCE;
const URL = `http://localhost:8000${path}`;
const JSON_TEXT = stringifyJson(item);
const EXAMPLE: unknown = JSON.parse(JSON_TEXT);
const VALUE = filter === undefined ? undefined : withDefaults(fields, item)[filter];
const QUERY = VALUE === undefined ? "" : `?${filter}=${encodeURIComponent(`${VALUE}`)}`;

/** The section, in Markdown. */
export const FIRST_CALL: string = `## First call

In another terminal, in the same folder, create an account, ${
  CAN_ADD ? `add ${an}, ` : ""
}and list the ${many}${QUERY === "" ? "" : ` with the same \`${filter}\``}:

\`\`\`sh
export KEY=$(deno task accounts create me)
${
  CAN_ADD
    ? `curl -w '\\n' -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" \\
  -d '${JSON_TEXT.replaceAll("'", `'\\''`)}' ${URL}
`
    : ""
}curl -w '\\n' -H "Authorization: Bearer $KEY" "${URL}${QUERY}"
\`\`\`

To do the same in TypeScript, save this as \`${name}.ts\` in another folder and run \`deno run -NE ${name}.ts\`:

\`\`\`ts
const url = "${URL}";
const headers = { "Authorization": \`Bearer \${Deno.env.get("KEY")}\`, "Content-Type": "application/json" };
${
  CAN_ADD
    ? `const item = ${Deno.inspect(EXAMPLE, { breakLength: Infinity, depth: Infinity })};
await fetch(url, { method: "POST", headers, body: JSON.stringify(item) });
`
    : ""
}const response = await fetch(\`\${url}${QUERY}\`, { headers });
console.table(await response.json());
\`\`\`
`;
