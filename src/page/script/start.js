// @ts-check
/// <reference lib="dom" />
// Starts the interactive parts. The page can be read without them.

import { startAnswer } from "./answer.js";
import { Console } from "./console.js";
import { all, mark, part, startCopy } from "./document.js";
import { ORIGIN_PLACEHOLDER } from "./request.js";

/** Marks the visible section in the table of contents. */
function startContents() {
  const nav = part("contents");
  function draw() {
    const isAtEnd = scrollY + innerHeight >= document.documentElement.scrollHeight - 2;
    const line = isAtEnd ? Infinity : innerHeight / 4;
    const current = [...all(".words > section[id]")].findLast((section) =>
      section.getBoundingClientRect().top < line
    );
    for (const link of nav.querySelectorAll("a")) {
      const isCurrent = link.hash === `#${current?.id}`;
      if (isCurrent === (link.ariaCurrent === "true")) continue;
      mark(link, "aria-current", isCurrent ? "true" : null);
      if (isCurrent) nav.scrollLeft = link.offsetLeft - nav.clientWidth / 2 + link.offsetWidth / 2;
    }
  }
  addEventListener("scroll", draw, { passive: true });
  draw();
}

/** Opens the reference that the page's address names. */
function startReference() {
  function open() {
    const target = document.getElementById(location.hash.slice(1));
    const details = target?.closest("details");
    if (details) details.open = true;
    if (details && target) target.scrollIntoView();
  }
  addEventListener("hashchange", open);
  open();
}

/** Gives the row with the Send button a shadow while content is beneath it. */
function startShadow() {
  const row = part("call-row");
  new IntersectionObserver(([entry]) => {
    const isStuck = entry !== undefined && !entry.isIntersecting &&
      entry.boundingClientRect.top < innerHeight / 2;
    mark(row, "data-stuck", isStuck ? "" : null);
  }).observe(part("call-top"));
}

for (const button of all("[data-copy]")) {
  const text = part(button.dataset.copy ?? "");
  text.textContent = text.textContent.replaceAll(ORIGIN_PLACEHOLDER, location.origin);
  startCopy(button, () => text.textContent);
}
startAnswer();
startReference();
startContents();
startShadow();
new Console();
