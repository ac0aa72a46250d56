import type { Target } from "./contenders.ts";
import { ask } from "./measure.ts";
import { Failure, note } from "./terminal.ts";
import { create, LIST } from "./works.ts";

// Whatever the size of the catalogue, so that the page of those that are sold is the same work.
const SOLD = 20;
const AT_ONCE = 256;
const PER_NOTE = 100_000;

/** Adds `size` animals over HTTP. */
export async function fill(target: Target, size: number): Promise<void> {
  let added = 0;
  async function addSome(): Promise<void> {
    while (added < size) {
      const turn = ++added;
      const status = turn % Math.ceil(size / SOLD) === 0 ? "sold" : "available";
      const { status: answer } = await ask(
        target,
        create(`Animal ${turn}`, status),
      );
      if (answer !== 201) {
        throw new Failure(`A new animal was answered with ${answer}`);
      }
      if (turn % PER_NOTE === 0) note(`${turn} of ${size} animals`);
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, addSome));
}

/** The path of the catalogue's last page, found by following the links, of larger pages at first. */
export async function lastPage(target: Target): Promise<string> {
  let page = LIST.path;
  for (const limit of [100, 20]) {
    let next: string | undefined = page.replace(/limit=\d+/, `limit=${limit}`);
    while (next !== undefined) {
      page = next;
      const { headers } = await ask(target, { ...LIST, path: page });
      next = /(\/v1\/pets.*)>; rel="next"/.exec(headers.get("link") ?? "")?.[1];
    }
  }
  return page;
}
