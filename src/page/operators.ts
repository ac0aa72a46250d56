// The operators' page: what it shows is derived from their operations, so it needs no change for further ones.
import type { DeclaredOperation } from "../web/mod.ts";
import { bodyTypeOf, type InputMember, inputsOf, isDocumented } from "../web/openapi.ts";
import { resolved, type Schema, stringifyJson } from "../web/schema.ts";
import { answerSection } from "./console.ts";
import { type Assets, assets, frame, home, read } from "./frame.ts";
import { html } from "./html.ts";
import * as answering from "./script/answer.js";
import * as documenting from "./script/document.js";
import * as forming from "./script/form.js";
import * as operating from "./script/operators.js";
import * as requesting from "./script/request.js";
import * as viewing from "./script/views.js";
import { listsIn, rowParamOf } from "./script/views.js";

/** A field of a form. Its value is JSON, or a text. */
export interface Input extends Pick<InputMember, "name" | "place" | "isRequired"> {
  readonly choices: readonly string[];
  /** What holds if it is empty; empty if nothing does. */
  readonly absent: string;
  readonly isText: boolean;
  readonly isNullable: boolean;
}

/** An operation as a form. */
export interface Form extends Pick<DeclaredOperation, "id" | "method" | "path" | "summary"> {
  readonly description: string;
  /** The question before it is sent; empty if there is none. */
  readonly confirm: string;
  /** Media type of its body; empty if it has none. */
  readonly type: string;
  readonly inputs: readonly Input[];
  /** Descriptions of its answers by status. */
  readonly answers: Readonly<Record<string, string>>;
  /** How its list is shown; undefined if it answers none. */
  readonly view?: View;
  /** Id of the operation whose list it is about, if there is one, and whether it is about a row of it. */
  readonly list?: string;
  readonly isOfRow?: boolean;
}

/** A list as a table. */
export interface View {
  readonly title: string;
  readonly columns: readonly Column[];
  /** Names of the field that identifies a row and, if it is in their bodies, of the list of these. */
  readonly key: string;
  readonly keys: string;
}

/** Fields of a row that are shown together. Paths are names that lead to a value. */
export interface Column {
  readonly label: string;
  readonly path: readonly string[];
  readonly kind: (typeof KINDS)[number];
  /** Where the limit of a meter is; empty for other kinds. */
  readonly limit: readonly string[];
}

/** The members of an object, by name. */
type Members = Readonly<Record<string, Schema["json"]>>;

/** Kinds of columns, in their order. */
const KINDS = ["plain", "choice", "meter", "number", "json", "time"] as const;
/** The name that meters have, in objects with a limit: shown as prints. */
const METER = "used";
/** The parameter of lists that only a Link sets. */
const PAGING = "cursor";
/** The style and the script of the operators' page. */
export const OPERATORS_ASSETS: Assets = assets([read("page.css"), read("operators.css")], [
  ...[requesting, answering, viewing, documenting, forming, operating],
]);

/** What the page shows: operators' operations as forms, and those that answer a list as views. */
export function formsOf(operations: readonly DeclaredOperation[]): Form[] {
  const own = operations.filter((operation) => isDocumented(operation, "/operator/v1"));
  const forms = own.map((operation) => {
    const members = membersOf(operation);
    return { ...formOf(operation), ...(members && { view: viewOf(operation, members, own) }) };
  });
  return forms.map((form) => {
    // The list that it is about has the longest path with which its own begins.
    const [list] = listsIn(forms)
      .filter(({ id, path }) => id !== form.id && `${form.path}/`.startsWith(`${path}/`))
      .toSorted((one, other) => other.path.length - one.path.length);
    if (!list) return form;
    const isOfRow = rowParamOf(list.path, form.path) !== undefined ||
      form.inputs.some(({ name, place }) => place === "body" && name === list.view.keys);
    return { ...form, list: list.id, isOfRow };
  });
}

function formOf(operation: DeclaredOperation): Form {
  const { id, method, path, summary, description = "", confirm, answers } = operation;
  return {
    ...{ id, method, path, summary, description },
    confirm: confirm ?? (method === "DELETE" ? `${summary}: this cannot be undone. Continue?` : ""),
    type: bodyTypeOf(operation),
    inputs: inputsOf(operation)
      .filter(({ name, place }) => !(method === "GET" && place === "query" && name === PAGING))
      .map(inputOf),
    answers: Object.fromEntries(
      Object.entries(answers).map(([status, { description }]) => [status, description]),
    ),
  };
}

function inputOf({ name, place, isRequired, schema }: InputMember): Input {
  const types = [schema.type ?? []].flat();
  const choices = types.includes("boolean") ? ["true", "false"] : schema.enum ?? [];
  const isText = place !== "body" || types.includes("string");
  const usual = schema.default ?? "";
  return {
    ...{ name, place, isRequired },
    choices: choices.filter((choice) => choice !== null),
    absent: typeof usual === "string" ? usual : stringifyJson(usual),
    isText,
    isNullable: types.includes("null"),
  };
}

/** The members of the rows that an operation answers; undefined if it answers no list of objects. */
function membersOf({ method, answers }: DeclaredOperation): Members | undefined {
  const { body } = answers[200] ?? {};
  if (method !== "GET" || !body) return undefined;
  const resolve = (json: Schema["json"]) => resolved({ json, definitions: body.definitions });
  const { items } = resolve(body.json);
  const { properties } = items ? resolve(items) : {};
  return properties &&
    Object.fromEntries(Object.entries(properties).map(([name, json]) => [name, resolve(json)]));
}

function viewOf(
  { path, tag, summary }: DeclaredOperation,
  members: Members,
  own: readonly DeclaredOperation[],
): View {
  const names = Object.keys(members);
  const params = own.flatMap((other) => rowParamOf(path, other.path)?.toLowerCase() ?? []);
  const [key = names[0] ?? ""] = names
    .filter((name) => params.some((param) => param.endsWith(name.toLowerCase())))
    .toSorted((one, other) => other.length - one.length);
  const alike = own.filter((other) => other.tag === tag && !other.path.includes("{") && membersOf(other));
  const isAlone = alike.length === 1 && alike[0]?.path === path;
  const title = isAlone && tag ? tag.name : summary;
  return { title, key, keys: `${key}s`, columns: columnsOf(members, key) };
}

/** The columns of rows with these members, first that of the key. Objects with meters are shown by these alone. */
function columnsOf(members: Members, key: string): Column[] {
  const meters = Object.entries(members).flatMap(([name, schema]) => metersOf([name], schema, members));
  const isMetered = (name: string) => meters.some(({ path, limit }) => path[0] === name || limit[0] === name);
  const others = Object.entries(members).filter(([name]) => !isMetered(name)).map(([name, schema]) => {
    const kind = kindOf(schema);
    return { label: `${wordsOf(name)}${kind === "time" ? " UTC" : ""}`, path: [name], kind, limit: [] };
  });
  const rank = ({ path: [name], kind }: Column) => name === key ? -1 : KINDS.indexOf(kind);
  return [...others, ...meters].toSorted((one, other) => rank(one) - rank(other));
}

/** The meters in an object: its limit is another integer beside it or, by the same name, in another object. */
function metersOf(
  path: readonly string[],
  { properties = {} }: Schema["json"],
  members: Members,
): Column[] {
  if (!properties[METER]) {
    return Object.entries(properties).flatMap(([name, inner]) => metersOf([...path, name], inner, members));
  }
  const last = path.at(-1) ?? "";
  const beside = Object.keys(properties).find((name) =>
    name !== METER && properties[name]?.type === "integer"
  );
  const elsewhere = Object.keys(members).find((name) =>
    members[name]?.properties?.[last]?.type === "integer"
  );
  const limit = beside ? [...path, beside] : elsewhere ? [elsewhere, last] : undefined;
  return limit ? [{ label: path.map(wordsOf).join(", "), path: [...path, METER], kind: "meter", limit }] : [];
}

function kindOf(
  { type, format, enum: values, properties, "x-extensible-enum": known }: Schema["json"],
): Column["kind"] {
  const types = [type ?? []].flat();
  if (format === "date-time") return "time";
  if (values ?? known ?? types.includes("boolean")) return "choice";
  if (properties || types.includes("array")) return "json";
  return types.includes("integer") || types.includes("number") ? "number" : "plain";
}

/** A name in camel case, as words. */
function wordsOf(name: string): string {
  return name.replaceAll(/(?<=[a-z\d])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

/** Renders the page. It has no operation, so that only operators see which there are: its script asks for them. */
export function renderOperatorsPage(title: string): string {
  const name = `${title} for operators`;
  const body = html`
    <header id="bar">
      ${home(title)}
      <button type="button" popovertarget="contents">Contents</button>
    </header>
    <nav id="contents" popover aria-label="Contents">
      ${home(title)}
      <div id="views"></div>
      <button type="button" id="forget" class="link" hidden>Forget the token</button>
    </nav>
    <main id="content" tabindex="-1">
      <h1 id="title">${name}</h1>
      <p class="unscripted">This page needs JavaScript.</p>
      <form id="enter" class="scripted">
        <input class="quiet" autocomplete="username" value="operator" tabindex="-1" aria-hidden="true">
        <label for="token">Operator's token</label>
        <div class="row">
          <input id="token" type="password" autocomplete="current-password" required aria-describedby="note">
          <button class="filled">Open</button>
        </div>
        <p id="note" class="small">Only the memory of this page keeps it: a reload asks again.</p>
      </form>
      <div id="view" hidden>
        <p id="about" class="small"></p>
        <p id="actions" class="choices"></p>
        <form id="filters" autocomplete="off"></form>
        <p id="notice" class="bad"></p>
        <p id="same" class="small"></p>
        <div id="table" role="region" aria-labelledby="title" tabindex="0">
          <table id="rows"></table>
        </div>
        <p id="pages" class="links"></p>
      </div>
    </main>
    <dialog id="panel" aria-labelledby="subject">
      <div class="row">
        <h2 id="subject" tabindex="-1"></h2>
        <button type="button" id="close" class="link">Close</button>
      </div>
      <p id="row-actions" class="choices"></p>
      <form id="call" autocomplete="off" autocapitalize="off" spellcheck="false" hidden>
        <h3 id="summary"></h3>
        <p class="line"><b id="method"></b> <code id="target"></code></p>
        <p id="explained" class="small"></p>
        <fieldset id="inputs"></fieldset>
        <button id="send" class="filled"></button>
      </form>
      ${answerSection()}
      <dl id="facts"></dl>
    </dialog>
  `;
  return frame(OPERATORS_ASSETS, { title: name, description: `${name}: lists, and what can be done.`, body });
}
