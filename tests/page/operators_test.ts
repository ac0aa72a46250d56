import { assert, assertEquals, assertMatch } from "@std/assert";
import { CATALOGUE } from "../../src/catalogue/catalogue.ts";
import type { DeclaredOperation } from "../../src/web/operation.ts";
import { inputsOf } from "../../src/web/openapi.ts";
import {
  boolean,
  extensibleEnum,
  integer,
  list,
  nullable,
  object,
  oneOf,
  optional,
  output,
  resolved,
  text,
} from "../../src/web/schema.ts";
import { ACCESS, createResponse, operation } from "../../src/part.ts";
import { formsOf } from "../../src/page/operators.ts";
import { OPERATORS_PAGE } from "../../src/page/page_operations.ts";
import { OPERATOR_TOKEN } from "../support/desk.ts";
import { Harness } from "../support/harness.ts";
import { Office } from "../support/office.ts";
import { ALL } from "../support/operations.ts";
import { LOANS } from "./loans.ts";

await using harness = await Harness.open(ALL);
const ofLoans = LOANS.operatorOperations?.(harness.store) ?? [];
/** The operators' operations of a service, and those of a part that it does not know. */
const OPERATIONS: readonly DeclaredOperation[] = [...harness.app.operations, ...ofLoans];
const FORMS = formsOf(OPERATIONS);

/** Ids of the operations that are about a list, or about its rows. */
function about(list: string, isOfRow: boolean) {
  return FORMS.filter((form) => form.list === list && form.isOfRow === isOfRow).map(({ id }) => id);
}

/** How the list of an operation is shown. */
function viewOf(id: string) {
  const { view } = FORMS.find((form) => form.id === id) ?? {};
  assert(view);
  return view;
}

Deno.test("service has the operators' page only with operators' tokens, else what any other path has", async () => {
  await using without = await Harness.open({
    metricsTokens: [{ token: "a-token-for-metrics-of-a-test-1234" }],
  });
  const get = async (path: string) => {
    const response = await without.fetch(`GET ${path}`);
    return [response.status, (await response.text()).replaceAll(path, "")];
  };
  for (const path of ["/operator", "/operator/", "/operator/forms"]) {
    assertEquals(await get(path), await get("/operator/none"));
  }
  assertEquals((await (await without.fetch("GET /")).text()).includes("/operator"), false);
});

Deno.test("operators' page is public, shares nothing, allows only itself, and has nothing of the operations", async () => {
  await using service = await Harness.open(ALL);
  const response = await service.fetch("GET /operator/", { headers: { origin: "https://other.example" } });
  const { status, headers } = response;
  const html = await response.text();
  const policy = headers.get("content-security-policy") ?? "";

  assertEquals([status, headers.get("content-type")], [200, "text/html; charset=utf-8"]);
  assertEquals(headers.get("cross-origin-opener-policy"), "same-origin");
  assertEquals([headers.get("access-control-allow-origin"), headers.get("x-ratelimit-limit")], [null, null]);
  for (const name of ["style", "script"]) {
    const [own] = [...html.matchAll(new RegExp(`<${name}\\b[^>]*>(.*?)</${name}>`, "gs"))];
    const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(own?.[1]));
    assert(policy.includes(`${name}-src 'sha256-${new Uint8Array(hash).toBase64()}';`));
  }
  assertMatch(policy, /connect-src 'self';.*frame-ancestors 'none';.*trusted-types 'none'$/);
  assertEquals(html.match(/operator\/v1|listAccounts|sessionStorage|localStorage| style=| on\w+=/g), null);
  const etag = headers.get("etag") ?? "";
  assertEquals((await service.fetch("GET /operator/", { headers: { "if-none-match": etag } })).status, 304);
});

Deno.test("/operator leads to the operators' page, wherever a proxy serves it", async () => {
  await using service = await Harness.open(ALL);
  const { status, headers } = await service.fetch("GET /operator");

  assertEquals(status, 308);
  const seen = new URL(headers.get("location") ?? "", "https://proxy.example/store/operator");
  assertEquals(seen.href, "https://proxy.example/store/operator/");
});

Deno.test("operators' forms need a token of operators, which may only read", async () => {
  const reading = "a-token-that-reads-in-a-test-12345";
  const operatorReadTokens = [{ token: reading }];
  await using service = await Harness.open({ ...ALL, operatorReadTokens });
  for (
    const [key, status] of [[undefined, 401], ["wrong", 401], [reading, 200], [OPERATOR_TOKEN, 200]] as const
  ) {
    const response = await service.fetch("GET /operator/forms", { ...key && { key } });
    assertEquals([response.status, response.headers.get("cache-control")], [status, "no-store"]);
    await response.body?.cancel();
  }
});

Deno.test("formsOf() has a form for every operation of operators, and a view for each that answers a list", () => {
  const expected = OPERATIONS.filter(({ path, tag }) => tag && path.startsWith("/operator/v1/"));

  assertEquals(FORMS.map(({ id }) => id), expected.map(({ id }) => id));
  assertEquals(about("listAccounts", true).includes("updateAccount"), true);
  assertEquals(about("listAccounts", false), ["createAccount", "createAccounts", "applyPlans"]);
  assertEquals(about("listAccountKeys", true), ["revokeAccountKey"]);
  assertEquals(about("listOwnedThings", true), ["updateOwnedThing", "deleteOwnedThing"]);
  const { columns } = viewOf("listAccounts");
  const meters = columns.filter(({ kind }) => kind === "meter");
  assertEquals(
    columns.filter(({ path: [name = "", ...rest] }) => /^(usage|limits)$/.test(name) && rest.length === 0),
    [],
  );
  assertEquals(meters.map(({ path, limit }) => [path, limit]), [
    [["usage", "minute", "used"], ["limits", "minute"]],
    [["usage", "day", "used"], ["limits", "day"]],
  ]);
});

Deno.test("formsOf() shows the list, the filter and the action of a part that it does not know", () => {
  const { columns, ...view } = viewOf("listLoans");

  assertEquals(view, { title: "Loans", key: "loanNumber", keys: "loanNumbers" });
  assertEquals([about("listLoans", true), about("listLoans", false)], [["returnLoan", "remindOfLoans"], []]);
  assertEquals(columns.map(({ label, kind, limit }) => [label, kind, ...limit]), [
    ["loan number", "number"],
    ["borrower", "plain"],
    ["note", "plain"],
    ["tool", "choice"],
    ["hours", "meter", "hours", "allowed"],
    ["due at UTC", "time"],
  ]);
  const [list, back] = ["listLoans", "returnLoan"].map((id) => FORMS.find((form) => form.id === id));
  assertEquals(list?.inputs.map(({ name, choices }) => [name, ...choices]), [["tool", "saw", "drill"], [
    "after",
  ]]);
  assertEquals([back?.confirm, back?.inputs[1]?.isRequired], ["Is the tool in order?", true]);
});

const SHELVES = { name: "Shelves", description: "Shelves" };

/** An operation of operators on shelves, which answers this. */
function ofShelves(method: "GET" | "POST", path: string, given: object = {}) {
  const declared = {
    access: ACCESS.operator,
    id: `${method} ${path}`,
    summary: path,
    tag: SHELVES,
    ...given,
  };
  return operation({ ...declared, method, path: `/operator/v1/${path}` }, () => createResponse(null));
}

Deno.test("formsOf() makes fields of what a body and a query may have", () => {
  const body = object({
    name: nullable(text({ max: 9 })),
    days: integer(0, 9),
    size: optional(integer(1, 9), 3),
    kind: optional(nullable(oneOf(["wood", "steel"]))),
    isFull: optional(boolean()),
    cursor: optional(text()),
  }, { examples: [{ name: "oak", days: 7, size: 5 }] });
  const query = { cursor: optional(text()), below: optional(integer(1, 9)) };
  const [form, list] = formsOf([
    ofShelves("POST", "shelves", { body, query }),
    ofShelves("GET", "shelves", { query }),
  ]);

  const expected = [
    { name: "cursor", place: "query", choices: [], isText: true, isNullable: false },
    { name: "below", place: "query", choices: [], isText: true, isNullable: false },
    { name: "name", place: "body", choices: [], isText: true, isNullable: true },
    { name: "days", place: "body", choices: [], isText: false, isNullable: false },
    { name: "size", place: "body", choices: [], isText: false, isNullable: false },
    { name: "kind", place: "body", choices: ["wood", "steel"], isText: true, isNullable: true },
    { name: "isFull", place: "body", choices: ["true", "false"], isText: false, isNullable: false },
    { name: "cursor", place: "body", choices: [], isText: true, isNullable: false },
  ];
  const inputs = form?.inputs.map(({ absent: _, isRequired: __, ...input }): object => input);
  assertEquals(inputs, expected);
  assertEquals(list?.inputs.map(({ name }) => name), ["below"]);
  assertEquals(form?.inputs.map(({ absent }) => absent), ["", "", "", "", "3", "", "", ""]);
  const required = form?.inputs.filter(({ isRequired }) => isRequired).map(({ name }) => name);
  assertEquals(required, ["name", "days"]);
});

Deno.test("formsOf() has no view of texts, of a list beside a field, nor of what a change answers, and tells lists of like paths apart", () => {
  const row = output({
    no: integer(1, 9),
    shelfNo: integer(1, 9),
    colour: extensibleEnum(["red"], "Colour"),
  });
  const rows = (item: Parameters<typeof list>[0]) => ({
    answers: { 200: { description: "All", body: list(item, 9) } },
  });
  const page = output({ boards: list(row, 9), days: integer(1, 9) });
  const forms = formsOf([
    ofShelves("GET", "shelves", rows(row)),
    ofShelves("POST", "shelves/{shelfNo}/empty", { params: { shelfNo: integer(1, 9) } }),
    ofShelves("POST", "shelvesOfGlass"),
    ofShelves("GET", "shelves/names", rows(text())),
    ofShelves("POST", "shelves/fill", rows(row)),
    ofShelves("GET", "boards", rows(row)),
    ofShelves("GET", "boards/new", { answers: { 200: { description: "", body: page } } }),
  ]);

  assertEquals(forms.map(({ view, list, isOfRow }) => [view?.title, list, isOfRow]), [
    ["shelves", undefined, undefined],
    [undefined, "GET shelves", true],
    [undefined, undefined, undefined],
    [undefined, "GET shelves", false],
    [undefined, "GET shelves", false],
    ["boards", undefined, undefined],
    [undefined, "GET boards", false],
  ]);
  const columns = forms[0]?.view?.columns.map(({ path: [name], kind }) => [name, kind]);
  assertEquals(columns, [["shelfNo", "number"], ["colour", "choice"], ["no", "number"]]);
});

Deno.test("formsOf() asks before what cannot be undone", () => {
  const asks = FORMS.filter(({ confirm }) => confirm !== "").map(({ id }) => id);

  assertEquals(FORMS.filter(({ method, confirm }) => method === "DELETE" && confirm === ""), []);
  for (const id of ["rotateAccountKey", "closeAccount", "deleteAccount", "switchChanges"]) {
    assert(asks.includes(id), id);
  }
  const undeclared = formsOf(OPERATIONS.map(({ confirm: _, ...operation }) => operation));
  assertEquals(undeclared.filter(({ method, confirm }) => (method === "DELETE") !== (confirm !== "")), []);
});

Deno.test("descriptions of operators' operations tell of a default only if a field has one", () => {
  const telling = FORMS.filter(({ description }) => description.includes("the default"));

  assert(telling.length > 0);
  assertEquals(telling.filter(({ inputs }) => inputs.every(({ absent }) => absent === "")), []);
});

Deno.test("code of the operators' page names no operation and no field", async () => {
  // A collection of a fork may have fields of any names, such as `title`.
  const own = (path: string) =>
    path.startsWith("/operator/v1/") && !CATALOGUE.resources.some(({ name }) => path.split("/")[3] === name);
  const names = OPERATIONS.filter(({ path }) => own(path)).flatMap((operation) => {
    const bodies = Object.values(operation.answers).flatMap(({ body }) => body ?? []);
    const rows = bodies.map((body) => ({ ...body, json: resolved(body).items ?? body.json }));
    const fields = rows.flatMap((row) => Object.keys(resolved(row).properties ?? {}));
    const inputs = inputsOf(operation).filter(({ place }) => place !== "header").map(({ name }) => name);
    return [operation.id, ...fields, ...inputs];
  });
  // What only a Link sets, what makes an object a meter, and what a relation, an attribute, a class and an element are
  // also called.
  const known = new Set(names).difference(new Set(["cursor", "used", "next", "scope", "refused", "note"]));
  assert(known.size > 40, `${known.size}`);
  for (const file of ["operators.ts", "script/operators.js", "script/views.js"]) {
    const text = await Deno.readTextFile(new URL(`../../src/page/${file}`, import.meta.url));
    const code = text.replaceAll(/\/\*\*[^]*?\*\/|^ *\/\/.*$|html`[^]*?`;|Pick<.*>/gm, "");
    assert(code.includes("function"), file);
    const found = [...known].filter((name) =>
      new RegExp(/[A-Z]/.test(name) ? `\\b${name}\\b` : `"${name}"|\\brow\\??\\.${name}\\b`).test(code)
    );
    assertEquals([file, ...found], [file]);
  }
});

Deno.test("operators' page shows what a fork has: its private collections with their owners", async () => {
  await using office = await Office.open();
  const response = await office.operate("GET /operator/forms");
  const forms: ReturnType<typeof formsOf> = await response.json();

  const { view } = forms.find(({ path, method }) => path === "/operator/v1/bookings" && method === "GET") ??
    {};
  assertEquals([view?.title, view?.key], ["Bookings", "id"]);
  assert(view?.columns.some(({ path: [name] }) => name === "accountId"));
  const options = { operations: () => [], hasOperators: false };
  assertEquals(OPERATORS_PAGE.operations({ ...optionsOf(office), ...options }), []);
});

/** What a part needs to know, of a harness. */
function optionsOf({ store }: Harness): Parameters<typeof OPERATORS_PAGE.operations>[0] {
  return {
    ...{
      store,
      catalogue: ALL.catalogue,
      items: [],
      environment: "staging",
      publicUrl: undefined,
      version: "1",
    },
    ...{ signUpIsOpen: true, hasOperators: true, securityContact: undefined, operations: () => [] },
  };
}
