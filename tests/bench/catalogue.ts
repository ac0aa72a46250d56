import { COLLECTION, RARE } from "./collection.ts";
import type { Target } from "./contenders.ts";
import { sendOnce } from "./measure.ts";
import { Failure, note } from "./terminal.ts";
import { CREATE, create, LIST } from "./workloads.ts";

// Independent of the collection's size, so the page of rare items is the same work in every collection.
const RARE_ITEMS = 20;
const CONCURRENCY = 256;
const PER_NOTE = 100_000;

/** Adds `size` items over HTTP, 20 of them rare. */
export async function fill(target: Target, size: number): Promise<void> {
  let added = 0;
  async function addSome(): Promise<void> {
    while (added < size) {
      const turn = ++added;
      const isRare = turn % Math.ceil(size / RARE_ITEMS) === 0;
      const { status: answer } = await sendOnce(target, isRare && RARE ? create(RARE.item) : CREATE);
      if (answer !== 201) {
        throw new Failure(`A create returned ${answer}`);
      }
      if (turn % PER_NOTE === 0) note(`${turn} of ${size} items`);
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
      const [, link = ""] = /<(.*)>; rel="next"/.exec(headers.get("link") ?? "") ?? [];
      next = link === "" ? undefined : link.slice(link.indexOf(COLLECTION.path));
    }
  }
  return page;
}
