// deno-coverage-ignore-file -- runs in a browser, where tests/browser/ shows what it does
/// <reference lib="dom" />
import { readLimits } from "./answer.ts";
import { showAnswer } from "./answer_view.ts";
import { byId, say, startCopyButton, startForm } from "./dom.ts";
import { exchange } from "./exchange.ts";
import { type Key, startKey } from "./key.ts";
import { startMeters } from "./meters.ts";
import { startPause, type Wait } from "./pause.ts";
import { buildRequest, type ConsoleRequest, type Field } from "./request.ts";
import { maskKey, sample } from "./samples.ts";

/** Lets the visitor compose a request, send it and read the answer. */
export function startConsole(base: string): void {
  const form = byId("console", HTMLFormElement);
  const select = byId("operation", HTMLSelectElement);
  const send = byId("send", HTMLButtonElement);
  const next = byId("next-page", HTMLButtonElement);
  const showLimits = startMeters();
  const pause = startPause(send);
  const key: Key = startKey(base, () => {
    showLimits([]);
    draw();
  });
  /** How long to wait, by who is charged. */
  const waits = new Map<string, Wait>();

  function takesKey(): boolean {
    return fieldsetOf(select.value).dataset.access === "key";
  }

  /** Who is charged: a key, `address`, or nobody where it is `public`. */
  function payer(): string {
    const { access = "" } = fieldsetOf(select.value).dataset;
    return access === "key" ? key.current() || "address" : access;
  }

  function compose(placeholder: string): ConsoleRequest {
    const { method = "", path = "", bodyType = "" } = fieldsetOf(select.value).dataset;
    const bearer = takesKey() ? key.current() || placeholder : "";
    return buildRequest({ base, method, path, bodyType, key: bearer }, readFields(select.value));
  }

  /** Asks before what nobody can undo. */
  function mayGo(): boolean {
    if (select.value === "createAccount") return key.mayGo();
    return select.value !== "closeAccount" || confirm("This closes your account for good. Go on?");
  }

  function language(): string {
    return new FormData(form).get("language")?.toString() ?? "";
  }

  /** A program names a key that is not there yet; what is sent does not. */
  function shown(): string {
    return sample(language(), compose(language() === "http" ? "" : "API_KEY"));
  }

  function draw(): void {
    pause.show(waits.get(payer()));
    for (const { value } of select.options) {
      fieldsetOf(value).hidden = fieldsetOf(value).disabled = value !== select.value;
    }
    byId("sample", HTMLElement).textContent = maskKey(shown(), key.current());
    byId("no-key", HTMLElement).hidden = key.current() !== "" || !takesKey();
  }

  async function call(): Promise<void> {
    if (!pause.isOver()) return say(`${send.textContent} before sending again.`);
    if (!mayGo()) return;
    const [paidBy, operation] = [payer(), select.selectedOptions[0]?.text ?? ""];
    const answer = await exchange(compose(""));
    // A new key of the same account goes on with its limits.
    const isOfThisKey = paidBy === key.current();
    if (answer.newKey !== "") key.adopt(answer.newKey);
    showAnswer(answer, operation);
    const limits = readLimits(answer.headers);
    if (isOfThisKey && limits.some(({ name }) => name === "day")) showLimits(limits);
    const { wait } = answer;
    if (wait > 0) waits.set(paidBy, { begun: Date.now(), until: Date.now() + wait * 1_000 });
    draw();
  }

  form.addEventListener("input", draw);
  startForm(form, call);
  next.addEventListener("click", () => {
    select.value = "listPets";
    byId("listPets-cursor", HTMLInputElement).value = next.value;
    draw();
    form.requestSubmit();
  });
  startCopyButton(byId("sample-copy", HTMLElement), shown);
  startTryLinks(select, draw);
  draw();
}

/** The fields of an operation. */
export function fieldsetOf(operation: string): HTMLFieldSetElement {
  return byId(`fields-${operation}`, HTMLFieldSetElement);
}

/** The fields of an operation, as they are filled in. */
export function readFields(operation: string): Field[] {
  const inputs = fieldsetOf(operation).querySelectorAll<HTMLInputElement | HTMLSelectElement>("[data-place]");
  return [...inputs].map(({ name, value, dataset: { place = "", type = "" } }) => ({
    name,
    place,
    type,
    value,
  }));
}

/** Lets the links beside the operations take them to the console. */
export function startTryLinks(select: HTMLSelectElement, draw: () => void): void {
  const form = byId("console", HTMLFormElement);
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest<HTMLElement>("[data-try]") : null;
    if (link === null) return;
    event.preventDefault();
    select.value = link.dataset.try ?? "";
    draw();
    const { top, bottom } = form.getBoundingClientRect();
    if (top < 0 || bottom > innerHeight + form.offsetHeight / 2) form.scrollIntoView();
    select.focus({ preventScroll: true });
  });
}
