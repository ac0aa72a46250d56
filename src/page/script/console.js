// @ts-check
/// <reference lib="dom" />
// The console: makes a key, sends requests, shows what comes back and what is left, and races the limit.

import { raceTold, sentences, stepsOf, toldOf } from "./answer.js";
import { all, button, copyButton, create, mark, on, part, say, show, textOf, write } from "./document.js";
import { blame, field, fields, onSubmit, valuesOf } from "./form.js";
import { admittedOf, outcomeOf, raceOf, standingOf, usageAfter, usageAt } from "./limits.js";
import { drawPrints, nameOf, startPrints } from "./prints.js";
import { endpointOf, inputsOf, meaningsOf, operations, showExample, startReference } from "./reference.js";
import { buildRequest, count, duration, exchange, freshKey, targetOf } from "./request.js";
import { FRESH, KEY_PLACEHOLDER, LANGUAGES, ORIGIN_PLACEHOLDER, sample } from "./sample.js";

/**
 * @typedef {import("./request.js").Call} Call
 * @typedef {import("./request.js").Entry} Entry
 */

/**
 * What the console knows. All that it shows follows from this. `isWhole` shows the whole key; `note` says why the page
 * asks for another; `waits` has the end of each payer's wait, in ms.
 * @type {{ operation: string, language: string, form: string, key: string, isWhole: boolean, isCopied: boolean,
 *   note: string, isFault: boolean, isBusy: boolean,
 *   usage?: import("./limits.js").Usage | undefined, logged?: readonly Entry[], bannedUntil: number,
 *   waits: Record<string, number>, timer?: ReturnType<typeof setTimeout> }}
 */
export const state = {
  operation: "",
  language: "curl",
  form: "",
  key: "",
  isWhole: false,
  isCopied: true,
  note: "",
  isFault: false,
  isBusy: false,
  bannedUntil: 0,
  waits: {},
};

/** Draws everything, and again each second while something counts down. */
export function draw() {
  drawKey();
  drawRequest();
  if (!state.isBusy) {
    drawLimits();
    drawWait("send", "Send", payerOf(state.operation));
    drawWait("make", "Make a key and call", "address");
  }
  clearTimeout(state.timer);
  const now = Date.now();
  const ends = [state.usage?.until ?? 0, state.bannedUntil, ...Object.values(state.waits)];
  if (Math.max(...ends) > now) state.timer = setTimeout(draw, 1_000 - now % 1_000);
}

export function drawKey() {
  const { form, key, isWhole, isCopied, isFault } = state;
  for (const shown of all("[data-when]")) mark(shown, "hidden", shown.dataset.when !== form && "");
  write(part("key"), isWhole ? key : `${key.slice(0, 12)}…`);
  const note = part("key-note");
  write(note, state.note || (isCopied ? "The key stays in this tab." : "Copy it: only this tab has it."));
  mark(note, "class", isFault && "bad");
  // The next step is filled.
  mark(part("send"), "class", form === "held" && isCopied && "filled");
  for (const copying of all(`#key + button, [aria-label="Copy your key"]`)) {
    mark(copying, "class", isCopied ? "link" : "filled");
  }
  for (const field of all("#name, #pasted")) mark(field, "aria-invalid", isFault && "true");
}

/**
 * What is kept under a name, after this value is put there: the key by the tab, and the language by the browser. Empty
 * if the browser allows no storage.
 * @param {"key" | "language"} name
 * @param {string} [value]
 */
export function kept(name, value) {
  try {
    const storage = name === "key" ? sessionStorage : localStorage;
    if (value !== undefined) storage.setItem(name, value);
    return storage.getItem(name) ?? "";
  } catch {
    return "";
  }
}

/** Uses this key from now on; none if it is empty. @param {string} key */
export function adopt(key, isNew = false) {
  Object.assign(state, {
    key,
    isWhole: isNew,
    isCopied: !isNew,
    note: "",
    isFault: false,
    form: key ? "held" : state.form,
  });
  kept("key", key);
}

/** Drops what is known about the limits of an account. */
export function forget() {
  Object.assign(state, { usage: undefined, bannedUntil: 0 });
}

/** Drops the key, and asks for another. @param {string} form @param {string} note */
export function ask(form, note, isFault = note !== "") {
  forget();
  adopt("");
  Object.assign(state, { form, note, isFault });
  draw();
  field(form === "make" ? "#name" : "#pasted").focus();
  say(note);
}

/** Whether the key may be replaced. Asks if it was not copied, because it would be lost. */
export function mayDiscard() {
  return state.isCopied || confirm("Your key is not copied, and would be lost. Continue?");
}

export function noteCopied() {
  state.isCopied = true;
  draw();
}

export async function makeKey() {
  if (isWaiting("address") || !mayDiscard()) return;
  const value = JSON.stringify({ name: field("#name").value });
  const call = callOf("createAccount", [{ name: "body", place: "body", value }]);
  const { answer } = await whileBusy(() => run("createAccount", call));
  const { newKeys, status, text, message, code } = answer;
  if (newKeys.length > 0) return await callFirst();
  const isClosed = code === "sign_up_closed";
  if (isClosed) part("to-make").remove();
  const fault = sentences(status === 0 && text, message) || "No key was made. Try again later.";
  ask(isClosed ? "paste" : "make", fault);
}

export async function useKey() {
  const pasted = field("#pasted");
  const key = pasted.value.trim();
  if (!/^[!-~]+$/.test(key)) return ask("paste", "Paste a key: letters, digits and underscores.");
  pasted.value = "";
  forget();
  adopt(key);
  await callFirst();
}

/** Makes the first call with another key. */
export async function callFirst() {
  choose(operations()[0] ?? "");
  await send();
  if (state.key === "") return;
  part("send").focus({ preventScroll: true });
  say(`${textOf("#key-note")} ${textOf("#news")}`);
}

/** The fields of an operation. @param {string} operation */
export function fieldsOf(operation, selector = "[name]") {
  return fields(`#form-${operation} ${selector}`);
}

/** @param {string} operation @param {string} name @param {string} value */
export function setField(operation, name, value) {
  for (const field of fieldsOf(operation, `[name=${name}]`)) field.value = value;
}

/** The operations of the collection that an operation belongs to. @param {string} operation */
export function siblingsOf(operation) {
  /** @param {string} id */
  const collectionOf = (id) => endpointOf(id).path.replace(/\/\{\w+\}$/, "");
  return operations().filter((other) => collectionOf(other) === collectionOf(operation));
}

/** A button that turns to an operation. @param {string} operation */
export function linkTo(operation) {
  return button(textOf(`#${operation} > h3 > a`), () => turnTo(operation));
}

/** What requests of an operation are charged to. @param {string} operation */
export function payerOf(operation) {
  const { spared, payer } = part(operation).dataset;
  return spared ?? payer ?? (state.key || "keyless");
}

/**
 * A request of an operation, by default as its form says.
 * @param {string} operation
 * @param {readonly { name: string, place: string, value: string }[]} [given]
 */
export function callOf(operation, given, key = state.key) {
  const { type = "", payer } = part(operation).dataset;
  const base = part("console").dataset.base || location.origin;
  const target = { base, ...endpointOf(operation), type, key: payer ? "" : key };
  return buildRequest(target, given ?? valuesOf(`#form-${operation} [name]`));
}

/** Chooses an operation, shows its example, and puts it in the address. @param {string} operation */
export function choose(operation) {
  if (operation !== state.operation) mark(part("answer"), "data-kind", "example");
  state.operation = field("#operation").value = operation;
  history.replaceState(null, "", `#${operation}`);
  draw();
}

/** Chooses the operation that the address names, if it names one. */
export function follow() {
  const linked = location.hash.slice(1);
  if (operations().includes(linked)) choose(linked);
}

/** Chooses an operation, and brings its form into view. @param {string} operation */
export function turnTo(operation) {
  choose(operation);
  reveal(part("call"));
  part("operation").focus({ preventScroll: true });
}

/** Scrolls the element to just below the strip, if the visitor might not see it. @param {HTMLElement} element */
export function reveal(element) {
  const [strip, column] = [part("strip"), part("console")];
  const { top } = element.getBoundingClientRect();
  if (top >= strip.getBoundingClientRect().bottom && top < innerHeight * 0.8) return;
  const isColumn = getComputedStyle(column).overflowY === "auto";
  const edge = isColumn ? column.getBoundingClientRect().top : 0;
  (isColumn ? column : window).scrollBy(0, top - edge - strip.offsetHeight - 8);
}

export function drawRequest() {
  const operation = state.operation;
  for (const form of all("#call > fieldset")) mark(form, "hidden", form.id !== `form-${operation}` && "");
  const call = callOf(operation);
  write(part("method"), call.method);
  write(part("target"), decodeURI(targetOf(call)));
  const { sunset } = part(operation).dataset;
  write(part("deprecated"), sunset ? `Deprecated: works until ${sunset}.` : "");
  const headers = fieldsOf(operation, "[data-place=header]");
  const sent = headers.filter(({ value }) => value !== "").map(({ name }) => name).join(", ");
  const count = `${headers.length} header${headers.length === 1 ? "" : "s"}`;
  for (const summary of all(`#form-${operation} summary`)) {
    write(summary, sent ? `${count}, sent: ${sent}` : count);
  }
  if (part("code").matches("[open]")) write(part("sample"), codeOf(KEY_PLACEHOLDER));
  if (part("answer").dataset.kind === "example") showExample(operation);
}

/**
 * The request as code. Headers that the page itself filled in are left out, and a key for retries is new each time.
 * @param {string} key
 */
export function codeOf(key) {
  const given = fieldsOf(state.operation).map(({ name, value, dataset: { place = "", edited } }) => {
    const isOwn = place === "header" && !edited;
    return { name, place, value: isOwn ? (name === "Idempotency-Key" ? FRESH : "") : value };
  });
  return sample(state.language, callOf(state.operation, given, key));
}

/** Writes all samples in a language. @param {string} language */
export function speak(language) {
  state.language = language in LANGUAGES ? language : "curl";
  for (const choice of fields("select.link")) choice.value = state.language;
  for (const shown of all("[data-sample]")) {
    const id = shown.dataset.sample || (shown.closest("article")?.id ?? "");
    const given = inputsOf(id).map(({ name, place, usual: value }) => ({ name, place, value }));
    write(shown, sample(state.language, callOf(id, given, KEY_PLACEHOLDER)));
  }
  draw();
}

/** What stands beside code: languages, if it is a sample, and a button that copies it. @param {HTMLElement} code */
export function toolsOf(code) {
  const isRequest = code.id === "sample";
  const read = () => isRequest ? codeOf(state.key || KEY_PLACEHOLDER) : code.textContent;
  const copying = copyButton(isRequest ? "the code" : "the text", read);
  return code.matches("#sample, [data-sample]") ? [languages(), copying] : [copying];
}

/** A choice of the language of all samples. */
export function languages() {
  const options = Object.entries(LANGUAGES).map(([value, label]) => new Option(label, value));
  const choice = create("select", "link", ...options);
  choice.ariaLabel = "Language";
  choice.addEventListener("change", ({ target }) => {
    if (target instanceof HTMLSelectElement) speak(kept("language", target.value) || target.value);
  });
  return choice;
}

/** Gives the form of an operation a new Idempotency-Key. @param {string} operation */
export function renew(operation) {
  for (const field of fieldsOf(operation, "[name=Idempotency-Key]")) {
    delete field.dataset.edited;
    field.value = freshKey();
  }
}

/**
 * Puts the id and ETag of an item into the forms of its collection. Returns these operations.
 * @param {string} operation
 * @param {string} id
 * @param {string} etag
 */
export function fill(operation, id, etag) {
  return siblingsOf(operation).filter((sibling) => {
    const [field] = fieldsOf(sibling, "[data-place=path]");
    if (!field) return false;
    field.value = id;
    setField(sibling, "If-Match", etag);
    return true;
  });
}

/** How long a payer has to wait, in words; empty if it has not. @param {string} payer */
export function waitOf(payer) {
  const left = (state.waits[payer] ?? 0) - Date.now();
  return left > 0 ? `Wait ${duration(left)}` : "";
}

/** Whether a payer has to wait. If so, says it. @param {string} payer */
export function isWaiting(payer) {
  const wait = waitOf(payer);
  if (wait) say(`${wait}.`);
  return wait !== "" || state.isBusy;
}

/**
 * Shows on a button how long its payer has to wait. `disabled` would take the focus from it.
 * @param {string} id
 * @param {string} label
 * @param {string} payer
 */
export function drawWait(id, label, payer) {
  const wait = waitOf(payer);
  if (wait === "" && part(id).ariaDisabled) say("You can send again.");
  mark(part(id), "aria-disabled", wait !== "" && "true");
  write(part(id), wait || label);
}

/** Runs an action while no other can begin. @template Result @param {() => Promise<Result>} act */
export async function whileBusy(act) {
  state.isBusy = true;
  mark(part("console"), "aria-busy", "true");
  say("Sending");
  try {
    return await act();
  } finally {
    state.isBusy = false;
    mark(part("console"), "aria-busy", false);
    draw();
  }
}

/**
 * Sends a request, and notes what its response says about the key and the limits. A rotated key has the limits of the
 * old one, and an added one is not used here.
 * @param {string} operation
 * @param {Call} call
 * @returns {Promise<Entry>}
 */
export async function run(operation, call) {
  const payer = payerOf(operation);
  const isOfKey = !part(operation).dataset.payer && state.key !== "";
  const answer = await exchange(call);
  const entry = { operation, call, answer };
  const now = Date.now();
  const end = now + answer.wait * 1_000;
  if (end > now) state.waits[payer] = end;
  if (isOfKey) state.usage = usageAfter(state.usage, entry, now);
  if (isOfKey && answer.code === "key_banned") state.bannedUntil = end;
  const [newKey] = answer.newKeys;
  if (newKey === undefined || isAdded(entry)) return entry;
  if (!isOfKey) forget();
  adopt(newKey, true);
  return entry;
}

/** Whether a response has a key beside the one in use. @param {Entry} entry */
export function isAdded({ operation, answer: { newKeys } }) {
  const { payer, ends } = part(operation).dataset;
  return newKeys.length > 0 && !payer && !ends;
}

/** Sends a request, by default that of the form, and shows the response. */
export async function send(operation = state.operation, call = callOf(operation)) {
  if (isWaiting(payerOf(operation))) return;
  const missing = fieldsOf(operation, "[data-place=path]").find(({ name }) => call.url.includes(`{${name}}`));
  if (missing) {
    blame(`#form-${operation}`, missing.name);
    missing.focus();
    const message = `${missing.name} is missing. If you add one, it is filled in.`;
    return show({ kind: "0", head: [["status", "Not sent"]], message, next: adding(operation) });
  }
  const { question, payer } = part(operation).dataset;
  if ((payer === "address" && !mayDiscard()) || (question && !confirm(question))) return;
  await whileBusy(async () => settle(await run(operation, call)));
  if (state.note !== "") return;
  if (document.activeElement === document.body) part("answer").focus({ preventScroll: true });
  reveal(part("head"));
}

/**
 * Shows a response, and draws its consequences. Only after a lost one, the Idempotency-Key stays, so that it is safe to
 * send again.
 * @param {Entry} entry
 */
export function settle(entry) {
  const { operation, call: { method }, answer: { status, code, message, body, headers } } = entry;
  blame(`#form-${operation}`, entry.answer.field);
  if (status > 0 && status < 500) renew(operation);
  const etag = headers.get("etag");
  const isItem = isAdded(entry) || (etag && (status === 201 || (status === 200 && method === "PATCH")));
  const filled = isItem ? fill(operation, JSON.parse(body).id, etag ?? "") : [];
  if (method === "DELETE" && status === 204) fill(operation, "", "");
  showEntry(entry, filled.filter((other) => other !== operation).map(linkTo));
  if (part(operation).dataset.ends && status === 204) {
    ask(part("console").dataset.form ?? "", "The account is closed, and its key no longer works.", false);
  } else if (code === "invalid_api_key" && state.key !== "") {
    field("#pasted").value = state.key;
    ask("paste", message);
  }
}

/** The way to add an item to the operation's collection, if there is one. @param {string} operation */
export function adding(operation) {
  return siblingsOf(operation).filter((other) => endpointOf(other).method === "POST" && other !== operation)
    .map(linkTo);
}

/**
 * Shows a response, and what can follow.
 * @param {Entry} entry
 * @param {readonly HTMLElement[]} [filled] Links to forms that it filled.
 */
export function showEntry(entry, filled = []) {
  const { operation, call, answer: { status, code } } = entry;
  const { sunset = "" } = part(operation).dataset;
  const { path } = endpointOf(operation);
  const known = {
    ...{ sunset, path, filled: filled.length, isAdded: isAdded(entry), isCopied: state.isCopied },
    meaning: meaningsOf(operation).get(`${status}`) ?? "",
    advice: textOf(`#error-${code || "none"} + dd span`),
  };
  const { copiesKey, addedKey, adds, repeats, tag, cursor } = stepsOf(entry, known);
  show({
    ...toldOf(entry, known),
    next: [
      copiesKey && copyButton("your key", () => state.key, { label: "Copy your key", onCopied: noteCopied }),
      addedKey && copyButton("the added key", () => addedKey, { label: "Copy the added key" }),
      ...filled,
      ...adds ? adding(operation) : [],
      repeats && button("Repeat exactly", () => send(operation, call)),
      tag && button("Use the current ETag", () => (setField(operation, "If-Match", tag), turnTo(operation))),
      cursor && button("Next page", () => (setField(operation, "cursor", cursor), choose(operation), send())),
    ],
  });
  drawKey();
}

export function drawLimits() {
  const now = Date.now();
  const usage = state.usage = usageAt(state.usage, now);
  const { bannedUntil, form } = state;
  const limit = Number(part("console").dataset.limit);
  const [size, note] = raceOf(usage, now < bannedUntil);
  const [left, reset] = standingOf(usage, { now, limit, bannedUntil, form });
  write(part("left"), left);
  write(part("reset"), reset);
  const shown = usage ?? { limit, left: limit, entries: [] };
  const isUnknown = !usage && form === "held";
  write(part("ahead"), isUnknown ? "" : `Request ${count(shown.limit + 1)} would land here, refused.`);
  write(part("race-note"), note);
  mark(part("race"), "aria-disabled", size === 0 && "true");
  drawPrints(shown);
  if (state.logged === usage?.entries || !part("log").matches("[open]")) return;
  state.logged = usage?.entries ?? [];
  part("entries").replaceChildren(...state.logged.map((entry) => {
    return create("li", outcomeOf(entry), button(nameOf(entry), () => reopen(entry)));
  }));
}

/** Shows a response again. @param {Entry} entry */
export function reopen(entry) {
  showEntry(entry);
  reveal(part("head"));
}

/** Sends all requests that the minute has left and a few more, and shows how many succeed. */
export async function race() {
  const { usage } = state;
  const [size, note] = raceOf(usage, Date.now() < state.bannedUntil);
  if (state.isBusy) return;
  if (size === 0 || !usage) return say(note);
  const [operation = ""] = operations();
  const call = callOf(operation, [{ name: "limit", place: "query", value: "1" }]);
  const begun = performance.now();
  await whileBusy(async () => {
    const others = usage.limit - usage.left - admittedOf(usage.entries).length;
    const entries = await Promise.all(Array.from({ length: size }, async () => {
      const entry = await run(operation, call);
      // Requests that are still under way are not those of other clients.
      const { limit, entries } = state.usage ?? usage;
      drawPrints({ limit, entries, left: Math.max(0, limit - others - admittedOf(entries).length) });
      return entry;
    }));
    const ms = Math.round(performance.now() - begun);
    show(raceTold(entries, { before: usage, usage: state.usage, ms }));
  });
  reveal(part("head"));
}

/** Starts what is interactive. The page can be read without it. */
export function start() {
  startReference(toolsOf);
  for (const id of operations()) {
    const link = linkTo(id);
    link.ariaLabel = `Try it: ${link.textContent}`;
    link.textContent = "Try it";
    all(`#${id} > .line`)[0]?.append(link);
    renew(id);
  }
  const { dataset } = part("console");
  state.form = dataset.form ?? "";
  onSubmit("key-form", () => (state.form === "make" ? makeKey() : useKey()));
  on("key-form", "input", () => (adopt(""), draw()));
  onSubmit("call", () => send());
  on("call", "input", ({ target }) => {
    if (target instanceof HTMLElement) target.dataset.edited = "yes";
    draw();
  });
  startPrints(reopen);
  on("race", "click", race);
  on("operation", "change", () => choose(field("#operation").value));
  for (const id of ["code", "log"]) on(id, "toggle", draw);
  const readGuide = async () => {
    const response = await fetch(`${dataset.base}/docs/guide`);
    const text = (await response.text()).replace(/^.* THIS_HOST .*\n\n/m, "");
    return text.replaceAll(ORIGIN_PLACEHOLDER, location.origin);
  };
  part("links").append(copyButton("", readGuide, { label: "Copy as Markdown" }));
  part("key").after(copyButton("the key", () => state.key, { onCopied: noteCopied }));
  for (const control of all("button[data-form]")) {
    control.addEventListener("click", () => mayDiscard() && ask(control.dataset.form ?? "", ""));
  }
  document.addEventListener("copy", () => `${getSelection()}`.includes(state.key) && noteCopied());
  addEventListener("beforeunload", (event) => state.isCopied || event.preventDefault());
  adopt(kept("key"));
  state.operation = field("#operation").value;
  // choose() replaces the address, which fires no event.
  addEventListener("hashchange", follow);
  follow();
  speak(kept("language"));
}
