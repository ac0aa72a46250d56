// @ts-check
/// <reference lib="dom" />
// The document: elements by id, and changes only where something differs, so that an idle page changes nothing.

/**
 * The element with this id, which the page has.
 * @template {HTMLElement} Kind
 * @param {string} id
 * @param {abstract new () => Kind} kind
 * @returns {Kind}
 */
export function byId(id, kind) {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`The page has no ${id}`);
  return found;
}

/** The element with this id, of any kind. @param {string} id */
export function part(id) {
  return byId(id, HTMLElement);
}

/** All elements that match. @param {string} selector @returns {NodeListOf<HTMLElement>} */
export function all(selector) {
  return document.querySelectorAll(selector);
}

/** Sets an element's text. @param {Element} element @param {string} text */
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Sets an attribute, or removes it if the value is null. @param {Element} element @param {string} name @param {string | null} value */
export function mark(element, name, value) {
  if (element.getAttribute(name) === value) return;
  if (value === null) element.removeAttribute(name);
  else element.setAttribute(name, value);
}

/** Creates an element. Its text is never parsed as HTML. @param {string} name @param {string} className @param {string} text */
export function create(name, className, text) {
  const made = document.createElement(name);
  if (className !== "") made.className = className;
  made.textContent = text;
  return made;
}

/** Announces the text to screen readers. @param {string} text */
export function say(text) {
  write(part("announcement"), text);
}

/** Whether the visitor prefers less motion. */
export function isCalm() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

/**
 * Makes the button copy the result of `read`, and confirm it.
 * @param {HTMLElement} button
 * @param {() => string} read
 * @param {(text: string) => void} [onCopied]
 */
export function startCopy(button, read, onCopied = () => {}) {
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
