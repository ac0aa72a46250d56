// @ts-check
/// <reference lib="dom" />
// The console: makes a key, sends requests, and shows what comes back.

import { revealAnswer, showAnswer, showExample, showRace, wordsOfAnswer } from "./answer.js";
import { Composer } from "./composer.js";
import { byId, mark, part, say, write } from "./document.js";
import { HeldKey } from "./key.js";
import { minuteReset, raceOf } from "./limits.js";
import { Meter } from "./meter.js";
import { exchange, lineOf } from "./request.js";
import { Waits, whileBusy } from "./waits.js";

/**
 * @typedef {import("./request.js").Answer} Answer
 * @typedef {import("./request.js").Call} Call
 */

/** The payer of a sign-up. */
const SIGN_UP = "address";

/** The console. */
export class Console {
  #key = new HeldKey();
  #meter = new Meter();
  #waits = new Waits();
  #request = new Composer(this.#key, () => this.#drawRequest());
  #send = byId("send", HTMLButtonElement);
  #makeKeyButton = byId("make-key", HTMLButtonElement);
  #race = byId("race", HTMLButtonElement);
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  constructor() {
    this.#request.form.addEventListener("submit", (event) => (event.preventDefault(), void this.#call()));
    byId("key-form", HTMLFormElement).addEventListener("submit", (event) => {
      event.preventDefault();
      void (this.#key.isForNew ? this.#makeKey() : this.#useKey());
    });
    this.#race.addEventListener("click", () => void this.#runRace());
    this.#request.followAddress();
  }

  get #isBusy() {
    return part("console").ariaBusy === "true";
  }

  #drawRequest() {
    if (part("answer").dataset.kind === "example") showExample(this.#request.facts);
    this.#draw();
  }

  /** Draws everything that changes with time, again at the next second while something still does. */
  #draw() {
    if (this.#isBusy) return;
    const { minute, limits } = this.#meter;
    const counts = [
      this.#meter.draw(),
      this.#waits.draw(this.#send, this.#request.payer, "You can send again."),
      this.#waits.draw(this.#makeKeyButton, SIGN_UP, "You can make a key again."),
    ];
    const { size, note } = raceOf(minute, limits);
    mark(this.#race, "aria-disabled", size === 0 ? "true" : null);
    write(part("race-note"), note);
    clearTimeout(this.#timer);
    if (counts.includes(true)) this.#timer = setTimeout(() => this.#draw(), 1_000 - Date.now() % 1_000);
  }

  /**
   * Sends one or more requests while the buttons are locked, and announces the outcome.
   * @param {HTMLButtonElement} button
   * @param {string} doing
   * @param {() => Promise<void>} act
   * @param {() => readonly string[]} [words] What to announce.
   */
  async #whileBusy(button, doing, act, words = wordsOfAnswer) {
    await whileBusy(button, doing, act);
    this.#request.draw();
    say(words().filter(Boolean).join(". ").replaceAll("..", "."));
  }

  /** Sends a request, and uses the key and the limits in the response. @param {Call} call */
  async #run(call, payer = this.#request.payer) {
    const isOfKey = payer === this.#key.current;
    if (isOfKey) this.#meter.pending++;
    const answer = await exchange(call);
    if (isOfKey) this.#meter.pending--;
    const isStillOfKey = isOfKey && payer === this.#key.current;
    if (answer.newKey !== "") {
      this.#key.adopt(answer.newKey, true);
      // A new key of the same account has the same limits.
      if (!isStillOfKey) this.#meter.forget();
    }
    if (isStillOfKey) this.#meter.note(answer, `${lineOf(call)}, ${answer.status}, ${answer.ms} ms`);
    if (answer.wait > 0) this.#waits.add(payer, answer.wait);
    return answer;
  }

  /** Sends the shown request. @param {string} [news] What to announce first. */
  async #call(news = "") {
    if (this.#isBusy) return;
    if (this.#send.ariaDisabled) return say(`${this.#send.textContent} before sending again.`);
    const { confirm: question, discardsKey, access } = this.#request.facts;
    if (discardsKey !== undefined && !this.#key.mayDiscardKey()) return;
    if (question !== undefined && !confirm(question)) return;
    const call = this.#request.compose();
    let refusal = "";
    await this.#whileBusy(this.#send, "Sending…", async () => {
      const answer = await this.#run(call);
      const isOfKey = access === "key" && this.#key.current !== "";
      refusal = answer.status === 401 && isOfKey ? answer.message : "";
      showAnswer(answer, call, refusal !== "");
      this.#request.markFaults(answer);
    }, () => [news, ...wordsOfAnswer(), refusal]);
    if (refusal === "") return revealAnswer();
    this.#meter.forget();
    this.#key.reject(refusal);
    this.#request.draw();
  }

  /** Sends the first request with another key. */
  async #callFirst(news = "") {
    this.#meter.forget();
    this.#request.choose();
    await this.#call(news);
    if (this.#key.current !== "") this.#send.focus({ preventScroll: true });
  }

  async #makeKey() {
    const button = this.#makeKeyButton;
    if (this.#isBusy) return;
    if (button.ariaDisabled) return say(`${button.textContent} before making another key.`);
    if (!this.#key.mayDiscardKey()) return;
    /** @type {Call} */
    const signUp = {
      method: "POST",
      url: `${this.#request.base}/v1/accounts`,
      headers: [["Content-Type", "application/json"]],
      body: JSON.stringify({ name: this.#key.name }),
    };
    /** @type {Answer | undefined} */
    let answer;
    await this.#whileBusy(button, "Making a key…", async () => {
      answer = await this.#run(signUp, SIGN_UP);
    }, () => []);
    if (answer?.newKey) {
      await this.#callFirst(part("key-note").textContent);
      // Scrolls to the key, because it is shown only once.
      if (part("key").getBoundingClientRect().top < 0) part("key-form").scrollIntoView();
      return;
    }
    const { status, text = "", message = "", code } = answer ?? {};
    const reason = message === ""
      ? "No key was made. Try again later."
      : status === 0
      ? `${text}. ${message}`
      : message;
    if (code === "sign_up_closed") this.#key.close();
    else this.#key.refuse(reason);
    say(reason);
  }

  async #useKey() {
    if (this.#isBusy) return;
    const fault = this.#key.takePasted();
    if (fault === "") await this.#callFirst();
    else say(fault);
  }

  async #runRace() {
    const before = this.#meter.minute;
    const { size, note } = raceOf(before, this.#meter.limits);
    if (this.#isBusy) return;
    if (before === undefined || size === 0) return say(note);
    part("meter").scrollIntoView({ block: "nearest" });
    const [payer, call, begun] = [this.#key.current, this.#request.composeShort(), performance.now()];
    await this.#whileBusy(this.#race, "Racing…", async () => {
      const finishes = await Promise.all(Array.from({ length: size }, async () => {
        const { status, headers } = await this.#run(call, payer);
        return { status, reset: minuteReset(headers) };
      }));
      showRace(finishes, before, Math.round(performance.now() - begun));
    });
    setTimeout(() => part("answer-message").scrollIntoView({ block: "nearest" }), this.#meter.lag);
  }
}
