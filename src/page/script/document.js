// @ts-check
/// <reference lib="dom" />
// The document: changes only where something differs, so that an idle page changes nothing; the answer, the prints and
// the contents.

import { perPrint, printsOf } from "./limits.js";
import { jsonPieces, ORIGIN_PLACEHOLDER } from "./request.js";

/**
 * @typedef {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} Field
 * @typedef {{ kind: string, head: [kind: string, text: string][], message: string, code?: string, todo?: string,
 *   next?: (HTMLElement | string | false | null | 0)[], body?: string, headers?: Headers }} Shown What the answer shows.
 *   `head` has texts, each after its class. If there is a code, the message says what the body says.
 */

/** All elements that match. @param {string} selector @returns {HTMLElement[]} */
export function all(selector) {
  return Array.from(document.querySelectorAll(selector));
}

/** The text of the first element that matches; empty if there is none. @param {string} selector */
export function textOf(selector) {
  return all(selector)[0]?.textContent ?? "";
}

/** Listens to an element. @param {string} id @param {string} type @param {(event: Event) => unknown} act */
export function on(id, type, act) {
  part(id).addEventListener(type, act);
}

/** The element with this id, which the page has. @param {string} id @returns {HTMLElement} */
export function part(id) {
  const [found] = all(`#${id}`);
  if (!found) throw new Error(id);
  return found;
}

/** All fields that match. @param {string} selector @returns {Field[]} */
export function fields(selector) {
  return Array.from(document.querySelectorAll(selector));
}

/** The first field that matches. @param {string} selector @returns {Field} */
export function field(selector) {
  const [found] = fields(selector);
  if (!found) throw new Error(selector);
  return found;
}

/** Sets an element's text. @param {Element} element @param {string} text */
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Sets an attribute, or removes it if the value is false. @param {Element} element @param {string} name @param {string | false} value */
export function mark(element, name, value) {
  if (value === false) element.removeAttribute(name);
  else if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/** Creates an element. Its texts are never parsed as HTML. @param {string} name @param {string} className @param {...(Node | string)} content */
export function create(name, className, ...content) {
  const made = document.createElement(name);
  if (className !== "") made.className = className;
  made.append(...content);
  return made;
}

/** Announces the text to screen readers. @param {string} text */
export function say(text) {
  write(part("news"), text);
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

/** A button that acts, and submits no form. @param {string} label @param {() => unknown} act */
export function button(label, act) {
  const made = create("button", "link", label);
  mark(made, "type", "button");
  made.addEventListener("click", act);
  return made;
}

/** A button that copies the result of `read`, and confirms it. Over plain http, except on localhost, a page has no clipboard. @param {string} name @param {() => string} read @param {() => void} [onCopied] */
export function copyButton(name, read, onCopied = () => {}) {
  const made = button("Copy", async () => {
    try {
      await navigator.clipboard.writeText(read());
      made.textContent = "Copied";
      onCopied();
    } catch {
      made.textContent = "Select and copy it";
    }
    say(made.textContent);
    setTimeout(() => made.textContent = "Copy", 1_500);
  });
  made.ariaLabel = `Copy ${name}`;
  return made;
}

/** Those texts that there are, as sentences. @param {...(string | false | undefined)} texts */
export function sentences(...texts) {
  return texts.map((text) => text && text.trim().replace(/[^.?]$/, "$&.")).filter(Boolean).join(" ");
}

/** Shows an answer. Its headers are folded, and with them the body if the message says the same. @param {Shown} shown */
export function show({ kind, head, message, code = "", todo = "", next = [], body = "", headers }) {
  mark(part("answer"), "data-kind", kind);
  const told = head.flatMap(([kind, text]) => [create(kind ? "b" : "span", kind, text), " "]);
  part("head").replaceChildren(...told);
  write(part("message"), message);
  write(part("error"), code);
  mark(part("error"), "href", all(`#error-${code || "none"}`).length > 0 && `#error-${code}`);
  write(part("todo"), todo);
  const isJson = !headers || headers.get("content-type")?.includes("json");
  const texts = isJson ? jsonPieces(body) : [["", body]];
  const pieces = texts.map(([kind = "", text = ""]) => create("span", kind, text));
  const copying = body && headers && copyButton("the response", () => body);
  part("next").replaceChildren(...[...next, copying].map((step) => step || ""));
  const lines = [...headers ?? []].map((header) => `${header.join(": ")}\n`);
  part("body").replaceChildren(...(code ? [] : pieces));
  part("raw").replaceChildren(...lines, "\n", ...(code ? pieces : []));
  mark(part("headers"), "hidden", lines.length === 0 && "");
  write(part("count"), `${lines.length} headers${code ? " and body" : ""}`);
  if (kind !== "example") say(sentences(part("head").textContent, message, todo));
}

/** Shows the example of a response. @param {string} operation */
export function showExample(operation) {
  const [told] = all(`#${operation} [data-status]`);
  const body = textOf(`#${operation}-${told?.dataset.status}`);
  const text = body ? "an example, until you send" : told?.textContent ?? "";
  show({ kind: "example", head: [["status", told?.dataset.status ?? ""], ["", text]], message: "", body });
}

/** Draws the prints of a minute, one by one within 600 ms, and counts them in the legend. @param {Parameters<typeof printsOf>[0]} usage */
export function drawPrints(usage) {
  const { admitted, refused, counts } = printsOf(usage);
  for (const [id, kinds] of Object.entries({ prints: admitted, refused })) {
    const prints = all(`#${id} > svg`);
    for (const extra of prints.slice(kinds.length)) extra.remove();
    for (const _ of kinds.slice(prints.length)) part(id).append(all("#legend svg")[0]?.cloneNode(true) ?? "");
  }
  const kinds = [...admitted, ...refused];
  const drawn = all("#prints > svg, #refused > svg").map((print, at) => ({ print, kind: kinds[at] ?? "" }));
  const changed = drawn.filter(({ print, kind }) => print.getAttribute("class") !== kind);
  for (const [index, { print, kind }] of changed.entries()) {
    print.style.transitionDelay = `${index * Math.min(12, 500 / changed.length)}ms`;
    mark(print, "class", kind);
  }
  for (const [index, name] of all("#legend > span").entries()) {
    const number = counts[index - 1];
    mark(name, "hidden", (index === 0 ? counts.some(Boolean) : !number) && "");
    for (const bold of name.querySelectorAll("b")) write(bold, `${number}`);
  }
  const per = perPrint(usage.limit);
  const each = per === 1 ? "" : ` One print stands for ${per} requests.`;
  mark(part("prints"), "aria-label", `${usage.left} of ${usage.limit} requests left.${each}`);
}

/** All operations. */
export function operations() {
  return all("article").map(({ id }) => id);
}

/** Makes the form of each operation from its reference. */
export function startForms() {
  for (const id of operations()) {
    const form = create("fieldset", "", create("legend", "quiet", textOf(`#${id} > h3 > a`)));
    const headers = create("details", "", create("summary", ""));
    form.id = `form-${id}`;
    for (const row of all(`#${id} [data-place]`)) {
      const { place, choices } = row.dataset;
      const options = choices ? ["", ...choices.split(" ")] : [];
      const field = create(choices ? "select" : "input", "");
      field.append(...options.map((option) => new Option(option || "not sent", option)));
      const [{ textContent: name } = { textContent: "" }] = row.getElementsByTagName("code");
      addField(place === "header" ? headers : form, name, field, row.dataset);
    }
    for (const { textContent: value } of all(`#${id}-body`)) {
      const field = Object.assign(create("textarea", ""), { rows: value.split("\n").length });
      addField(form, "body", field, { place: "body", value });
    }
    if (headers.children.length > 1) form.append(headers);
    part("code").before(form);
  }
}

/** Adds a field to a form. @param {Element} parent @param {string} name @param {HTMLElement} field @param {DOMStringMap} declared */
export function addField(parent, name, field, { place = "", value = "", absent = "not sent" }) {
  Object.assign(field, { name, value, placeholder: absent });
  field.dataset.place = place;
  mark(field, "aria-describedby", "message");
  parent.append(create("label", place, create("code", "", name), field));
}

/** Writes the page's own origin into its samples, and makes them ready to copy. */
export function startSamples() {
  for (const sample of all("#start code, .copyable")) {
    write(sample, sample.textContent.replaceAll(ORIGIN_PLACEHOLDER, location.origin));
    if (sample.className === "") continue;
    sample.before(copyButton(sample.id, () => sample.textContent));
  }
}

/** Filters the contents by the words and the codes of what they link to. */
export function startContents() {
  const links = all("nav li > a");
  for (const link of links) link.addEventListener("click", () => part("contents").hidePopover());
  on("filter", "input", () => {
    const words = field("#filter").value.toLowerCase().split(" ");
    for (const link of links) {
      const texts = [link, ...all(`${link.getAttribute("href")} code`)].map(({ textContent }) => textContent);
      link.hidden = !words.every((word) => texts.join(" ").toLowerCase().includes(word));
    }
    part("unfound").hidden = links.some(({ hidden }) => !hidden);
  });
}
