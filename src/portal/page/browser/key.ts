// deno-coverage-ignore-file -- runs in a browser, where tests/browser/ shows what it does
/// <reference lib="dom" />
import { byId, say, startCopyButton, startForm } from "./dom.ts";
import { exchange } from "./exchange.ts";
import { buildRequest } from "./request.ts";

/** The API key that calls are made with: in this page's memory, nowhere else. */
export interface Key {
  /** The key; empty where there is none yet. */
  readonly current: () => string;
  /** Takes over a key that was just made. */
  readonly adopt: (key: string) => void;
  /** Whether the key may give way to another: nobody could bring back one that was made and not copied. */
  readonly mayGo: () => boolean;
}

/** Lets the visitor paste a key, or sign up for one; `onChange` hears of every other key. */
export function startKey(base: string, onChange: () => void): Key {
  const input = byId("key-input", HTMLInputElement);
  const copy = byId("key-copy", HTMLElement);
  const note = byId("key-note", HTMLElement);
  let uncopied = "";
  let last = "";

  function changed(): void {
    if (key.current() === last) return;
    last = key.current();
    onChange();
  }

  function adopt(key: string): void {
    input.value = uncopied = key;
    note.hidden = copy.hidden = false;
    changed();
  }

  input.addEventListener("input", () => {
    note.hidden = true;
    changed();
  });
  const copied = (text: string) => void (text.includes(uncopied) && (uncopied = ""));
  for (const event of ["copy", "cut"]) {
    document.addEventListener(event, ({ target }) => {
      const { selectionStart: start, selectionEnd: end } = input;
      copied(target === input ? input.value.slice(start ?? 0, end ?? 0) : String(getSelection()));
    });
  }
  startCopyButton(copy, () => input.value, copied);
  addEventListener("beforeunload", (event) => {
    if (uncopied === "") return;
    uncopied = "";
    event.preventDefault();
  });
  const key = {
    current: () => input.value.trim(),
    adopt,
    mayGo: () =>
      uncopied === "" || key.current() !== uncopied ||
      confirm("Your key is not copied, and is not shown again. Go on without it?"),
  };
  startSignUp(base, key);
  return key;
}

/** Lets the visitor sign up, where that is open. */
export function startSignUp(base: string, key: Key): void {
  const form = document.getElementById("sign-up");
  if (!(form instanceof HTMLFormElement)) return;
  const name = byId("sign-up-name", HTMLInputElement);
  const problem = byId("sign-up-problem", HTMLElement);
  startForm(form, async () => {
    if (!key.mayGo()) return;
    const { status, newKey, message } = await exchange(buildRequest(
      { base, method: "POST", path: "/v1/accounts", bodyType: "application/json", key: "" },
      [{ name: "name", place: "body", type: "string", value: name.value }],
    ));
    problem.textContent = newKey === "" ? message || `No key came (${status}): try again later.` : "";
    if (newKey === "") return;
    key.adopt(newKey);
    byId("key-input", HTMLInputElement).select();
    say(message);
  });
}
