import { decodeJson, decodeText } from "../../src/kv/row.ts";
import type { Stored } from "./ledger.ts";

/** Reads every animal and message of a KV. */
export async function readStored(kv: Deno.Kv): Promise<Stored[]> {
  const animals = await Array.fromAsync(kv.list({ prefix: ["pets"] }), (entry): Stored => {
    const { id, name, categoryId } = JSON.parse(decodeText(entry).split("\n")[0] ?? "");
    return { id, name, value: categoryId };
  });
  const messages = await Array.fromAsync(kv.list({ prefix: ["messages"] }), (entry): Stored => {
    return { name: decodeJson<{ message: string }>(entry).message, value: 0 };
  });
  return [...animals, ...messages];
}
