// @ts-check
/// <reference lib="dom" />
// What the script makes of the reference: forms, examples, samples and a filter.

import { all, create, field, labelled, mark, on, part, show, textOf, write } from "./document.js";
import { ORIGIN_PLACEHOLDER } from "./sample.js";

/** All operations. */
export function operations() {
  return all("article").map(({ id }) => id);
}

/** Method and path of an operation. @param {string} id */
export function endpointOf(id) {
  return { method: textOf(`#${id} > .line > b`), path: textOf(`#${id} > .line > code`) };
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
    for (const row of all(`#${id} [data-place]`)) {
      const { place = "", choices = "", absent = "", value = "" } = row.dataset;
      const [{ textContent: name } = { textContent: "" }] = row.getElementsByTagName("code");
      const input = { name, place, choices: choices.split(" ").filter(Boolean), absent, value };
      (place === "header" ? headers : form).append(labelled(input));
    }
    const { body } = part(id).dataset;
    if (body) form.append(labelled({ name: "body", place: "body", value: body, isText: true }));
    if (headers.children.length > 1) form.append(headers);
    part("code").before(form);
  }
}

/**
 * Writes the page's own origin into its samples, and makes them ready to copy.
 * @param {(sample: HTMLElement) => readonly (HTMLElement | string)[]} toolsOf
 */
export function startSamples(toolsOf) {
  for (const sample of all("#start code, .copyable")) {
    write(sample, sample.textContent.replaceAll(ORIGIN_PLACEHOLDER, location.origin));
    if (sample.className === "") continue;
    sample.before(create("div", "tools", ...toolsOf(sample)));
  }
}

/** Shows in the contents what is read, and searches the texts that they link to. The key / leads to the search. */
export function startContents() {
  const links = all("nav li > a");
  const shown = new IntersectionObserver((seen) => {
    const at = seen.find(({ isIntersecting }) => isIntersecting)?.target.id;
    if (!at) return;
    for (const link of links) mark(link, "aria-current", link.getAttribute("href") === `#${at}` && "true");
    all("nav [aria-current]")[0]?.scrollIntoView({ block: "nearest" });
  }, { rootMargin: "-20% 0px -79%" });
  for (const link of links) {
    link.addEventListener("click", () => part("contents").hidePopover());
    shown.observe(part(link.getAttribute("href")?.slice(1) ?? ""));
  }
  const texts = links.map((link) =>
    `${link.textContent} ${textOf(link.getAttribute("href") ?? "")}`.toLowerCase()
  );
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

/** Shows the example of a response. @param {string} operation */
export function showExample(operation) {
  const [told] = all(`#${operation} [data-status]`);
  const body = textOf(`#${operation}-${told?.dataset.status}`);
  const text = body ? "an example, until you send" : told?.textContent ?? "";
  show({ kind: "example", head: [["status", told?.dataset.status ?? ""], ["", text]], message: "", body });
}
