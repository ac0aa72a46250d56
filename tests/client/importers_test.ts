// Collections that tools for HTTP requests make of the document: their requests work as they are imported.
import { assert, assertEquals } from "@std/assert";
import { openApiToBruno } from "@usebruno/converters";
import { convert } from "openapi-to-postmanv2";
import { EXAMPLE_KEY_ID } from "../../src/accounts/key_view.ts";
import { OPERATOR_TOKEN } from "../support/desk.ts";
import { switchFeed } from "../support/feed.ts";
import type { Document } from "../support/openapi.ts";
import { Workshop } from "../support/workshop.ts";

/** A request of a collection. */
interface Imported {
  readonly method: string;
  /** Begins with the URL of the service. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

/** An element of a collection of Bruno: a folder or a request. */
interface BrunoItem {
  readonly items?: readonly BrunoItem[];
  readonly request: {
    readonly method: string;
    readonly url: string;
    readonly headers: readonly Member[];
    readonly params: readonly (Member & { readonly type: string })[];
    readonly body: { readonly json: string | null };
  };
}

interface Member {
  readonly name: string;
  readonly value: string;
  readonly enabled: boolean;
}

/** An element of a collection of Postman. */
interface PostmanItem {
  readonly item?: readonly PostmanItem[];
  readonly request: {
    readonly method: string;
    readonly url: { readonly path: readonly string[] };
    readonly body?: { readonly raw: string };
  };
}

/** What Bruno sends: only what is enabled. */
function byBruno(document: Document): Imported[] {
  const requestsIn = ({ items, request }: BrunoItem): Imported[] => {
    if (items) return items.flatMap(requestsIn);
    const { method, url, headers, params, body } = request;
    const enabled = params.filter((one) => one.enabled);
    const path = enabled.filter(({ type }) => type === "path")
      .reduce((path, { name, value }) => path.replace(`:${name}`, value), url);
    const query = enabled.filter(({ type }) => type === "query").map(({ name, value }) => `${name}=${value}`);
    const sent = headers.filter((one) => one.enabled).map(({ name, value }) => [name, value]);
    return [{
      method,
      url: `${path}?${query.join("&")}`,
      headers: Object.fromEntries(sent),
      body: body.json ?? undefined,
    }];
  };
  return requestsIn(openApiToBruno(document));
}

/** Requests as Postman makes them with folders for tags, and parameters from examples. */
function byPostman(document: Document): Promise<PostmanItem["request"][]> {
  const requestsIn = ({ item, request }: PostmanItem): PostmanItem["request"][] =>
    item ? item.flatMap(requestsIn) : [request];
  const data = JSON.stringify(document);
  const options = { requestParametersResolution: "Example", folderStrategy: "Tags" };
  return new Promise((resolve, reject) => {
    convert({ type: "string", data }, options, (error, result) => {
      const collection = result?.output?.[0]?.data;
      if (collection) resolve(requestsIn(collection));
      else reject(error ?? new Error(result?.reason));
    });
  });
}

Deno.test("requests that Bruno imports succeed one after the other, up to the one that closes the account", async () => {
  await using workshop = await Workshop.open({ operatorToken: OPERATOR_TOKEN });
  await switchFeed(workshop);
  const document: Document = await (await workshop.call("GET /v1/openapi.json")).json();
  const requests = byBruno(document);

  assertEquals(requests.length, Object.values(document.paths).flatMap(Object.keys).length);
  let keyId = "";
  for (const { method, url, headers, body } of requests) {
    const target = `${method} ${url.replace("{{baseUrl}}", "/v1")}`.replace(EXAMPLE_KEY_ID, keyId);
    const type = { "content-type": method === "PATCH" ? "application/merge-patch+json" : "application/json" };
    const response = await workshop.call(target, {
      headers: { ...headers, ...(body !== undefined && type) },
      body: body ?? null,
    });
    assertEquals([target, response.ok, headers["Prefer"]], [target, true, undefined]);
    // The id of the key that was added before.
    [keyId] = /key_\w{16}/.exec(await response.text()) ?? [keyId];
  }
});

Deno.test("requests that Postman imports have the bodies of the examples", async () => {
  await using workshop = await Workshop.open();
  const document: Document = await (await workshop.call("GET /v1/openapi.json")).json();
  const requests = await byPostman(document);
  const examples = Object.values(document.paths).flatMap((item) => Object.values(item))
    .flatMap(({ requestBody }) => Object.values(requestBody?.content ?? {})).map(({ example }) => example);

  const bodies = requests.flatMap(({ body }) => body ? [JSON.parse(body.raw)] : []);
  assert(bodies.length > 4);
  assertEquals(bodies, examples);
  const ofAccount = requests.filter(({ url }) => url.path[0]?.startsWith("account"));
  assertEquals(ofAccount.at(-1)?.method, "DELETE");
});
