import { assert, assertLess } from "@std/assert";

const GUIDE = new URL("../../src/operator/README.md", import.meta.url);
const [UNIT = ""] = /(?<=^```ini\n)\[Unit\]\n[^]*?(?=^```$)/m.exec(await Deno.readTextFile(GUIDE)) ?? [];
const HAS_SYSTEMD = await new Deno.Command("systemd-analyze", { args: ["--version"], stdout: "null" })
  .output()
  .then(() => true, () => false);

Deno.test("guide's systemd unit gives up on a service that fails at once", () => {
  const numberOf = (name: string) => Number(RegExp(`^${name}=(\\d+)$`, "m").exec(UNIT)?.[1]);

  assertLess(numberOf("StartLimitBurst") * numberOf("RestartSec"), numberOf("StartLimitIntervalSec") / 2);
});

Deno.test({
  name: "guide's systemd unit has an exposure under 3",
  ignore: !HAS_SYSTEMD,
  async fn() {
    const folder = await Deno.makeTempDir();
    const path = `${folder}/store.service`;
    await Deno.writeTextFile(path, UNIT);
    const args = ["security", "--offline=true", "--threshold=29", "--no-pager", path];
    const { success, stdout, stderr } = await new Deno.Command("systemd-analyze", { args }).output();
    await Deno.remove(folder, { recursive: true });

    assert(success, new TextDecoder().decode(stderr) + new TextDecoder().decode(stdout).slice(-200));
  },
});
