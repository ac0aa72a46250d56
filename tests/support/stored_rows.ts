// Checks that stored rows are consistent, and forges rows.
import { assertEquals } from "@std/assert";

const DECODER = new TextDecoder("utf-8", { fatal: true });

/** Asserts that related rows of a KV exist together and agree. */
export async function assertConsistent(kv: Deno.Kv): Promise<void> {
  assertEquals(await findFaults(kv), []);
}

/** Describes the inconsistent rows of a KV. */
export async function findFaults(kv: Deno.Kv): Promise<string[]> {
  const rows = new Map<string, string>();
  for await (const { key, value } of kv.list({ prefix: [] })) {
    const count = value instanceof Deno.KvU64 ? `${value.value}` : "not bytes";
    rows.set(key.join("/"), value instanceof Uint8Array ? DECODER.decode(value) : count);
  }
  return [...rows].flatMap(([name, text]) => faultsOf(name, text, rows));
}

function faultsOf(name: string, text: string, rows: ReadonlyMap<string, string>): string[] {
  const [kind, ...key] = name.split("/");
  const needs = (other: string, holds: string | undefined = rows.get(other) ?? "anything") =>
    rows.get(other) === holds ? [] : [`${name} has no matching ${other}`];
  switch (kind) {
    case "pets": {
      const [json = "", ownerId] = text.split("\n");
      const { id, status } = JSON.parse(json);
      const { next } = JSON.parse(rows.get("ids") ?? '{"next":0}');
      return [
        ...needs(`pets_by_status/${status}/${id}`, text),
        ...needs(`accounts/${ownerId}`),
        ...(`${id}` === key[0] && id < next ? [] : [`${name} has the id ${id}, but the next id is ${next}`]),
      ];
    }
    case "pets_by_status":
      return [
        ...needs(`pets/${key[1]}`, text),
        ...(JSON.parse(text.split("\n")[0] ?? "").status === key[0] ? [] : [`${name} has another status`]),
      ];
    case "accounts":
      return [
        ...needs(`api_keys/${JSON.parse(text).keyHash}`, JSON.stringify(key[0])),
        ...needs(`usage/${key[0]}`),
      ];
    case "api_keys":
      return needs(`accounts/${JSON.parse(text)}`);
    case "idempotency":
      return needs(
        `idempotency_by_expiry/${JSON.parse(text.split("\n")[0] ?? "").expiresAt}/${key.join("/")}`,
      );
    case "idempotency_by_expiry":
      return needs(`idempotency/${key.slice(1).join("/")}`);
    case "messages_waiting": {
      if (key.length === 0) return []; // The count of all messages, which only 1.0.0 keeps.
      const messages = [...rows].filter(([name, text]) =>
        name.startsWith("messages/") && JSON.parse(text).accountId === key[0]
      );
      return messages.length === Number(text) ? [] : [`${name} is ${text}, not ${messages.length}`];
    }
    default:
      return text === "not bytes" ? [`${name} does not hold bytes`] : [];
  }
}

/** Gives an animal a name that only an earlier release accepted, in both of its rows. */
export async function storeName(kv: Deno.Kv, id: number, name: string): Promise<void> {
  for (
    const prefix of [
      ["pets"],
      ...["available", "pending", "sold"].map((status) => ["pets_by_status", status]),
    ]
  ) {
    const { key, value } = await kv.get([...prefix, id]);
    if (!(value instanceof Uint8Array)) continue;
    const [json = "", ownerId] = new TextDecoder().decode(value).split("\n");
    const named = JSON.stringify(name);
    const renamed = json.replace(/"name":"(?:[^"\\]|\\.)*"/, () => `"name":${named}`);
    await kv.set(key, new TextEncoder().encode(`${renamed}\n${ownerId}`));
  }
  await kv.set(["catalogue"], crypto.randomUUID());
}
