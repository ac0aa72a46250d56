/** Gives an animal a name as a version stored it that took any: in both its rows. */
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
