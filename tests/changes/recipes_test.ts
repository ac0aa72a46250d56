// The programs that the guides have for the feed of changes.
import { Buffer } from "node:buffer";
import { createHmac } from "node:crypto";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { DAY } from "../../src/base/mod.ts";
import { OPERATOR_TOKEN } from "../support/desk.ts";
import { switchFeed } from "../support/feed.ts";
import { BLUE, Office } from "../support/office.ts";
import { seededRandom } from "../support/time.ts";

const GUIDE = new URL("../../src/page/guide.md", import.meta.url);
const OPERATORS_GUIDE = new URL("../../src/operator/README.md", import.meta.url);
/** What the guide has in other sections. */
const DECLARED = `
declare function send(url: string, init: RequestInit): Promise<Response>;
declare function listAll(url: string, init: RequestInit): Promise<{ id: number }[]>;
`;

/** The last code of a section of a guide. */
async function codeIn(guide: URL, heading: string): Promise<string> {
  const [, section = ""] = (await Deno.readTextFile(guide)).split(`\n${heading}\n`);
  const [, code = ""] = /^```\w+(?: ignore)?\n([^]*?)\n```$/m.exec(section) ?? [];
  return code;
}

/** A folder that is removed in the end. */
async function temporaryFolder(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await Deno.makeTempDir({ prefix: "feed_" });
  return { path, [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }) };
}

/** Asserts that a program has the right types. */
async function assertTypes(code: string): Promise<void> {
  await using folder = await temporaryFolder();
  await Deno.writeTextFile(`${folder.path}/code.ts`, code);
  const { success, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["check", "--no-config", `${folder.path}/code.ts`],
    env: { NO_COLOR: "1" },
  }).output();
  assert(success, new TextDecoder().decode(stderr));
}

Deno.test("guides have programs for the feed with correct types", async () => {
  await assertTypes(`${DECLARED}${await codeIn(GUIDE, "## Changes")}`);
  await assertTypes(await codeIn(OPERATORS_GUIDE, "### Send webhooks"));
});

Deno.test("guide has a mirror that is equal to the lists at the end, through changes, sweeps and gaps", async () => {
  await using office = await Office.open();
  await switchFeed(office);
  for (let count = 0; count < 3; count++) await office.book(office.ann);
  const init = { key: office.ann };
  const send = (url: string) => office.fetch(`GET ${url}`, init);
  const listAll = async (url: string) => await (await send(url)).json();
  const code = (await codeIn(GUIDE, "## Changes")).replace("async function*", "export $&");
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
    () => office.fetch(`PATCH /v1/bookings/${pick()}`, { key: office.ann, json: { title: `${random()}` } }),
    () => office.fetch(`DELETE /v1/bookings/${pick()}`, { key: office.ann }),
    () => office.operate(`DELETE /operator/v1/rooms/${pick()}`),
  ];
  const pick = () => 1 + Math.floor(random() * 20);

  let rounds = 0;
  for await (const _ of mirror("/v1", init, names, items)) {
    assertEquals([...items].sort(), [...await listed()].sort());
    if (++rounds === 30) break;
    for (let count = 0; count < 5; count++) {
      const response = await happen[Math.floor(random() * happen.length)]?.();
      await response?.body?.cancel();
    }
    if (rounds === 10) { for (const days of [0, 7]) await switchFeed(office, days); }
    if (rounds === 20) {
      office.now += 8 * DAY;
      await office.addRooms(1);
      for (const step of office.app.sweeps) while (await step(office.now));
    }
  }
});

/** A webhook as its receiver got it. */
interface Received {
  readonly id: string;
  readonly type: string;
  readonly timestamp: string;
  readonly data: unknown;
}

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/** The signature that Standard Webhooks describes. */
function signatureOf(id: string, timestamp: string, body: string): string {
  const key = Buffer.from(SECRET.replace("whsec_", ""), "base64");
  return `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64")}`;
}

Deno.test("guide for operators has a worker that sends signed webhooks of each change, also after it is killed", async () => {
  // The example in the specification.
  const example = signatureOf("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", '{"test": 2432232314}');
  assertEquals(example, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
  await using folder = await temporaryFolder();
  await Deno.writeTextFile(`${folder.path}/webhooks.ts`, await codeIn(OPERATORS_GUIDE, "### Send webhooks"));
  await using office = await Office.open();
  await switchFeed(office);
  const received: Received[] = [];
  let [refusals, notify] = [1, () => {}];
  const listening = { port: 0, hostname: "127.0.0.1", onListen() {} } as const;
  await using service = Deno.serve(listening, (request, info) => office.app.fetch(request, info));
  await using receiver = Deno.serve(listening, async (request) => {
    const [id, timestamp, signature] = ["id", "timestamp", "signature"]
      .map((name) => request.headers.get(`webhook-${name}`) ?? "");
    const body = await request.text();
    assertEquals(signature, signatureOf(id ?? "", timestamp ?? "", body));
    assert(Math.abs(Number(timestamp) - Date.now() / 1_000) < 60);
    const isRefused = refusals-- > 0;
    if (!isRefused) received.push({ id, ...JSON.parse(body) });
    notify();
    return new Response(null, { status: isRefused ? 500 : 204 });
  });
  const start = () =>
    new Deno.Command(Deno.execPath(), {
      args: ["run", "--no-config", "-NE", "--allow-read=.", "--allow-write=.", "webhooks.ts"],
      cwd: folder.path,
      env: {
        SERVICE_URL: `http://127.0.0.1:${service.addr.port}`,
        WEBHOOK_URL: `http://127.0.0.1:${receiver.addr.port}`,
        ...{ OPERATOR_TOKEN, WEBHOOK_SECRET: SECRET, NO_COLOR: "1" },
      },
      stdout: "null",
    }).spawn();
  /** Resolves when a condition holds, which is asked with each webhook and, without any, often. */
  const until = async (isReached: () => boolean | Promise<boolean>) => {
    while (!await isReached()) {
      const { promise, resolve } = Promise.withResolvers<void>();
      notify = resolve;
      const timer = setTimeout(resolve, 50);
      await promise;
      clearTimeout(timer);
    }
  };
  const kill = async (worker: Deno.ChildProcess) => {
    worker.kill("SIGKILL");
    await worker.status;
  };
  const cursor = () => Deno.readTextFile(`${folder.path}/cursor`).catch(() => "");

  const first = start();
  await until(async () => await cursor() !== "");
  await office.addRooms(2);
  await office.book(office.ann);
  await until(() => received.length === 2);
  await kill(first);
  await office.fetch("DELETE /v1/bookings/1", { key: office.ann });
  const second = start();
  await until(() => received.some(({ type }) => type === "bookings.deleted"));
  for (const days of [0, 7]) await switchFeed(office, days);
  await until(() => received.some(({ type }) => type === "feed.interrupted"));
  await office.addRooms(1);
  await until(() => received.at(-1)?.type === "rooms.created");
  await kill(second);

  const accountId = await office.idOf(office.ann);
  const once = [...new Map(received.map((one) => [one.id, one])).values()];
  assertEquals(once.map(({ type, data }) => [type, data]), [
    ["rooms.created", { id: 2 }],
    ["rooms.created", { id: 3 }],
    ["bookings.created", { id: 1, accountId }],
    ["bookings.deleted", { id: 1, accountId }],
    ["feed.interrupted", {}],
    ["rooms.created", { id: 4 }],
  ]);
  assertMatch(once[0]?.timestamp ?? "", /^2027-01-15T12:00:00/);
});
