// @ts-check
/// <reference lib="dom" />
// The composer: the form for a request, which reads like the request itself.

import { all, byId, mark, part, startCopy, write } from "./document.js";
import { buildRequest, KEY_PLACEHOLDER, sample } from "./request.js";
import { maskKey, namesIn, placeIn } from "./text.js";

/**
 * @typedef {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} Field
 * @typedef {import("./key.js").HeldKey} HeldKey
 */

/** The form for a request. */
export class Composer {
  /** Prefix of the service's URLs. */
  base = part("console").dataset.base || location.origin;
  form = byId("call", HTMLFormElement);
  #select = byId("operation", HTMLSelectElement);
  #key;
  #onChange;

  /** @param {HeldKey} key @param {() => void} onChange Called when the request has changed. */
  constructor(key, onChange) {
    this.#key = key;
    this.#onChange = onChange;
    this.form.addEventListener("input", ({ target }) => {
      if (target instanceof Element) mark(target, "aria-invalid", null);
      this.draw();
    });
    this.form.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.form.requestSubmit();
    });
    const next = byId("next-page", HTMLButtonElement);
    next.addEventListener("click", () => this.#turnTo(next.value));
    for (const control of all("[data-try]")) {
      control.addEventListener("click", (event) => {
        event.preventDefault();
        this.#try(control.dataset.try ?? "");
      });
    }
    addEventListener("hashchange", () => this.#follow());
    startCopy(part("copy-request"), () => this.#sample(key.current || KEY_PLACEHOLDER));
  }

  /** The id of the operation. */
  get operation() {
    return this.#select.value;
  }

  /** What the request is charged to: a key, the `address` or, if it is free, `public`. */
  get payer() {
    const { access = "" } = this.#fieldset.dataset;
    return access === "key" ? this.#key.current || "keyless" : access;
  }

  /** What is known about the operation. */
  get facts() {
    return this.#fieldset.dataset;
  }

  get #fieldset() {
    return byId(`request-${this.operation}`, HTMLFieldSetElement);
  }

  /** @returns {NodeListOf<Field>} */
  get #fields() {
    return this.#fieldset.querySelectorAll("input, select, textarea");
  }

  /** The request that is shown, with this key. */
  compose(key = this.#key.current) {
    const { method = "", path = "", access, bodyType = "" } = this.facts;
    const fields = [...this.#fields].map(({ name, value, dataset: { place = "" } }) => ({
      name,
      place,
      value,
    }));
    const body = fields.find(({ place }) => place === "body")?.value ?? "";
    const target = { base: this.base, method, path, bodyType, key: access === "key" ? key : "" };
    return buildRequest(target, fields, body.trim() === "" ? "" : body);
  }

  /** A request that counts, with a short response: one item of the first operation's list. */
  composeShort() {
    const { path = "" } = byId("requests", HTMLElement).querySelector("fieldset")?.dataset ?? {};
    const target = { base: this.base, method: "GET", path, bodyType: "", key: this.#key.current };
    return buildRequest(target, [{ name: "limit", place: "query", value: "1" }]);
  }

  #sample(key = KEY_PLACEHOLDER) {
    return sample(String(new FormData(this.form).get("language")), this.compose(key));
  }

  /** Chooses an operation, by default the first. */
  choose(operation = this.#select.options[0]?.value ?? "") {
    this.#select.value = operation;
    this.draw();
  }

  /** Chooses the operation that the page's address names. */
  followAddress() {
    const id = location.hash.slice(1);
    if ([...this.#select.options].some(({ value }) => value === id)) this.choose(id);
    else this.draw();
  }

  #follow() {
    if (!part("console").ariaBusy) this.followAddress();
  }

  /** Chooses an operation, puts it in the address, and shows the console. @param {string} operation */
  #try(operation) {
    history.replaceState(null, "", `#${operation}`);
    this.choose(operation);
    this.form.scrollIntoView({ block: "nearest" });
    this.#select.focus({ preventScroll: true });
  }

  draw() {
    for (const fieldset of all("#requests > fieldset")) fieldset.hidden = fieldset !== this.#fieldset;
    drawFields(this.#fieldset, this.#key.current);
    write(part("sample"), this.#sample());
    part("copy-note").hidden = this.#key.current === "" || this.facts.access !== "key";
    this.#onChange();
  }

  /**
   * Marks the fields that the message is about, or after 400 the body if it names none. A place in the body gets the
   * cursor.
   * @param {{ status: number, message: string }} answer
   */
  markFaults({ status, message }) {
    const fields = [...this.#fields];
    for (const field of fields) mark(field, "aria-invalid", null);
    if (status === 401 || status > 422) return;
    const named = namesIn(message, fields.map(({ name }) => name));
    const body = this.#fieldset.querySelector("textarea");
    for (const field of fields) {
      const isMeant = named.includes(field.name) || (field === body && named.length === 0 && status === 400);
      if (isMeant) mark(field, "aria-invalid", "true");
    }
    const place = placeIn(message, body?.value ?? "");
    if (place !== undefined) body?.setSelectionRange(place, place + 1);
  }

  /** Requests the page of the list at this cursor. @param {string} cursor */
  #turnTo(cursor) {
    this.choose();
    const field = this.#fieldset.elements.namedItem("cursor");
    if (!(field instanceof HTMLInputElement)) return;
    field.value = cursor;
    this.draw();
    this.form.requestSubmit();
  }
}

/**
 * Adapts the display of a request to the values of its fields.
 * @param {HTMLFieldSetElement} fieldset
 * @param {string} key
 */
function drawFields(fieldset, key) {
  // The first parameter that is sent follows a question mark.
  let isFirst = true;
  for (const [index, sign] of fieldset.querySelectorAll("label > i").entries()) {
    const field = sign.nextElementSibling;
    const isSent = (field instanceof HTMLInputElement || field instanceof HTMLSelectElement) &&
      field.value !== "";
    write(sign, isFirst && (isSent || index === 0) ? "?" : "&");
    isFirst &&= !isSent;
  }
  for (const input of fieldset.querySelectorAll("input")) {
    input.size = Math.max(input.value.length, input.placeholder.length);
  }
  const body = fieldset.querySelector("textarea");
  if (body) body.rows = body.value.split("\n").length;
  for (const line of /** @type {NodeListOf<HTMLElement>} */ (fieldset.querySelectorAll(".left-out"))) {
    line.hidden = !!body?.value.includes(`"${line.dataset.member}"`);
  }
  const credentials = fieldset.querySelector(".credentials > span");
  if (credentials) write(credentials, key && `Bearer ${maskKey(key)}`);
}
