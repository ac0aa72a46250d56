// @ts-check
/// <reference lib="dom" />
// The document: changes only where something differs, so that an idle page changes nothing; and an answer.

import { sentences } from "./answer.js";
import { jsonPieces } from "./request.js";

/**
 * @typedef {import("./answer.js").Told & { next?: (HTMLElement | string | false | null | 0)[], onCopied?: () => void }}
 *   Shown What the answer shows, what can follow, and what happens once it is copied.
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

/** Sets an element's text. @param {Element} element @param {string} text */
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * Sets an attribute, or removes it if the value is false.
 * @param {Element} element
 * @param {string} name
 * @param {string | false} value
 */
export function mark(element, name, value) {
  if (value === false) element.removeAttribute(name);
  else if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/**
 * Creates an element. Its texts are never parsed as HTML.
 * @param {string} name
 * @param {string} className
 * @param {...(Node | string)} content
 */
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

/** A button that acts, and submits no form. @param {string} label @param {() => unknown} act */
export function button(label, act) {
  const made = create("button", "link", label);
  mark(made, "type", "button");
  made.addEventListener("click", act);
  return made;
}

/**
 * A button that copies the result of `read`, and confirms it. Over plain http, except on localhost, a page has no
 * clipboard.
 * @param {string} name
 * @param {() => string | Promise<string>} read
 * @param {{ label?: string, onCopied?: () => void }} [options]
 */
export function copyButton(name, read, { label = "Copy", onCopied = () => {} } = {}) {
  const made = button(label, async () => {
    try {
      await navigator.clipboard.writeText(await read());
      made.textContent = "Copied";
      onCopied();
    } catch {
      made.textContent = "Select and copy it";
    }
    say(made.textContent);
    setTimeout(() => made.textContent = label, 1_500);
  });
  made.ariaLabel = label === "Copy" ? `Copy ${name}` : label;
  return made;
}

/**
 * Shows an answer. Its headers are folded, and with them the body if the message says the same.
 * @param {Shown} shown
 */
export function show(
  { kind, head, message, code = "", todo = "", next = [], body = "", headers, onCopied = () => {} },
) {
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
  const copying = body && headers && copyButton("the response", () => body, { onCopied });
  part("next").replaceChildren(...[...next, copying].map((step) => step || ""));
  const lines = [...headers ?? []].map((header) => `${header.join(": ")}\n`);
  part("body").replaceChildren(...(code ? [] : pieces));
  part("raw").replaceChildren(...lines, "\n", ...(code ? pieces : []));
  mark(part("headers"), "hidden", lines.length === 0 && "");
  write(part("count"), `${lines.length} headers${code ? " and body" : ""}`);
  if (kind !== "example") say(sentences(part("head").textContent, message, todo));
}
