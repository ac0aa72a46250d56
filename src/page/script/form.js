// @ts-check
/// <reference lib="dom" />
// Forms and their fields.

import { create, mark, on } from "./document.js";

/**
 * @typedef {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} Field
 */

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

/**
 * Marks the field of a form that an error names, such as `lines[2].cents`; if it has none of its own, the body.
 * @param {string} form
 * @param {string} name
 */
export function blame(form, name) {
  const [own = ""] = name.split(/[.[]/);
  const all = fields(`${form} [name]`);
  const blamed = own &&
    (all.find((field) => field.name === own) ?? all.find((field) => field.name === "body"));
  for (const field of all) mark(field, "aria-invalid", field === blamed && "true");
  blamed && blamed.closest("details")?.setAttribute("open", "");
}

/** What is in all fields that match. @param {string} selector */
export function valuesOf(selector) {
  return fields(selector).map(({ name, value, dataset: { place = "" } }) => ({ name, value, place }));
}

/**
 * Acts when a form is submitted, also by Ctrl and Enter in a text of lines. A field that changes loses its mark.
 * @param {string} form
 * @param {() => unknown} act
 */
export function onSubmit(form, act) {
  on(form, "submit", (event) => (event.preventDefault(), act()));
  on(form, "input", ({ target }) => target instanceof Element && mark(target, "aria-invalid", false));
  on(form, "keydown", (event) => {
    if (!(event instanceof KeyboardEvent && event.key === "Enter" && (event.ctrlKey || event.metaKey))) {
      return;
    }
    event.preventDefault();
    act();
  });
}

/**
 * A field of a form with its label.
 * @param {{ name: string, place: string, choices?: readonly string[], absent?: string, value?: string,
 *   isText?: boolean, isRequired?: boolean }} input
 * @param {string} [none]
 */
export function labelled(
  { name, place, choices = [], absent = "", value = "", isText = false, isRequired = false },
  none = "not sent",
) {
  const field = create(choices.length > 0 ? "select" : isText ? "textarea" : "input", "");
  if (choices.length > 0) {
    field.append(...["", ...choices].map((choice) => new Option(choice || none, choice)));
  }
  Object.assign(
    field,
    { name, value, placeholder: absent || none, required: isRequired },
    isText && { rows: value.split("\n").length },
  );
  field.dataset.place = place;
  mark(field, "aria-describedby", "message");
  return create("label", place, create("code", "", name), field);
}
