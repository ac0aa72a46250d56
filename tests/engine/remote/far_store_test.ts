import { assertEquals, assertMatch } from "@std/assert";
import { VERSION } from "../../../src/app/version.ts";
import { call, outcome } from "../../support/client.ts";
import { runServer, ServerProcess } from "../../process/process.ts";
import { addItem, LIST, TITLE } from "../../process/shipped.ts";
import { FarStore, untilReady } from "./far_store.ts";

Deno.test("server prints one line and waits while its KV Connect server is not up yet", async () => {
  await using far = await FarStore.create();
  const { key } = await far.file.createAccount();
  far.proxy.treatment = "refuse";

  await using server = new ServerProcess({ KV_PATH: far.proxy.url });
  await server.wrote("stderr", /^Waiting/m);
  far.proxy.treatment = "pass";
  await server.listening();
  const answer = await addItem(server, key);
  const { code, errorLines } = await server.stop();

  assertEquals(outcome(answer), "201");
  assertEquals(code, 0);
  const { host } = new URL(far.proxy.url);
  assertEquals(errorLines, [
    `Waiting for the KV ${host} to respond.`,
    `Listening on http://localhost:${server.port}/`,
    `${TITLE} ${VERSION}: environment staging, sign-up open, data version 1 in the KV ${host}.`,
  ]);
});

Deno.test("server exits 0 if it is stopped while it waits for a KV Connect server", async () => {
  await using far = await FarStore.create();
  far.proxy.treatment = "swallow";
  await using server = new ServerProcess({ KV_PATH: far.proxy.url });
  await server.wrote("stderr", /^Waiting/m);

  assertEquals((await server.stop()).code, 0);
});

Deno.test("server recovers after its connections to Deno Deploy's own KV die silently", async () => {
  await using far = await FarStore.create();
  const { key } = await far.file.createAccount();
  await using server = await far.serveOnDeploy();
  const list = async () => outcome(await call(server, key, LIST));
  assertEquals(await list(), "200");

  far.proxy.silence();

  assertEquals(await list(), "503 store_unavailable");
  await untilReady(server);
  assertEquals(await list(), "200");
});

Deno.test("server prints what is missing if nobody can get a key on Deno Deploy", async () => {
  await using far = await FarStore.create();
  const lines = [];

  for (const variables of [{}, { DENO_TIMELINE: "production" }]) {
    await using server = await far.serveOnDeploy(variables);
    await server.wrote("stderr", /^.+: environment .+\n/m);
    const { errorLines } = await server.stop();
    lines.push(errorLines.slice(2));
  }

  assertEquals(lines, [[], [
    "Nobody can get an API key. Set OPERATOR_TOKEN to use commands, or SIGN_UP=open.",
  ]]);
});

Deno.test("server refuses to start on Deno Deploy if no KV is attached", async () => {
  const { code, stdout, errorLines } = await runServer({ DENO_DEPLOYMENT_ID: "7f3k" });

  assertEquals([code, stdout, errorLines.length], [1, "", 1], errorLines.join("\n"));
  assertMatch(errorLines.join(), /^The KV of this deployment cannot be used: .+[^.]\.$/);
});
