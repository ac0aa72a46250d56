// deno-coverage-ignore-file -- runs in a browser, where tests/browser/ shows what it does
/// <reference lib="dom" />

/** The element of the page with this id; the page was made with it. */
export function byId<Kind extends HTMLElement>(id: string, kind: abstract new () => Kind): Kind {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`The page has no ${id}`);
  return found;
}

/** A new element with text, which is never read as HTML. */
export function element(name: string, className: string, text: string): HTMLElement {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}

/** Has a screen reader say the text. */
export function say(text: string): void {
  byId("announcement", HTMLElement).textContent = text;
}

/** Copies the text; resolves to whether that worked. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Pages of plain http, other than localhost, have no clipboard but this.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const isCopied = document.execCommand("copy");
    area.remove();
    return isCopied;
  }
}

/** Lets the button copy what `read` gives, and say so in its place; `onCopied` is told what was copied. */
export function startCopyButton(
  button: HTMLElement,
  read: () => string,
  onCopied: (text: string) => void = () => {},
): void {
  const label = button.textContent;
  let timer: ReturnType<typeof setTimeout> | undefined;
  button.addEventListener("click", async () => {
    const text = read();
    const isCopied = await copyText(text);
    if (isCopied) onCopied(text);
    button.focus();
    button.textContent = isCopied ? "Copied" : "Select it by hand";
    say(isCopied ? "Copied" : "Copying is not allowed here: select the text by hand");
    clearTimeout(timer);
    timer = setTimeout(() => button.textContent = label, 1_500);
  });
}

/** Has the form do something when it is sent, one at a time. */
export function startForm(form: HTMLFormElement, act: () => Promise<void>): void {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (form.hasAttribute("aria-busy")) return;
    form.setAttribute("aria-busy", "true");
    await act().finally(() => form.removeAttribute("aria-busy"));
  });
}
