// @ts-check
/// <reference lib="dom" />
// The visitor's API key, and the form that makes or takes one.

import { all, byId, mark, part, startCopy, write } from "./document.js";
import { maskKey } from "./text.js";

/** Name of the key in the session storage of the tab. */
const STORED = "api-key";

/** The visitor's API key. It is kept in memory and, if the visitor asks for it, in the tab. */
export class HeldKey {
  /** The key; empty if there is none yet. */
  current = "";
  #uncopied = "";
  #hasWarned = false;
  /** Whether the whole key is shown. */
  #isShown = false;
  #copy = part("copy-key");
  #keep = byId("keep", HTMLInputElement);
  #note = part("key-note");
  #initialNote = this.#note.textContent;

  constructor() {
    for (const button of all("[data-show]")) {
      button.addEventListener("click", () => {
        if (this.mayDiscardKey()) this.#show(button.dataset.show ?? "").select();
      });
    }
    for (const input of this.#inputs) input.addEventListener("input", () => this.#clearFault());
    for (const event of ["copy", "cut"]) {
      document.addEventListener(event, () => this.#noteCopied(String(getSelection())));
    }
    startCopy(this.#copy, () => this.current, (text) => this.#noteCopied(text));
    addEventListener("beforeunload", (event) => {
      if (this.#uncopied === "" || this.#keep.checked || this.#hasWarned) return;
      this.#hasWarned = true;
      event.preventDefault();
    });
    this.#keep.addEventListener("change", () => this.#store());
    const stored = readStored();
    this.#keep.checked = stored !== "";
    if (stored !== "") this.adopt(stored, false);
  }

  /** Whether the form is for a new key. */
  get isForNew() {
    return part("console").dataset.key === "make";
  }

  get #inputs() {
    return ["name", "key-input"].map((id) => byId(id, HTMLInputElement));
  }

  /** The name for a new key. */
  get name() {
    return byId("name", HTMLInputElement).value;
  }

  /** Takes the key that was pasted. Returns what is wrong with it; empty if nothing is. */
  takePasted() {
    const pasted = byId("key-input", HTMLInputElement).value.trim();
    const fault = pasted === ""
      ? "Paste a key first."
      : /[^!-~]/.test(pasted)
      ? "This is not an API key: it contains a space, or a character that no key has."
      : "";
    if (fault === "") this.adopt(pasted, false);
    else this.refuse(fault);
    return fault;
  }

  /** Whether the key may be replaced. Asks the visitor if a new key was not copied, because it would be lost. */
  mayDiscardKey() {
    const question = "You have not copied your key, and it will not be shown again. Continue without it?";
    if (this.#uncopied !== "" && confirm(question)) this.#uncopied = "";
    return this.#uncopied === "";
  }

  /**
   * Uses this key from now on.
   * @param {string} key
   * @param {boolean} isNew Whether it was just created, and is shown only once.
   */
  adopt(key, isNew) {
    this.current = key;
    this.#uncopied = isNew ? key : "";
    this.#hasWarned = false;
    this.#isShown = isNew;
    byId("key-input", HTMLInputElement).value = "";
    part("console").dataset.key = "held";
    write(part("key"), isNew ? key : maskKey(key));
    this.#store();
    this.#clearFault();
  }

  /** Drops the key, because it is not valid, and asks for another. @param {string} message */
  reject(message) {
    const input = this.#show("paste");
    input.value = this.current;
    this.current = this.#uncopied = "";
    this.#store();
    this.refuse(message);
  }

  /** Marks the field of the form as invalid, with the reason beneath it. @param {string} message */
  refuse(message) {
    const input = this.#input;
    mark(input, "aria-invalid", "true");
    write(this.#note, message);
    this.#note.className = "fault";
    input.focus({ preventScroll: true });
    part("key-form").scrollIntoView({ block: "nearest" });
  }

  /** Asks for a key, because clients cannot make one. */
  close() {
    document.body.dataset.signUp = "closed";
    this.#show("paste").focus({ preventScroll: true });
  }

  get #input() {
    return byId(this.isForNew ? "name" : "key-input", HTMLInputElement);
  }

  /** @param {string} form */
  #show(form) {
    part("console").dataset.key = form;
    this.#clearFault();
    return this.#input;
  }

  #clearFault() {
    for (const input of this.#inputs) mark(input, "aria-invalid", null);
    this.#note.className = "";
    this.#drawNote();
  }

  /** Says beneath the key what to do with it. */
  #drawNote() {
    const isHeld = part("console").dataset.key === "held";
    const place = this.#keep.checked ? "in this tab" : "on this page";
    const held = this.#uncopied !== ""
      ? "Your key is shown only once. Copy it now."
      : this.#isShown
      ? "Copied. The key is not shown again after you leave."
      : `Your key. It stays ${place}.`;
    write(this.#note, isHeld ? held : this.#initialNote);
    this.#copy.hidden = !this.#isShown && !this.#keep.checked;
  }

  /** Records that the visitor copied a text. @param {string} text */
  #noteCopied(text) {
    if (this.#uncopied === "" || !text.includes(this.#uncopied)) return;
    this.#uncopied = "";
    this.#drawNote();
  }

  #store() {
    try {
      if (this.#keep.checked && this.current !== "") sessionStorage.setItem(STORED, this.current);
      else sessionStorage.removeItem(STORED);
    } catch {
      this.#keep.checked = false;
    }
    if (this.current !== "") this.#drawNote();
  }
}

/** The key in the tab; empty if there is none, or if the browser allows no storage. */
function readStored() {
  try {
    return sessionStorage.getItem(STORED) ?? "";
  } catch {
    return "";
  }
}
