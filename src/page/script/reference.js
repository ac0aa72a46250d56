// @ts-check
/// <reference lib="dom" />
// What the script makes of the reference: forms, examples, samples and a filter.

import { all, create, mark, on, part, show, textOf, write } from "./document.js";
import { field, labelled } from "./form.js";
import { ORIGIN_PLACEHOLDER } from "./sample.js";

/**
 * Starts the forms, the samples and the contents.
 * @param {(sample: HTMLElement) => readonly (HTMLElement | string)[]} toolsOf
 */
export function startReference(toolsOf) {
  startForms();
  startSamples(toolsOf);
  startContents();
}

/** All operations. */
export function operations() {
  return all("article").map(({ id }) => id);
}

/** Method and path of an operation. @param {string} id */
export function endpointOf(id) {
  return { method: textOf(`#${id} > .line > b`), path: textOf(`#${id} > .line > code`) };
}

/** What an operation takes: its parameters, and its body. @param {string} id */
export function inputsOf(id) {
  const { body } = part(id).dataset;
  const parameters = all(`#${id} [data-place]`).map(({ dataset, firstElementChild }) => {
    const { place = "", choices = "", absent = "", value = "", usual = "" } = dataset;
    const name = firstElementChild?.textContent ?? "";
    return { name, place, choices: choices.split(" ").filter(Boolean), absent, value, usual };
  });
  return body
    ? [...parameters, { name: "body", place: "body", value: body, usual: body, isText: true }]
    : parameters;
}

/** Makes the form of each operation, and the choice of one, from the reference. */
export function startForms() {
  for (const { id, textContent: label } of all("#operations > h2, #operations > article")) {
    if (id === "") part("operation").append(Object.assign(create("optgroup", ""), { label }));
    else part("operation").lastElementChild?.append(new Option(textOf(`#${id} > h3 > a`), id));
  }
  for (const id of operations()) {
    const form = create("fieldset", "", create("legend", "quiet", textOf(`#${id} > h3 > a`)));
    const headers = create("details", "", create("summary", ""));
    form.id = `form-${id}`;
    for (const input of inputsOf(id)) {
      (input.place === "header" ? headers : form).append(labelled(input));
    }
    if (headers.children.length > 1) form.append(headers);
    part("code").before(form);
  }
}

/**
 * Writes the page's own origin into its samples, and makes them ready to copy.
 * @param {(sample: HTMLElement) => readonly (HTMLElement | string)[]} toolsOf
 */
export function startSamples(toolsOf) {
  for (const text of all("#start code, .text pre, #sample")) {
    write(text, text.textContent.replaceAll(ORIGIN_PLACEHOLDER, location.origin));
    if (text.matches("pre")) text.before(create("div", "tools", ...toolsOf(text)));
  }
}

/** Where a link leads within the page, such as `#limits`. @param {HTMLAnchorElement | HTMLAreaElement} link */
export function anchorOf({ hash }) {
  return decodeURI(hash);
}

/**
 * Shows in the contents what is read, and nothing for the hero, and searches the texts that they link to. The key /
 * leads to the search.
 */
export function startContents() {
  const links = [...document.links].filter((link) => link.matches("nav li > a"));
  const shown = new IntersectionObserver((seen) => {
    const at = seen.find(({ isIntersecting }) => isIntersecting)?.target;
    if (!at) return;
    for (const link of links) mark(link, "aria-current", anchorOf(link) === `#${at.id}` && "true");
    all("nav [aria-current]")[0]?.scrollIntoView({ block: "nearest" });
  }, { rootMargin: "-20% 0px -79%" });
  for (const hero of all(".hero")) shown.observe(hero);
  for (const link of links) {
    link.addEventListener("click", () => part("contents").hidePopover());
    shown.observe(part(anchorOf(link).slice(1)));
  }
  const texts = links.map((link) => `${link.textContent} ${textOf(anchorOf(link))}`.toLowerCase());
  on("filter", "input", () => {
    const words = field("#filter").value.toLowerCase().split(" ");
    const found = links.filter((link, index) => {
      link.hidden = !words.every((word) => texts[index]?.includes(word));
      return !link.hidden;
    });
    write(
      part("found"),
      words.join("") && (found.length > 0 ? `${found.length} of ${links.length}` : "Nothing matches."),
    );
  });
  addEventListener("keydown", (event) => {
    const isTyped = event.target instanceof Element && event.target.matches("input, textarea, select");
    if (event.key !== "/" || isTyped || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const nav = part("contents");
    if (getComputedStyle(nav).display === "none") nav.showPopover();
    part("filter").focus();
  });
}

/** What the responses of an operation mean, by their status. @param {string} id */
export function meaningsOf(id) {
  const texts = all(`#${id} > :not(.errors) > summary`).map(({ textContent }) => textContent);
  return new Map(texts.map((text) => [text.slice(0, 3), text.slice(4)]));
}

/** Shows the example of a response. @param {string} operation */
export function showExample(operation) {
  const [status = ""] = meaningsOf(operation).keys();
  const body = textOf(`#${operation} > details:first-of-type > pre`);
  show({
    kind: "example",
    head: [["status", status], ["", "an example, until you send"]],
    message: "",
    body,
  });
}
