// @ts-check
/// <reference lib="dom" />
// The operators' page: asks for a token, shows lists as tables, and sends what can be done with them and their rows.

import { all, button, copyButton, create, mark, on, part, say, show, write } from "./document.js";
import { blame, field, fields, labelled, onSubmit, valuesOf } from "./form.js";
import { sentences, toldOf } from "./answer.js";
import { buildRequest, exchange, freshKey } from "./request.js";
import {
  bodyOf,
  cellOf,
  columnsFor,
  faultOf,
  listsIn,
  METER_PRINTS,
  nextQuery,
  paramsOf,
  pathWith,
  placeOf,
  printsUsed,
  rowsIn,
  valueAt,
  wordsFor,
} from "./views.js";

/**
 * @typedef {import("./views.js").Column} Column
 * @typedef {import("./views.js").Form} Form
 * @typedef {import("./views.js").Place} Place
 * @typedef {import("./views.js").Row} Row
 * @typedef {Readonly<Record<string, string>>} Values By name.
 */

/**
 * What the page knows. The token is nowhere else: the storage of the session is shared with all pages of the origin.
 * `newKeys` are shown, but not copied.
 * @type {{ token: string, forms: readonly Form[], place?: Place, form?: Form, row?: Row | undefined,
 *   readings: number, newKeys: readonly string[] }}
 */
export const desk = { token: "", forms: [], readings: 0, newKeys: [] };

/**
 * Sends a request with the token, to where the page comes from.
 * @param {Pick<Form, "method" | "path" | "type">} form
 * @param {readonly { name: string, place: string, value: string }[]} [given]
 */
export async function ask({ method, path, type }, given = []) {
  const base = location.origin + location.pathname.replace(/\/operator\/$/, "");
  const call = buildRequest({ base, method, path, type, key: desk.token }, given);
  return { call, answer: await exchange(call) };
}

/** Takes the token of the form, and asks what there is. */
export async function enter() {
  const { value } = field("#token");
  desk.token = value.trim();
  const { answer } = await ask({ method: "GET", path: "/operator/forms", type: "" });
  const fault = faultOf(answer);
  if (fault) return refuse(answer.status === 401 ? "This token is not valid." : fault);
  field("#token").value = "";
  desk.forms = JSON.parse(answer.body);
  for (const id of ["view", "forget"]) part(id).hidden = false;
  part("enter").hidden = true;
  drawContents();
  await go();
}

/** Forgets the token and all that it showed, by a reload, after which the form says why. @param {string} [lost] */
export function leave(lost = "") {
  history.replaceState(sentences("The token is not valid any more. Enter another one", lost), "");
  location.reload();
}

/** Asks for another token. @param {string} fault */
export function refuse(fault) {
  desk.token = "";
  write(part("note"), fault);
  mark(part("note"), "class", "bad");
  mark(part("token"), "aria-invalid", "true");
  part("token").focus();
  say(fault);
}

/** Links to the lists by group, and buttons for what belongs to none. */
export function drawContents() {
  const lists = listsIn(desk.forms).filter(({ path }) => !path.includes("{"));
  const alone = desk.forms.filter(({ view, list }) => !view && !list);
  const links = lists.map(({ path, view: { title } }) => create("li", "", linkTo(title, path)));
  const others = alone.map((form) => create("li", "", actionOf(form)));
  part("views").replaceChildren(create("ul", "", ...links, ...others));
}

/** Shows the list that the address says; by default the first one. */
export async function go() {
  const [list] = listsIn(desk.forms);
  const named = placeOf(desk.forms, location.hash);
  const isElsewhere = !named && desk.place && location.hash !== "";
  const place = named ?? (list && { list, params: {}, query: "" });
  if (!place || isElsewhere) return;
  if (place.list.id !== desk.place?.list.id) {
    for (const id of ["rows", "same", "pages", "notice"]) part(id).replaceChildren();
  }
  Object.assign(desk, { place, row: undefined });
  const { view, path, description } = place.list;
  for (const link of all("#views a")) {
    mark(link, "aria-current", link.getAttribute("href") === `#${path}` && "page");
  }
  document.title = [view.title, ...Object.values(place.params)].join(". ");
  write(part("title"), document.title);
  write(part("about"), description.replaceAll("`", ""));
  part("actions").replaceChildren(...formsOf(place, false).map((form) => actionOf(form)));
  drawFilters(place);
  part("contents").hidePopover();
  await load();
}

/** Reads the rows of the list that is shown. Of several answers, only that of the last request counts. */
export async function load() {
  const { place } = desk;
  if (!place) return;
  const { list, params, query } = place;
  const reading = ++desk.readings;
  mark(part("view"), "aria-busy", "true");
  const path = pathWith(list.path, params);
  const { answer } = await ask({ ...list, path: path + (query && `?${query}`) });
  if (reading !== desk.readings) return;
  mark(part("view"), "aria-busy", false);
  // A panel may have a new key, which leaving would lose.
  if (answer.status === 401 && !panel().open) return leave();
  const fault = faultOf(answer);
  const rows = fault ? [] : rowsIn(answer.body);
  write(part("notice"), fault);
  drawRows(place, rows);
  const { key } = list.view;
  const open = desk.row && rows.find((row) => row[key] === desk.row?.[key]);
  if (open) drawFacts(desk.row = open);
  const next = nextQuery(answer.headers.get("link"));
  const count = rows.length > 0 || next !== undefined ? `${rows.length} shown.` : "Nothing is here.";
  part("pages").replaceChildren(
    fault ? "" : create("span", "", count),
    query ? linkTo("First page", path) : "",
    next === undefined ? "" : linkTo("Next page", `${path}?${next}`),
  );
  say(fault || `${document.title}. ${count}`);
}

/** @param {string} label @param {string} path */
export function linkTo(label, path) {
  const link = create("a", "", label);
  mark(link, "href", `#${path}`);
  return link;
}

/**
 * The forms about a list, or about its rows. Those with a question come last.
 * @param {Place} place
 * @param {boolean} isOfRow
 */
export function formsOf({ list }, isOfRow) {
  const forms = desk.forms.filter((form) => form.list === list.id && form.isOfRow === isOfRow);
  return forms.toSorted((one, other) => Number(one.confirm !== "") - Number(other.confirm !== ""));
}

/** The filters of a list: the parameters of its query. @param {Place} place */
export function drawFilters({ list, query }) {
  const given = new URLSearchParams(query);
  const inputs = list.inputs.filter(({ place }) => place === "query");
  const apply = create("button", "", "Show");
  part("filters").replaceChildren(
    ...inputs.map((input) =>
      labelled({ ...input, isText: false, value: given.get(input.name) ?? "" }, "any")
    ),
    ...inputs.length > 0 ? [apply] : [],
  );
}

/** Goes to the list that the filters say. */
export function filter() {
  const { place } = desk;
  if (!place) return;
  const target = { base: "#", method: "", path: pathWith(place.list.path, place.params), type: "", key: "" };
  const hash = buildRequest(target, valuesOf("#filters [name]")).url;
  if (hash === location.hash) load();
  else location.hash = hash;
}

/** @param {Place} place @param {readonly Row[]} rows */
export function drawRows({ list: { view } }, rows) {
  const { columns, same } = columnsFor(view.columns, rows);
  // Marks of direction in one text do not reach the next.
  const told = same.flatMap((text, index) => [index === 0 ? "All have " : " · ", create("bdi", "", text)]);
  part("same").replaceChildren(...told);
  const heads = columns.map(({ label, kind }) => {
    const head = create("th", kind, label);
    mark(head, "scope", "col");
    return head;
  });
  const body = rows.map((row) => {
    const cells = columns.map((column, index) => {
      const text = cellOf(row, column);
      if (index === 0) return create("th", "", button(text, () => open(row)));
      const meter = column.kind === "meter" && text ? metersOf(row, column) : "";
      const cell = create("td", column.kind, meter, create("span", "", text));
      mark(cell, "data-label", column.label);
      mark(cell, "title", text.length > 30 && text);
      return cell;
    });
    const line = create("tr", "", ...cells);
    line.addEventListener("click", ({ target }) => target instanceof HTMLButtonElement || open(row));
    return line;
  });
  part("rows").replaceChildren(
    ...rows.length > 0 ? [create("thead", "", create("tr", "", ...heads)), create("tbody", "", ...body)] : [],
  );
}

/** The prints of a meter. @param {Row} row @param {Column} column */
export function metersOf(row, column) {
  const used = printsUsed(row, column);
  const strip = create("span", "prints");
  for (let index = 0; index < METER_PRINTS; index++) {
    const print = all(".home svg")[0]?.cloneNode(true);
    if (!(print instanceof Element)) continue;
    mark(print, "class", index >= used ? "" : used === METER_PRINTS ? "refused" : "ok");
    strip.append(print);
  }
  return strip;
}

/** Opens a row: all that is known of it, and what can be done with it. @param {Row} row */
export function open(row) {
  const { place } = desk;
  if (!place) return;
  const { list: { path, view } } = place;
  const key = wordsFor(row[view.key], "plain");
  const keys = { [view.keys]: JSON.stringify([row[view.key]]) };
  const actions = formsOf(place, true).map((form) => {
    const params = paramsOf(place, form.path, key);
    const isBelow = form.view && form.path.startsWith(path);
    return isBelow ? linkTo(form.summary, pathWith(form.path, params)) : actionOf(form, { params, keys });
  });
  unfold(key, row);
  part("row-actions").replaceChildren(...actions);
  drawFacts(row);
}

/** Shows all that is known of a row. @param {Row} row */
export function drawFacts(row) {
  const [, ...columns] = desk.place?.list.view.columns ?? [];
  part("facts").replaceChildren(
    ...columns.map((column) =>
      create("div", "", create("dt", "", column.label), create("dd", column.kind, cellOf(row, column) || "–"))
    ),
  );
}

/** Shows the panel about a row, or about an action of none. @param {string} subject @param {Row} [row] */
export function unfold(subject, row) {
  desk.row = row;
  write(part("subject"), subject);
  for (const id of ["row-actions", "facts"]) part(id).replaceChildren();
  part("call").hidden = true;
  clear();
  panel().showModal();
  panel().scrollTo(0, 0);
  part("subject").focus();
}

/** The panel. */
export function panel() {
  const found = document.querySelector("dialog");
  if (!found) throw new Error("dialog");
  return found;
}

/**
 * A button that opens the form of an operation, with values that are known of a row. It warns if there is a question.
 * @param {Form} form
 * @param {{ params: Values, keys: Values }} [known]
 */
export function actionOf(form, known) {
  const action = button(form.summary, () => {
    if (!known) unfold(form.summary);
    choose(form, { ...desk.place?.params, ...known?.params }, known?.keys);
  });
  mark(action, "class", form.confirm ? "link bad" : "link");
  return action;
}

/**
 * Shows the form of an operation. A change of a row shows what stays if a field is empty.
 * @param {Form} form
 * @param {Values} params
 * @param {Values} [keys]
 */
export function choose(form, params, keys = {}) {
  if (isBusy() || !mayDiscard()) return;
  const path = pathWith(form.path, params);
  desk.form = { ...form, path };
  clear();
  part("call").hidden = false;
  write(part("summary"), form.summary === part("subject").textContent ? "" : form.summary);
  write(part("method"), form.method);
  write(part("target"), decodeURI(path));
  write(part("explained"), form.description.replaceAll("`", ""));
  part("inputs").replaceChildren(
    ...form.inputs.filter(({ name }) => path.includes(`{${name}}`) || !(name in params)).map((input) => {
      const { name, place, isText, isRequired } = input;
      const isKept = form.method === "PATCH" && place === "body" && !isRequired;
      const has = (isKept ? valueAt(desk.row, [name]) : undefined) ?? input.absent;
      const absent = typeof has === "string" ? has : JSON.stringify(has);
      const value = name === "Idempotency-Key" ? freshKey() : keys[name] ?? "";
      const shown = { ...input, absent, value, isText: place === "body" && !isText };
      return labelled(shown, isRequired ? "required" : "not sent");
    }),
  );
  write(part("send"), form.method === "DELETE" ? "Delete" : "Send");
  const [first] = fields("#inputs [name]");
  (first ?? part("send")).focus();
  part("call").scrollIntoView();
  if (form.method === "GET" && !first) send();
}

/** Sends the form, and shows the answer. Until it is there, nothing else can be done, because it may have keys. */
export async function send() {
  const { form, place } = desk;
  // Ctrl and Enter in a text come here without the check of the browser.
  if (!form || isBusy() || !fields("#inputs [name]").every((field) => field.reportValidity())) return;
  const given = valuesOf("#inputs [name]");
  const values = Object.fromEntries(given.map(({ name, value }) => [name, value]));
  const rows = values[place?.list.view.keys ?? ""] ?? part("subject").textContent;
  const question = form.isOfRow ? `${rows}: ${form.confirm}` : form.confirm;
  if ((form.confirm && !confirm(question)) || !mayDiscard()) return;
  const body = { name: "body", place: "body", value: form.type && bodyOf(form.inputs, values) };
  mark(part("panel"), "aria-busy", "true");
  const { call, answer } = await ask(form, [...given.filter(({ place }) => place !== "body"), body]);
  mark(part("panel"), "aria-busy", false);
  const { status, field: faulty, newKeys } = answer;
  if (status === 401) return leave("Nothing was changed: fill in the form again");
  blame("#inputs", faulty);
  if (status > 0 && status < 500) {
    for (const used of fields("[name=Idempotency-Key]")) used.value = freshKey();
  }
  part("answer").hidden = false;
  const meaning = form.answers[status] ?? "";
  const known = { meaning, advice: "", sunset: "", path: "", filled: 0, isAdded: true, isCopied: true };
  desk.newKeys = newKeys;
  show({
    ...toldOf({ operation: form.id, call, answer }, known),
    next: newKeys.length > 0 ? [copyingOf(newKeys)] : [],
    onCopied: noteCopied,
  });
  part("answer").scrollIntoView({ block: "nearest" });
  if (form.method !== "GET" && status < 300 && status > 0) await load();
}

/** Shows no answer, and keeps nothing of the last one: it may have a key. */
export function clear() {
  part("answer").hidden = true;
  show({ kind: "example", head: [], message: "" });
}

/** The next step after new keys: a button that copies them, one a line. @param {readonly string[]} keys */
export function copyingOf(keys) {
  const label = keys.length > 1 ? "Copy the keys" : "Copy the key";
  const copying = copyButton("", () => keys.join("\n"), { label, onCopied: noteCopied });
  mark(copying, "class", "filled");
  return copying;
}

export function noteCopied() {
  desk.newKeys = [];
  for (const copying of all("#next .filled")) mark(copying, "class", "link");
}

/** Whether the answer may go. Asks if it has new keys that were not copied, because they would be lost. */
export function mayDiscard() {
  const told = desk.newKeys.length > 1 ? "The new keys are" : "The new key is";
  const may = desk.newKeys.length === 0 || confirm(`${told} not copied, and would be lost. Continue?`);
  if (may) desk.newKeys = [];
  return may;
}

/** Whether an answer is awaited. */
export function isBusy() {
  return part("panel").hasAttribute("aria-busy");
}

/** Starts the page. */
export function start() {
  onSubmit("enter", enter);
  onSubmit("filters", filter);
  onSubmit("call", send);
  on("forget", "click", () => location.reload());
  on("close", "click", () => panel().close());
  // Whatever closes the panel, it opens again if it must stay.
  on("panel", "close", () => isBusy() || !mayDiscard() ? panel().showModal() : clear());
  document.addEventListener("copy", () => {
    const text = `${getSelection()}`;
    if (desk.newKeys.every((key) => text.includes(key))) noteCopied();
  });
  addEventListener(
    "beforeunload",
    (event) => (isBusy() || desk.newKeys.length > 0) && event.preventDefault(),
  );
  addEventListener("hashchange", () => (panel().close(), go()));
  // Back from another site, a browser shows the page as it was.
  addEventListener("pageshow", ({ persisted }) => persisted && location.reload());
  const { state: fault } = history;
  history.replaceState(null, "");
  if (fault) refuse(fault);
  else part("token").focus();
}
