import { assertEquals } from "@std/assert";

Deno.test("another project can limit its own tenants, which are stored in its own rows", async () => {
  const args = ["run", "--quiet", "--no-lock", "main.ts"];
  const cwd = new URL("project/", import.meta.url);

  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), { args, cwd }).output();

  const [out, err] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
  assertEquals([code, err], [0, ""]);
  assertEquals(JSON.parse(out ?? ""), [{ 200: 60, 429: 30 }, { 401: 3 }]);
});
