// A copy of the service, for a test to change.
const ROOT = `${import.meta.dirname}/../..`;

/** Copies what the service needs to run. Resolves to the folder of the copy. */
export async function copyService(): Promise<string> {
  const folder = await Deno.makeTempDir({ prefix: "service_" });
  for (const name of ["main.ts", "deno.json", "deno.lock"]) {
    await Deno.copyFile(`${ROOT}/${name}`, `${folder}/${name}`);
  }
  await copyFolder(`${ROOT}/src`, `${folder}/src`);
  return folder;
}

/** Changes the text of a file. */
export async function rewrite(path: string, change: (text: string) => string): Promise<void> {
  await Deno.writeTextFile(path, change(await Deno.readTextFile(path)));
}

async function copyFolder(from: string, to: string): Promise<void> {
  await Deno.mkdir(to);
  for await (const { name, isDirectory } of Deno.readDir(from)) {
    await (isDirectory ? copyFolder : Deno.copyFile)(`${from}/${name}`, `${to}/${name}`);
  }
}
