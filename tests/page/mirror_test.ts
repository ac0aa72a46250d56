// The mirror in the guide for clients.
import { assert, assertEquals } from "@std/assert";
import { DAY } from "../../src/base/mod.ts";
import { switchFeed } from "../support/feed.ts";
import { assertTypes, CLIENTS_GUIDE, codeIn } from "../support/guides.ts";
import { BLUE, Office } from "../support/office.ts";
import { seededRandom } from "../support/time.ts";

/** What the guide has in other sections. */
const DECLARED = `
declare function send(url: string, init: RequestInit): Promise<Response>;
declare function listAll(url: string, init: RequestInit): Promise<{ id: number }[]>;
`;

Deno.test("guide has a mirror with correct types", async () => {
  await assertTypes(`${DECLARED}${await codeIn(CLIENTS_GUIDE, "## Changes")}`);
});

Deno.test("guide has a mirror that is equal to the lists at the end, through changes, sweeps and gaps", async () => {
  await using office = await Office.open();
  await switchFeed(office);
  for (let count = 0; count < 3; count++) await office.book(office.ann);
  const init = { key: office.ann };
  /** The items that were read since the last page. */
  const read = new Set<string>();
  const send = (url: string) => {
    if (/\/changes\?/.test(url)) read.clear();
    else if (/\/\d+$/.test(url)) assert(!read.has(url) && read.add(url), url);
    return office.fetch(`GET ${url.replace("&wait=20", "")}`, init);
  };
  const listAll = async (url: string) => await (await send(url)).json();
  const code = (await codeIn(CLIENTS_GUIDE, "## Changes")).replace("async function*", "export $&");
  const given = "const { send, listAll } = globalThis.feedRecipe;\n";
  Object.assign(globalThis, { feedRecipe: { send, listAll } });
  const { mirror } = await import(`data:application/typescript,${encodeURIComponent(given + code)}`);
  const items = new Map<string, { id: number }>();
  const names = ["rooms", "bookings"];
  const listed = async () => {
    const all = await Promise.all(
      names.map(async (name) =>
        (await listAll(`/v1/${name}?limit=100`)).map((item: { id: number }) => [`${name}/${item.id}`, item])
      ),
    );
    return new Map(all.flat());
  };
  const random = seededRandom(3);
  const happen = [
    () =>
      office.operate("POST /operator/v1/rooms", { json: { ...BLUE, seats: 1 + Math.floor(random() * 90) } }),
    () => office.book(office.ann),
    () => office.book(office.ben),
    () => rename(pick(), `${random()}`),
    () => office.fetch(`DELETE /v1/bookings/${pick()}`, { key: office.ann }),
    () => office.operate(`DELETE /operator/v1/rooms/${pick()}`),
  ];
  const rename = (id: number, title: string) =>
    office.fetch(`PATCH /v1/bookings/${id}`, { key: office.ann, json: { title } });
  const pick = () => 1 + Math.floor(random() * 20);

  let rounds = 0;
  for await (const _ of mirror("/v1", init, names, items)) {
    assertEquals([...items].sort(), [...await listed()].sort());
    if (++rounds === 30) break;
    for (let count = 0; count < 5; count++) {
      const response = await happen[Math.floor(random() * happen.length)]?.();
      await response?.body?.cancel();
    }
    if (rounds === 5) { for (const title of ["one", "two"]) await rename(3, title); }
    if (rounds === 10) { for (const days of [0, 7]) await switchFeed(office, days); }
    if (rounds === 20) {
      office.now += 8 * DAY;
      await office.addRooms(1);
      for (const step of office.app.sweeps) while (await step(office.now));
    }
  }
});
