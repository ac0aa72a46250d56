// @ts-check
/// <reference lib="dom" />
// The page's inline script. Tests import its functions. It runs only in a page.

/** Placeholder of the API key in samples. */
export const KEY_PLACEHOLDER = "YOUR_KEY_FROM_ABOVE";
/** Placeholder of the page's origin in samples, which `start()` replaces. */
export const ORIGIN_PLACEHOLDER = "http://THIS_HOST";
/** No race is offered while the minute has more requests left than this, so that races stay small. */
const MOST_LEFT = 68;
const MOST_PRINTS = 60;
const FIRST_CALL = "listPets";

/**
 * @typedef {{ method: string, url: string, headers: [name: string, value: string][], body: string }} Call
 *   A request. An empty body means none.
 * @typedef {{ name: string, limit: number, left: number, seconds: number }} Limit A limit, which resets in `seconds`.
 * @typedef {{ reset: number, limit: number, used: number, marks: ("ok" | "bad")[], refused: number }} Minute
 *   A window: the service's count, and the outcomes of this page's requests.
 * @typedef {"" | "ok" | "bad" | "other" | "refused"} Print The outcome that a paw print shows.
 * @typedef {{ status: number, reset: number }} Finish The outcome of a request of the race. Status 0 means no response.
 * @typedef {{ status: number, text: string, headers: Headers, body: string, ms: number, code: string,
 *   message: string, newKey: string, wait: number }} Answer A response. Status 0 means none. `wait` is in seconds.
 */

/**
 * Builds a request from the fields of the form. Empty fields are left out.
 * @param {{ base: string, method: string, path: string, bodyType: string, key: string }} target
 * @param {readonly { name: string, place: string, value: string }[]} fields
 * @param {string} [body]
 * @returns {Call}
 */
export function buildRequest({ base, method, path, bodyType, key }, fields, body = "") {
  const at = (/** @type {string} */ wanted) =>
    fields.filter(({ place, value }) => place === wanted && (value !== "" || place === "path"));
  const encode = (/** @type {string} */ value) => encodeURIComponent(value.toWellFormed());
  const pathname = at("path").reduce(
    (text, { name, value }) => text.replace(`{${name}}`, () => encode(value)),
    path,
  );
  const query = at("query").map(({ name, value }) => `${name}=${encode(value)}`).join("&");
  /** @type {Call["headers"]} */
  const headers = at("header").map(({ name, value }) => [name, value]);
  if (body !== "") headers.unshift(["Content-Type", bodyType]);
  if (key !== "") headers.unshift(["Authorization", `Bearer ${key}`]);
  return { method, url: base + pathname + (query && `?${query}`), headers, body };
}

/**
 * Writes the request for `curl`, in `javascript` or `python`, or for any other language as HTTP.
 * @param {string} language
 * @param {Call} call
 * @returns {string}
 */
export function sample(language, { method, url, headers, body }) {
  const shell = (/** @type {string} */ text) => `'${text.replaceAll("'", `'\\''`)}'`;
  // A JSON string is a valid literal in JavaScript and Python.
  const quote = (/** @type {string} */ text) =>
    text.includes('"') && !/['\\\n]/.test(text) ? `'${text}'` : JSON.stringify(text);
  const pairs = (/** @type {string} */ indent) =>
    headers.map(([name, value]) => `${indent}${quote(name)}: ${quote(value)},`);
  if (language === "curl") {
    const implied = body === "" ? "GET" : "POST";
    return [
      `curl -i${method === implied ? "" : ` -X ${method}`} ${shell(url)}`,
      ...headers.map(([name, value]) => `-H ${shell(`${name}: ${value}`)}`),
      ...(body === "" ? [] : [`--data-raw ${shell(body)}`]),
    ].join(" \\\n  ");
  }
  if (language === "javascript") {
    return [
      `const response = await fetch(${quote(url)}, {`,
      `  method: ${quote(method)},`,
      ...(headers.length === 0 ? [] : ["  headers: {", ...pairs("    "), "  },"]),
      ...(body === "" ? [] : [`  body: ${quote(body)},`]),
      "});",
      "console.log(response.status, await response.text());",
    ].join("\n");
  }
  if (language === "python") {
    return [
      "from urllib.error import HTTPError",
      "from urllib.request import Request, urlopen",
      "",
      "request = Request(",
      `    ${quote(url)},`,
      `    method=${quote(method)},`,
      ...(headers.length === 0 ? [] : ["    headers={", ...pairs("        "), "    },"]),
      ...(body === "" ? [] : [`    data=${quote(body)}.encode(),`]),
      ")",
      "try:",
      "    response = urlopen(request)",
      "except HTTPError as error:",
      "    response = error",
      "print(response.status, response.read().decode())",
    ].join("\n");
  }
  const lines = headers.map(([name, value]) => `${name}: ${value}`);
  return [`${method} ${url}`, ...lines, ...(body === "" ? [] : ["", body])].join("\n");
}

/**
 * Splits JSON into indented pieces, which are then coloured. Numbers are not parsed, so they keep all digits.
 * @param {string} text
 * @returns {[kind: "name" | "string" | "number" | "plain", text: string][]}
 */
export function jsonPieces(text) {
  const token = /"(?:[^"\\]|\\.)*"(\s*:)?|-?\d[\d.eE+-]*|true|false|null|[{}[\],]/g;
  /** @type {ReturnType<typeof jsonPieces>} */
  const pieces = [];
  let depth = 0;
  let previous = "";
  const breakLine = () => pieces.push(["plain", `\n${"  ".repeat(depth)}`]);
  for (const [found, colon] of text.matchAll(token)) {
    const opened = previous === "{" || previous === "[";
    const closes = found === "}" || found === "]";
    if (closes) depth--;
    if (opened !== closes) breakLine();
    if (found === "{" || found === "[") depth++;
    if (colon !== undefined) pieces.push(["name", found.slice(0, -colon.length)], ["plain", ": "]);
    else if (found.startsWith('"')) pieces.push(["string", found]);
    else pieces.push([/^[-\d]/.test(found) ? "number" : "plain", found]);
    if (found === ",") breakLine();
    previous = found;
  }
  return pieces;
}

/** The limits in the headers of a response. @param {Headers} headers @returns {Limit[]} */
export function readLimits(headers) {
  const policy = [...(headers.get("ratelimit-policy") ?? "").matchAll(/"(\w+)";q=(\d+)/g)];
  const limits = new Map(policy.map(([, name, limit]) => [name, Number(limit)]));
  return [...(headers.get("ratelimit") ?? "").matchAll(/"(\w+)";r=(\d+);t=(\d+)/g)].map(
    ([, name = "", left, seconds]) => ({
      name,
      limit: limits.get(name) ?? 0,
      left: Number(left),
      seconds: Number(seconds),
    }),
  );
}

/**
 * When the minute of a response ends, in Unix seconds by the service's clock. `X-RateLimit-Reset` is the end of the
 * window that has fewer requests left.
 * @param {Headers} headers
 */
export function minuteReset(headers) {
  const limits = readLimits(headers);
  const shown = Number(headers.get("x-ratelimit-limit"));
  const seconds = (/** @type {Limit | undefined} */ limit) => limit?.seconds ?? 0;
  const minute = limits.find(({ name }) => name === "minute");
  const meant = minute?.limit === shown ? minute : limits.find(({ limit }) => limit === shown);
  return Number(headers.get("x-ratelimit-reset")) - seconds(meant) + seconds(minute);
}

/**
 * Updates the minute after a response. A response from a later minute starts a new one. One from an earlier minute is
 * ignored.
 * @param {Minute | undefined} minute
 * @param {{ status: number, headers: Headers }} answer
 * @returns {Minute | undefined}
 */
export function countAnswer(minute, { status, headers }) {
  const limit = readLimits(headers).find(({ name }) => name === "minute");
  if (limit === undefined) return minute;
  const reset = minuteReset(headers);
  if (minute !== undefined && reset < minute.reset) return minute;
  const { used = 0, marks = [], refused = 0 } = reset === minute?.reset ? minute : {};
  return {
    reset,
    limit: limit.limit,
    used: Math.max(used, limit.limit - limit.left),
    marks: status === 429 ? marks : [...marks, status < 400 ? "ok" : "bad"],
    refused: refused + (status === 429 ? 1 : 0),
  };
}

/**
 * The paw prints of a minute: requests of other clients first, refused ones after the limit.
 * @param {Minute} minute
 * @param {number} [pending] Number of requests of this page that have no response yet.
 * @returns {{ per: number, others: number, prints: Print[] }} `per` is the number of requests per print.
 */
export function printsOf({ limit, used, marks, refused }, pending = 0) {
  const per = Math.max(1, Math.ceil(limit / MOST_PRINTS));
  const others = Math.max(0, used - marks.length - pending);
  /** @type {Print[]} */
  const prints = Array.from({ length: Math.ceil(limit / per) }, (_, index) => {
    const [from, to] = [index * per - others, (index + 1) * per - others];
    const own = marks.slice(Math.max(0, from), Math.max(0, to));
    return own.includes("bad") ? "bad" : own.includes("ok") ? "ok" : from < 0 ? "other" : "";
  });
  const beyond = Math.min(MOST_PRINTS, Math.ceil(refused / per));
  for (let count = 0; count < beyond; count++) prints.push("refused");
  return { per, others, prints };
}

/**
 * The number of requests of a race: all that the minute has left and a few more, but too few for a ban. 0 if the minute
 * has too many left, or the day too few.
 * @param {readonly Limit[]} limits
 */
export function raceSize(limits) {
  const [minute, day] = ["minute", "day"].map((wanted) => limits.find(({ name }) => name === wanted));
  if (minute === undefined || day === undefined || minute.left > MOST_LEFT) return 0;
  const size = minute.left + Math.min(12, Math.floor(minute.limit / 5));
  return day.left > size ? size : 0;
}

/**
 * The outcome of a race, counted in the minute that most responses belong to.
 * @param {readonly Finish[]} finishes
 * @param {(reset: number) => number} leftOf Returns the remaining requests of the minute before the race.
 */
export function tally(finishes, leftOf) {
  const answers = finishes.filter(({ status }) => status > 0 && status !== 503);
  const [most = []] = [...Map.groupBy(answers, ({ reset }) => reset).values()]
    .sort((one, other) => other.length - one.length);
  const refused = most.filter(({ status }) => status === 429).length;
  const answered = most.length - refused;
  return {
    answered,
    refused,
    over: Math.max(0, answered - leftOf(most[0]?.reset ?? 0)),
    otherMinute: answers.length - most.length,
    lost: finishes.length - answers.length,
  };
}

/** The cursor in the link to the next page; empty on the last page. @param {string | null} link */
export function nextCursor(link) {
  const [, cursor = ""] = /[?&]cursor=([^&>]+)[^,]*rel="next"/.exec(link ?? "") ?? [];
  return decodeURIComponent(cursor);
}

/** The `code` and `message` of an Error body; both empty for other bodies. @param {string} text */
export function readProblem(text) {
  try {
    const { code = "", message = "" } = JSON.parse(text);
    return { code: String(code), message: String(message) };
  } catch {
    return { code: "", message: "" };
  }
}

/** Seconds in words. @param {number} seconds */
export function duration(seconds) {
  if (seconds < 100) return `${seconds} s`;
  return seconds < 6_000 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3_600)} h`;
}

/** The beginning of the key, with the rest hidden. @param {string} key */
export function maskKey(key) {
  return key.length > 12 ? `${key.slice(0, 12)}****` : key;
}

/** Sends the request and reads the whole response. @param {Call} call @returns {Promise<Answer>} */
export async function exchange({ method, url, headers, body }) {
  const begun = performance.now();
  try {
    const response = await fetch(url, {
      method,
      headers,
      body: body === "" ? null : body,
      // Bypasses the browser's cache.
      cache: "no-store",
      credentials: "omit",
      // Longer than the service's own timeout.
      signal: AbortSignal.timeout(30_000),
    });
    const text = await response.text();
    const { status } = response;
    // Only in a 201, because the OpenAPI document has keys as examples.
    const [, newKey = ""] = /"apiKey":"(\w+)"/.exec(status === 201 ? text : "") ?? [];
    const isRefused = status === 429 || status === 503;
    return {
      status,
      text: response.statusText,
      headers: response.headers,
      body: text,
      ms: performance.now() - begun,
      ...readProblem(response.ok ? "" : text),
      newKey,
      wait: isRefused ? Number(response.headers.get("retry-after")) : 0,
    };
  } catch {
    // fetch() refuses an invalid header before it sends anything.
    const isUnsendable = headers.some(([, value]) => /[^\t\x20-\x7e\x80-\xff]/.test(value));
    const again = method === "GET"
      ? " and that the service is running, then send it again."
      : ", that the service is running, and whether the request took effect before you send it again.";
    const message = isUnsendable
      ? "The request was not sent, because a header, such as the key, contains a character that headers cannot carry."
      : `There was no response. Check that you are online${again}`;
    const nothing = { headers: new Headers(), body: "", code: "", newKey: "", wait: 0 };
    return { ...nothing, status: 0, text: "No response", ms: performance.now() - begun, message };
  }
}

/**
 * The element with this id, which page.html has.
 * @template {HTMLElement} Kind
 * @param {string} id
 * @param {abstract new () => Kind} kind
 * @returns {Kind}
 */
function byId(id, kind) {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`The page has no ${id}`);
  return found;
}

/** The element with this id, of any kind. @param {string} id */
function part(id) {
  return byId(id, HTMLElement);
}

/** All elements that match. @param {string} selector @returns {NodeListOf<HTMLElement>} */
function all(selector) {
  return document.querySelectorAll(selector);
}

/** The last matching element that begins above `y`. @param {string} selector @param {number} y */
function lastAbove(selector, y) {
  return [...all(selector)].findLast((element) => element.getBoundingClientRect().top < y);
}

/** Announces the text to screen readers. @param {string} text */
function say(text) {
  part("announcement").textContent = text;
}

/** Creates an element. Its text is never parsed as HTML. @param {string} name @param {string} className @param {string} text */
function element(name, className, text) {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}

/**
 * Makes the button copy the result of `read`, and confirm it.
 * @param {HTMLElement} button
 * @param {() => string} read
 * @param {(text: string) => void} [onCopied]
 */
function startCopy(button, read, onCopied = () => {}) {
  const label = button.textContent;
  const name = button.ariaLabel;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  button.addEventListener("click", async () => {
    const text = read();
    const isCopied = await copyText(text);
    if (isCopied) onCopied(text);
    button.focus();
    button.textContent = button.ariaLabel = isCopied ? "Copied" : "Copy it yourself";
    say(isCopied ? "Copied" : "Copying is blocked here: select the text and copy it yourself");
    clearTimeout(timer);
    timer = setTimeout(() => (button.textContent = label, button.ariaLabel = name), 1_500);
  });
}

/** Copies the text. Resolves to true if that worked. @param {string} text */
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // On plain http, except on localhost, a page has no other clipboard.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const isCopied = document.execCommand("copy");
    area.remove();
    return isCopied;
  }
}

/** The visitor's API key. It is kept only in memory. */
class HeldKey {
  /** The key; empty if there is none yet. */
  current = "";
  #uncopied = "";
  #copy = part("copy-key");

  constructor() {
    for (const button of all("[data-show]")) {
      button.addEventListener("click", () => {
        if (!this.mayDiscardKey()) return;
        part("console").dataset.key = button.dataset.show;
        byId(button.dataset.show === "make" ? "name" : "key-input", HTMLInputElement).select();
      });
    }
    for (const event of ["copy", "cut"]) {
      document.addEventListener(event, () => this.#noteCopied(String(getSelection())));
    }
    startCopy(this.#copy, () => this.current, (text) => this.#noteCopied(text));
    addEventListener("beforeunload", (event) => {
      if (this.#uncopied === "") return;
      this.#uncopied = "";
      event.preventDefault();
    });
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
    this.#copy.hidden = !isNew;
    part("key").textContent = isNew ? key : maskKey(key);
    part("key-note").textContent = isNew
      ? "Your key is shown only once. Copy it now."
      : "Your key. It is kept only on this page.";
    part("console").dataset.key = "held";
  }

  /** Records that the visitor copied a text. @param {string} text */
  #noteCopied(text) {
    if (text.includes(this.#uncopied)) this.#uncopied = "";
  }
}

/** The paw prints and the numbers beside them, from the responses to requests with the key. */
class Meter {
  /** Number of requests with the key under way. */
  pending = 0;
  #image = part("prints");
  #label = this.#image.ariaLabel;
  #count = this.#image.children.length;
  /** @type {Minute | undefined} */
  #minute;
  /** @type {(Limit & { until: number })[]} */
  #limits = [];

  /** The current limits. A window that has ended has all its requests again. */
  get limits() {
    return this.#limits.map(({ until, ...limit }) => {
      const seconds = Math.ceil((until - Date.now()) / 1_000);
      return seconds > 0 ? { ...limit, seconds } : { ...limit, left: limit.limit, seconds: 0 };
    });
  }

  /** The current minute; undefined if unknown. */
  get minute() {
    const isOver = this.limits.some(({ name, seconds }) => name === "minute" && seconds === 0);
    return isOver && this.#minute
      ? { ...this.#minute, reset: 0, used: 0, marks: [], refused: 0 }
      : this.#minute;
  }

  draw() {
    const { minute, limits } = this;
    if (minute === undefined) return;
    const { limit, used, marks, refused } = minute;
    const { seconds = 0 } = limits.find(({ name }) => name === "minute") ?? {};
    const day = limits.find(({ name }) => name === "day");
    const count = (/** @type {number} */ number) => number.toLocaleString("en");
    const left = `${count(limit - used)} of ${count(limit)}`;
    const { per, others, prints } = printsOf(minute, this.pending);
    part("minute").textContent = `${left} left`;
    part("minute-end").textContent = seconds > 0 ? `new in ${duration(seconds)}` : "";
    part("day").textContent = day ? `${count(day.left)} of ${count(day.limit)} today` : "";
    part("per").textContent = per === 1 ? "" : `One print for every ${per} requests.`;
    this.#drawPrints(prints);
    const marked = (/** @type {string} */ wanted) => marks.filter((mark) => mark === wanted).length;
    this.#image.ariaLabel = `${left} requests left this minute: ${marked("ok")} succeeded, ` +
      `${marked("bad")} failed, ${others} came from other clients; ${refused} were refused`;
  }

  /** @param {readonly Print[]} prints */
  #drawPrints(prints) {
    const paws = [...this.#image.children];
    for (const paw of paws.slice(prints.length)) paw.remove();
    const missing = { length: prints.length - paws.length };
    this.#image.append(...Array.from(missing, () => paws[0]?.cloneNode(true) ?? ""));
    for (const [index, kind] of prints.entries()) this.#image.children[index]?.setAttribute("class", kind);
  }

  /** Records a response to a call with the key. @param {{ status: number, headers: Headers, code: string }} answer */
  note(answer) {
    const limits = readLimits(answer.headers);
    const isOfKey = limits.some(({ name }) => name === "day");
    const isLate = minuteReset(answer.headers) < (this.#minute?.reset ?? 0);
    // Ignores late responses from an earlier minute, and the 429 of a ban, whose reset is the end of the ban.
    if (!isOfKey || isLate || answer.code === "key_banned") return;
    this.#minute = countAnswer(this.#minute, answer);
    this.#limits = limits.map((limit) => {
      const until = Date.now() + limit.seconds * 1_000;
      // Responses may overtake each other.
      const before = this.#limits.find(({ name, until: end }) =>
        name === limit.name && Math.abs(end - until) < 2_000
      );
      return { ...limit, left: Math.min(limit.left, before?.left ?? limit.left), until };
    });
    this.draw();
  }

  /** Returns to the state before the first call, because the plan of another key is not known yet. */
  forget() {
    this.#minute = undefined;
    this.#limits = [];
    part("minute").textContent = `${this.#count} requests a minute`;
    for (const id of ["minute-end", "day", "per"]) part(id).textContent = "";
    this.#drawPrints(Array.from({ length: this.#count }, () => ""));
    this.#image.ariaLabel = this.#label;
  }
}

/**
 * Shows the outcome of a request.
 * @param {{ head: string[][], message: string, advice: string, kind: string }} outcome Texts of the head, each after
 *   its class name.
 * @param {{ body?: string, headers?: Headers }} [answer]
 */
function showOutcome({ head, message, advice, kind }, { body = "", headers = new Headers() } = {}) {
  part("answer").dataset.kind = kind;
  const pieces = head.map(([name = "", text = ""]) => element(name === "" ? "span" : "b", name, text));
  part("answer-head").replaceChildren(...pieces.flatMap((piece) => [piece, " "]));
  part("answer-message").textContent = message;
  part("answer-advice").textContent = advice;
  const isJson = headers.get("content-type")?.startsWith("application/json");
  const tokens = isJson ? jsonPieces(body) : [["", body]];
  part("answer-body").replaceChildren(
    ...tokens.map(([className = "", text = ""]) => element("span", className, text)),
  );
  const details = byId("answer-headers", HTMLDetailsElement);
  const rows = [...headers].flatMap(([name, value]) => [element("dt", "", name), element("dd", "", value)]);
  details.hidden = rows.length === 0 || kind === "example";
  details.querySelector("summary")?.replaceChildren(`${rows.length / 2} headers`);
  details.querySelector("dl")?.replaceChildren(...rows);
  part("first-animal").hidden = body !== "[]";
  const next = byId("next-page", HTMLButtonElement);
  next.value = nextCursor(headers.get("link"));
  if (next.value === "" && document.activeElement === next) part("answer").focus();
}

/** Shows a response. @param {Answer} answer @param {Call} call Its request. */
function showAnswer({ status, text, headers, body, ms, code, message, newKey, wait }, { method, url }) {
  const { pathname, search } = new URL(url);
  const facts = `${Math.max(1, Math.round(ms))} ms · ${method} ${pathname}${search}`;
  const kind = status === 429 ? "429" : `${status}`.slice(0, 1);
  const head = status === 0 ? [["status", text]] : [["status", `${status}`], ["", text]];
  const note = newKey === "" ? message : "This is your new key. It is shown only once: copy it above.";
  const todo = body === "[]" ? "The list is empty." : adviceOn(code);
  const advice = wait > 0 ? todo.replace("Retry-After", `Retry-After (${duration(wait)})`) : todo;
  const shown = status === 204 || status === 304 ? "No body." : body;
  showOutcome({ head: [...head, ["", facts]], message: note, advice, kind }, { body: shown, headers });
}

/** Shows the example of a response, before the first call. @param {DOMStringMap} operation */
function showExample({ status = "", example = "" }) {
  const head = [["status", status], ["", "an example, until your first call"]];
  const headers = new Headers({ "content-type": "application/json" });
  showOutcome({ head, message: "", advice: "", kind: "example" }, { body: example || " ", headers });
}

/** Shows a race. @param {readonly Finish[]} finishes @param {Minute} before The minute before it. @param {number} ms */
function showRace(finishes, before, ms) {
  const left = before.limit - before.used;
  const outcome = tally(finishes, (reset) => reset === before.reset ? left : before.limit);
  const message = [
    `${finishes.length} requests at once, with ${left} left this minute.`,
    ...(outcome.otherMinute ? [`${outcome.otherMinute} of them arrived in another minute.`] : []),
    ...(outcome.lost ? [`${outcome.lost} got 503 or no response.`] : []),
  ].join(" ");
  showOutcome({
    head: [
      ["ok", `${outcome.answered}`],
      ["", "admitted,"],
      ["refused", `${outcome.refused}`],
      ["", "refused,"],
      ["over", outcome.over ? `${outcome.over}` : "none"],
      ["", "over,"],
      ["", `in ${ms} ms`],
    ],
    message,
    advice:
      "No matter how many requests arrive at once, the service admits exactly as many as the minute has left. " +
      "Clients that keep sending requests after a 429 are banned, at first for five minutes. This page waits instead.",
    kind: "race",
  });
}

/** The advice in the table of errors. @param {string} code */
function adviceOn(code) {
  return document.getElementById(`error-${code}`)?.querySelector("[data-todo]")?.textContent ?? "";
}

/** Scrolls the status into view, with some of the content below it. */
function reveal() {
  const { top, bottom } = part("answer-head").getBoundingClientRect();
  if (top < 0 || bottom > innerHeight * 0.75) part("answer").scrollIntoView({ block: "nearest" });
}

/** The form for a request, and the button that sends it. */
class Composer {
  /** Prefix of the service's URLs. */
  base = part("console").dataset.base || location.origin;
  form = byId("call", HTMLFormElement);
  send = byId("send", HTMLButtonElement);
  #select = byId("operation", HTMLSelectElement);
  #key;
  #isTouched = false;
  /** Retry-After waits, by payer. @type {Map<string, { begun: number, until: number }>} */
  #waits = new Map();

  /** @param {HeldKey} key */
  constructor(key) {
    this.#key = key;
    this.form.addEventListener("input", ({ target }) => {
      this.#isTouched ||= !(target instanceof HTMLInputElement && target.type === "radio");
      this.draw();
    });
    this.form.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.form.requestSubmit();
    });
    const next = byId("next-page", HTMLButtonElement);
    next.addEventListener("click", () => this.#turnTo(next.value));
    for (const button of all("[data-try]")) {
      button.addEventListener("click", () => {
        this.#isTouched = true;
        this.choose(button.dataset.try);
        part("console").scrollIntoView({ block: "nearest" });
        this.#select.focus();
      });
    }
    startCopy(part("copy-request"), () => this.#sample(key.current || KEY_PLACEHOLDER));
    addEventListener("scroll", () => this.#follow(), { passive: true });
  }

  /** The id of the operation. */
  get operation() {
    return this.#select.value;
  }

  /** Who is charged for the request: a key, the `address`, or nobody if it is `public`. */
  get payer() {
    const { access = "" } = this.#fieldset.dataset;
    return access === "key" ? this.#key.current || "keyless" : access;
  }

  get #fieldset() {
    return byId(`request-${this.operation}`, HTMLFieldSetElement);
  }

  /** The request that is shown, with this key. */
  compose(key = this.#key.current) {
    const { method = "", path = "", access, bodyType = "" } = this.#fieldset.dataset;
    /** @type {NodeListOf<HTMLInputElement | HTMLSelectElement>} */
    const inputs = this.#fieldset.querySelectorAll("[data-place]");
    const fields = [...inputs].map(({ name, value, dataset: { place = "" } }) => ({ name, place, value }));
    const body = this.#fieldset.querySelector("textarea")?.value.trim() ?? "";
    const target = { base: this.base, method, path, bodyType, key: access === "key" ? key : "" };
    return buildRequest(target, fields, body);
  }

  #sample(key = KEY_PLACEHOLDER) {
    return sample(String(new FormData(this.form).get("language")), this.compose(key));
  }

  choose(operation = FIRST_CALL) {
    this.#select.value = operation;
    this.draw();
  }

  draw() {
    for (const fieldset of all("#requests > fieldset")) fieldset.hidden = fieldset !== this.#fieldset;
    drawFields(this.#fieldset, this.#key.current);
    part("sample").textContent = this.#sample();
    if (part("answer").dataset.kind === "example") showExample(this.#fieldset.dataset);
    this.drawWait();
  }

  /** Delays requests that are charged to this payer. @param {string} payer @param {number} seconds */
  wait(payer, seconds) {
    this.#waits.set(payer, { begun: Date.now(), until: Date.now() + seconds * 1_000 });
  }

  /** Remaining wait of the payer, in ms. @param {string} payer */
  waitOf(payer) {
    return Math.max(0, (this.#waits.get(payer)?.until ?? 0) - Date.now());
  }

  drawWait() {
    const left = this.waitOf(this.payer);
    const { begun = 0, until = 0 } = this.#waits.get(this.payer) ?? {};
    if (left > 0) {
      // `disabled` would take the focus from the button.
      this.send.ariaDisabled = "true";
      this.send.textContent = `Wait ${duration(Math.ceil(left / 1_000))}`;
      this.send.style.setProperty("--waited", `${1 - left / (until - begun)}`);
    } else if (this.send.ariaDisabled) {
      this.send.ariaDisabled = null;
      this.send.textContent = "Send";
      say("You can send again.");
    }
  }

  /** Requests the page of the list at this cursor. @param {string} cursor */
  #turnTo(cursor) {
    this.#isTouched = true;
    this.choose();
    const field = this.#fieldset.elements.namedItem("cursor");
    if (!(field instanceof HTMLInputElement)) return;
    field.value = cursor;
    this.draw();
    this.form.requestSubmit();
  }

  /** Shows the operation whose reference is in view, until the visitor changes a field. */
  #follow() {
    if (this.#isTouched || part("console").ariaBusy || !matchMedia("(min-width: 70rem)").matches) return;
    const { id = FIRST_CALL } = lastAbove("#reference article", innerHeight / 3) ?? {};
    if (id !== this.operation) this.choose(id);
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
  for (const [index, mark] of fieldset.querySelectorAll("label > i").entries()) {
    const field = mark.nextElementSibling;
    const isSent = (field instanceof HTMLInputElement || field instanceof HTMLSelectElement) &&
      field.value !== "";
    mark.textContent = isFirst && (isSent || index === 0) ? "?" : "&";
    isFirst &&= !isSent;
  }
  for (const input of fieldset.querySelectorAll("input")) {
    input.size = Math.max(input.value.length, input.placeholder.length);
  }
  for (const area of fieldset.querySelectorAll("textarea")) area.rows = area.value.split("\n").length;
  const credentials = fieldset.querySelector(".credentials > span");
  if (credentials) credentials.textContent = key && `Bearer ${maskKey(key)}`;
}

/** The console: creates a key, composes and sends requests, and shows responses. */
class Console {
  #key = new HeldKey();
  #meter = new Meter();
  #request = new Composer(this.#key);
  #race = byId("race", HTMLButtonElement);
  #racedIn = 0;

  constructor() {
    this.#request.form.addEventListener("submit", (event) => (event.preventDefault(), void this.#call()));
    byId("key-form", HTMLFormElement).addEventListener("submit", (event) => {
      event.preventDefault();
      void (part("console").dataset.key === "make" ? this.#makeKey() : this.#useKey());
    });
    this.#race.addEventListener("click", () => void this.#runRace());
    setInterval(() => this.#draw(), 250);
    this.#request.draw();
  }

  /** Draws everything that changes with time. */
  #draw() {
    const { minute, limits } = this.#meter;
    this.#meter.draw();
    this.#request.drawWait();
    this.#race.hidden = this.#request.waitOf(this.#key.current) > 0 || raceSize(limits) === 0 ||
      minute?.refused !== 0 || minute.reset === this.#racedIn;
  }

  /**
   * Sends one or more requests while the buttons are locked, and announces the outcome.
   * @param {() => Promise<void>} act
   * @param {string} [news] What to announce first.
   */
  async #whileBusy(act, news = "") {
    if (part("console").ariaBusy) return;
    part("console").ariaBusy = "true";
    say("Sending");
    await act().finally(() => (part("console").ariaBusy = null));
    this.#request.draw();
    this.#draw();
    const shown = ["head", "message", "advice"].map((name) => part(`answer-${name}`).textContent.trim());
    say([news, ...shown].filter(Boolean).join(". ").replaceAll("..", "."));
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
    if (isStillOfKey) this.#meter.note(answer);
    if (answer.wait > 0) this.#request.wait(payer, answer.wait);
    return answer;
  }

  /** Sends the shown request. */
  async #call(news = "") {
    const { send, operation } = this.#request;
    if (send.ariaDisabled) return say(`${send.textContent} before sending again.`);
    if (operation === "createAccount" && !this.#key.mayDiscardKey()) return;
    if (operation === "closeAccount" && !confirm("This closes your account permanently. Continue?")) return;
    const call = this.#request.compose();
    await this.#whileBusy(async () => showAnswer(await this.#run(call), call), news);
    reveal();
  }

  /** Sends the first request with another key. */
  async #callFirst(news = "") {
    this.#meter.forget();
    this.#request.choose();
    await this.#call(news);
    this.#request.send.focus({ preventScroll: true });
  }

  async #makeKey() {
    if (!this.#key.mayDiscardKey()) return;
    const name = byId("name", HTMLInputElement).value;
    /** @type {Call} */
    const signUp = {
      method: "POST",
      url: `${this.#request.base}/v1/accounts`,
      headers: [["Content-Type", "application/json"]],
      body: JSON.stringify({ name }),
    };
    await this.#whileBusy(async () => {
      const answer = await this.#run(signUp, "address");
      if (answer.newKey !== "") return;
      showAnswer({ ...answer, message: answer.message || "No key was created. Try again later." }, signUp);
      if (answer.code !== "sign_up_closed" && answer.code !== "sign_up_limit") return;
      document.body.dataset.signUp = "closed";
      part("console").dataset.key = "paste";
      part("key-input").focus({ preventScroll: true });
    });
    if (this.#key.current === "") return reveal();
    await this.#callFirst(part("key-note").textContent);
    // Scrolls to the key, because it is shown only once.
    if (part("key").getBoundingClientRect().top < 0) part("key-form").scrollIntoView();
  }

  async #useKey() {
    const input = byId("key-input", HTMLInputElement);
    const pasted = input.value.trim();
    if (pasted === "") return input.focus();
    if (part("console").ariaBusy) return;
    this.#key.adopt(pasted, false);
    input.value = "";
    await this.#callFirst();
  }

  async #runRace() {
    const size = raceSize(this.#meter.limits);
    const before = this.#meter.minute;
    if (part("console").ariaBusy || before === undefined) return;
    const [payer, begun] = [this.#key.current, performance.now()];
    /** @type {Call} */
    const short = {
      method: "GET",
      url: `${this.#request.base}/v1/pets?limit=1`,
      headers: [["Authorization", `Bearer ${payer}`]],
      body: "",
    };
    await this.#whileBusy(async () => {
      const finishes = await Promise.all(Array.from({ length: size }, async () => {
        const { status, headers } = await this.#run(short, payer);
        return { status, reset: minuteReset(headers) };
      }));
      this.#racedIn = Math.max(...finishes.map(({ reset }) => reset));
      showRace(finishes, before, Math.round(performance.now() - begun));
    });
    // The button with the focus is hidden now.
    if (document.activeElement === document.body) part("answer").focus({ preventScroll: true });
    for (const id of ["prints", "answer-message"]) part(id).scrollIntoView({ block: "nearest" });
  }
}

/** Marks the visible section in the table of contents. */
function startContents() {
  const nav = part("contents");
  function mark() {
    const isAtEnd = scrollY + innerHeight >= document.documentElement.scrollHeight - 2;
    const current = lastAbove(".words > section[id]", isAtEnd ? Infinity : innerHeight / 4);
    for (const link of nav.querySelectorAll("a")) {
      const isCurrent = link.hash === `#${current?.id}`;
      if (isCurrent === (link.ariaCurrent === "true")) continue;
      link.ariaCurrent = isCurrent ? "true" : null;
      if (isCurrent) nav.scrollLeft = link.offsetLeft - nav.clientWidth / 2 + link.offsetWidth / 2;
    }
  }
  addEventListener("scroll", mark, { passive: true });
  mark();
}

/** Starts the interactive parts. The page can be read without them. */
function start() {
  new Console();
  startContents();
  for (const button of all("[data-copy]")) {
    const text = part(button.dataset.copy ?? "");
    text.textContent = text.textContent.replaceAll(ORIGIN_PLACEHOLDER, location.origin);
    startCopy(button, () => text.textContent);
  }
}

if (typeof document !== "undefined") start();
