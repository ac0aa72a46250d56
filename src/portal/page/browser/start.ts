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
  const visible = new Set<string>();

  function mark(): void {
    // Beside the text, the console is always in view: what is read counts first.
    const ids = [...visible].sort((a, b) => Number(a === "call") - Number(b === "call"));
    for (const link of nav.querySelectorAll("a")) {
      const isCurrent = link.hash === `#${ids[0]}`;
      if (!isCurrent) {
        link.removeAttribute("aria-current");
      } else if (!link.hasAttribute("aria-current")) {
        link.setAttribute("aria-current", "true");
        nav.scrollLeft = link.offsetLeft - nav.clientWidth / 2 + link.offsetWidth / 2;
      }
    }
  }

  const observer = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) visible.add(target.id);
      else visible.delete(target.id);
    }
    mark();
  }, { rootMargin: "-30% 0px -70% 0px" });
  for (const section of document.querySelectorAll("main > section[id]")) observer.observe(section);
}
