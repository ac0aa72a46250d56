import type { Target } from "./contenders.ts";
import { sendOnce } from "./measure.ts";
import { Failure, note } from "./terminal.ts";
import { create, LIST } from "./workloads.ts";

// Independent of the catalogue's size, so the page of sold animals is the same work in every catalogue.
const SOLD = 20;
const CONCURRENCY = 256;
const PER_NOTE = 100_000;

/** Adds `size` animals over HTTP, 20 of them sold. */
export async function fill(target: Target, size: number): Promise<void> {
  let added = 0;
  async function addSome(): Promise<void> {
    while (added < size) {
      const turn = ++added;
      const status = turn % Math.ceil(size / SOLD) === 0 ? "sold" : "available";
      const { status: answer } = await sendOnce(
        target,
        create(`Animal ${turn}`, status),
      );
      if (answer !== 201) {
        throw new Failure(`A create returned ${answer}`);
      }
      if (turn % PER_NOTE === 0) note(`${turn} of ${size} animals`);
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, addSome));
}

/** Finds the path of the last page by following the links: first of large pages, then of pages of the usual size. */
export async function lastPage(target: Target): Promise<string> {
  let page = LIST.path;
  for (const limit of [100, 20]) {
    let next: string | undefined = page.replace(/limit=\d+/, `limit=${limit}`);
    while (next !== undefined) {
      page = next;
      const { headers } = await sendOnce(target, { ...LIST, path: page });
      next = /(\/v1\/pets.*)>; rel="next"/.exec(headers.get("link") ?? "")?.[1];
    }
  }
  return page;
}
