// Programs that are not part of the project.

/**
 * Whether a test is ignored because one of the programs that it runs is not installed. With `CI` set none is: such a
 * test fails.
 */
export function lacks(...programs: readonly string[]): boolean {
  const folders = Deno.env.get("PATH")?.split(":") ?? [];
  const isInstalled = (program: string) => folders.some((folder) => isFile(`${folder}/${program}`));
  return !Deno.env.get("CI") && !programs.every(isInstalled);
}

function isFile(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}
