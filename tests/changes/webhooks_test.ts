// The sender of webhooks in the guide for operators.
import { Buffer } from "node:buffer";
import { createHmac } from "node:crypto";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { OPERATORS_LOG } from "../../src/resource/mod.ts";
import { OPERATOR_TOKEN } from "../support/desk.ts";
import { switchFeed } from "../support/feed.ts";
import { assertTypes, codeIn, OPERATORS_GUIDE, temporaryFolder } from "../support/guides.ts";
import { Office } from "../support/office.ts";

/** A webhook as its receiver got it. */
interface Received {
  readonly id: string;
  readonly type: string;
  readonly timestamp: string;
  readonly data: { readonly id?: number; readonly accountId?: string };
}

function nameOf({ type, data }: Received): string {
  return `${type} ${data.id}`;
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
  const code = await codeIn(OPERATORS_GUIDE, "### Send webhooks");
  await assertTypes(code);
  await Deno.writeTextFile(`${folder.path}/webhooks.ts`, code);
  await using office = await Office.open();
  await switchFeed(office);
  const received: Received[] = [];
  let [refusals, notify] = [1, () => {}];
  /** The webhooks that are accepted, but get no response until this resolves. */
  let held = "";
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const listening = { port: 0, hostname: "127.0.0.1", onListen() {} } as const;
  await using service = Deno.serve(listening, (request, info) => office.app.fetch(request, info));
  await using receiver = Deno.serve(listening, async (request) => {
    const [id, timestamp, signature] = ["id", "timestamp", "signature"]
      .map((name) => request.headers.get(`webhook-${name}`) ?? "");
    const body = await request.text();
    assertEquals(signature, signatureOf(id ?? "", timestamp ?? "", body));
    assert(Math.abs(Number(timestamp) - Date.now() / 1_000) < 60);
    const isRefused = refusals-- > 0;
    const webhook: Received = { id, ...JSON.parse(body) };
    if (!isRefused) received.push(webhook);
    notify();
    if (nameOf(webhook) === held) await released;
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
  held = "bookings.deleted 1";
  const second = start();
  await until(() => received.some((webhook) => nameOf(webhook) === held));
  await kill(second);
  // Another change takes its place, as after a restore.
  const [newest] = await Array.fromAsync(
    office.kv.list({ prefix: OPERATORS_LOG }, { limit: 1, reverse: true }),
  );
  await office.kv.delete(newest?.key ?? []);
  office.now += 1;
  held = "rooms.created 4";
  await office.addRooms(1);
  const third = start();
  await until(() => received.some((webhook) => nameOf(webhook) === held));
  await kill(third);
  for (const days of [0, 7]) await switchFeed(office, days);
  held = "";
  release();
  const fourth = start();
  await until(() => received.some(({ type }) => type === "feed.interrupted"));
  await office.addRooms(1);
  await until(() => received.at(-1)?.type === "rooms.created");
  await kill(fourth);

  const accountId = await office.idOf(office.ann);
  const once = [...new Map(received.map((one) => [one.id, one])).values()];
  assertEquals(once.map(({ type, data }) => [type, data]), [
    ["rooms.created", { id: 2 }],
    ["rooms.created", { id: 3 }],
    ["bookings.created", { id: 1, accountId }],
    ["bookings.deleted", { id: 1, accountId }],
    ["rooms.created", { id: 4 }],
    ["feed.interrupted", {}],
    ["rooms.created", { id: 5 }],
  ]);
  assertMatch(once[0]?.timestamp ?? "", /^2027-01-15T12:00:00/);
});
