// deno-coverage-ignore-file -- runs in a browser, where tests/browser/ shows what it does
/// <reference lib="dom" />
import { startConsole } from "./console.ts";
import { byId, startCopyButton } from "./dom.ts";

/** Brings the page to life; everything to read is there before. */
export function start(): void {
  const { base = "" } = byId("console", HTMLFormElement).dataset;
  startConsole(base || location.origin);
  startContents();
  for (const button of document.querySelectorAll<HTMLElement>("[data-copy]")) {
    startCopyButton(button, () => byId(button.dataset.copy ?? "", HTMLElement).textContent);
  }
}

/** Marks in the table of contents where the reader is. */
export function startContents(): void {
  const nav = byId("contents", HTMLElement);
  const sections = [...document.querySelectorAll("main > section[id]")];
  /** Where a link has led to; near its end the page cannot scroll as far. */
  let target = { id: "", scrollY: 0 };

  function current(): string {
    if (target.id !== "" && Math.abs(scrollY - target.scrollY) < innerHeight / 10) return target.id;
    const top = (section: Element) => section.getBoundingClientRect().top;
    const begun = sections.filter((section, index) => index === 0 || top(section) < innerHeight / 4);
    // Beside the text, the console begins with the page: what is read counts first.
    return begun.reduce((last, section) => top(section) > top(last) ? section : last).id;
  }

  function mark(): void {
    const id = current();
    for (const link of nav.querySelectorAll("a")) {
      const isCurrent = link.hash === `#${id}`;
      if (!isCurrent) {
        link.removeAttribute("aria-current");
      } else if (!link.hasAttribute("aria-current")) {
        link.setAttribute("aria-current", "true");
        nav.scrollLeft = link.offsetLeft - nav.clientWidth / 2 + link.offsetWidth / 2;
      }
    }
  }

  function follow(): void {
    const id = location.hash.slice(1);
    target = { id: sections.some((section) => section.id === id) ? id : "", scrollY };
    mark();
  }

  addEventListener("scroll", mark, { passive: true });
  addEventListener("hashchange", follow);
  // By then the page has scrolled to where its address leads.
  addEventListener("load", follow);
}
