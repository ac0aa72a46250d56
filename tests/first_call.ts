// The first call in README.md, in three languages, from the declaration of a collection.
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

Or, in Python, save this as \`${name}.py\` and run \`python3 ${name}.py\`:

\`\`\`py
import json, os
from urllib.request import Request, urlopen
url = "${URL}"
headers = {"Authorization": f"Bearer {os.environ['KEY']}", "Content-Type": "application/json"}
${
  CAN_ADD
    ? `body = json.dumps(${inPython(EXAMPLE)}).encode()\nurlopen(Request(url, body, headers))\n`
    : ""
}for item in json.load(urlopen(Request(f"{url}${QUERY}", headers=headers))):
    print(item)
\`\`\`
`;

/** A value from JSON as Python writes it. */
function inPython(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(inPython).join(", ")}]`;
  if (typeof value === "object" && value !== null) {
    return `{${
      Object.entries(value).map(([key, own]) => `${JSON.stringify(key)}: ${inPython(own)}`).join(", ")
    }}`;
  }
  return { true: "True", false: "False", null: "None" }[String(value)] ?? JSON.stringify(value);
}
