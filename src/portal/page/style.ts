import { CONSOLE_STYLE } from "./console_style.ts";

const TOKENS = `
:root {
  color-scheme: light dark;
  --paper: light-dark(oklch(99.4% 0.0015 215), oklch(17% 0.014 225));
  --well: light-dark(oklch(96.2% 0.007 215), oklch(22.5% 0.018 225));
  --line: light-dark(oklch(90% 0.01 215), oklch(31% 0.02 225));
  --ink: light-dark(oklch(25% 0.02 225), oklch(93% 0.008 215));
  --soft: light-dark(oklch(42% 0.022 225), oklch(77% 0.016 215));
  --accent: light-dark(oklch(43% 0.082 222), oklch(82% 0.085 210));
  --on-accent: light-dark(oklch(99% 0.003 215), oklch(19% 0.03 222));
  --good: light-dark(oklch(45% 0.12 150), oklch(83% 0.15 152));
  --bad: light-dark(oklch(46% 0.17 25), oklch(78% 0.13 25));
  --wait: light-dark(oklch(47% 0.11 65), oklch(85% 0.13 82));
  --sans: system-ui, sans-serif;
  --mono: ui-monospace, "SF Mono", "Cascadia Code", Menlo, Consolas, monospace;
  --small: 0.8125rem/1.25rem;
  --text: 1rem/1.625rem;
  --large: 1.25rem/1.875rem;
  --heading: 1.625rem/2.25rem;
  --title: clamp(2.25rem, 6vw, 2.75rem)/1.15;
  --bar: 3.5rem;
}
`;

const TYPE = `
* { box-sizing: border-box; }
html { scroll-padding-top: calc(var(--bar) + 1rem); -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink); font: var(--text) var(--sans); }
h1, h2, h3, h4 { margin: 0; text-wrap: balance; letter-spacing: -0.012em; }
h1 { font: 700 var(--title) var(--sans); letter-spacing: -0.03em; }
h2 { font: 650 var(--heading) var(--sans); margin-bottom: 1rem; letter-spacing: -0.02em; }
h3 { font: 650 var(--large) var(--sans); margin-top: 2rem; }
h4 { font: 650 var(--small) var(--sans); margin-top: 1.5rem; letter-spacing: 0; color: var(--soft); }
p { margin: 0 0 1rem; text-wrap: pretty; }
a { color: var(--accent); text-underline-offset: 0.2em; text-decoration-thickness: 1px; }
a:not(:hover) { text-decoration-color: color-mix(in oklab, currentColor 35%, transparent); }
code, .mono { font-family: var(--mono); font-size: 0.875em; overflow-wrap: anywhere; }
input.mono { font: var(--small) var(--mono); }
@media (pointer: coarse) { input.mono { font-size: 1rem; } }
pre { margin: 0; padding: 0.75rem 1rem; border-radius: 0.5rem; background: var(--well);
  font: var(--small) var(--mono); white-space: pre-wrap; overflow-wrap: anywhere; }
pre code { font-size: inherit; }
dl { margin: 0; }
dt { margin-top: 0.75rem; line-height: 1.375rem; }
dt code { font-weight: 650; }
dt span { font: var(--small) var(--sans); color: var(--soft); margin-left: 0.5rem; }
dd { margin: 0; color: var(--soft); }
sup { line-height: 0; }
em { font: 650 var(--small) var(--sans); color: var(--ink); margin-left: 0.5rem; }
table { width: 100%; border-collapse: collapse; margin-bottom: 1rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.5rem 0; text-align: left; border-bottom: 1px solid var(--line); font-weight: 400; }
thead th { font: var(--small) var(--sans); color: var(--soft); }
tbody th { font-weight: 650; }
.number { text-align: right; }
.lead { font: var(--large) var(--sans); color: var(--soft); }
.small { font: var(--small) var(--sans); color: var(--soft); }
.method { font-weight: 650; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 0.25rem; }
main:focus { outline: none; }
[hidden] { display: none !important; }
.quiet { position: absolute; width: 1px; height: 1px; margin: -1px; overflow: hidden; clip-path: inset(50%);
  white-space: nowrap; }
`;

const LAYOUT = `
.skip { position: fixed; top: -5rem; left: 1rem; z-index: 3; padding: 0.75rem 1rem; border-radius: 0.5rem;
  background: var(--accent); color: var(--on-accent); }
.skip:focus { top: 0.5rem; }
.bar { position: sticky; top: 0; z-index: 2; display: flex; align-items: center; gap: 1.5rem;
  height: var(--bar); padding: 0 1rem; background: var(--paper); border-bottom: 1px solid var(--line); }
.home { display: flex; align-items: center; gap: 0.5rem; flex: none; font-weight: 650; color: inherit;
  text-decoration: none; letter-spacing: -0.01em; }
nav { position: relative; display: flex; align-self: stretch; overflow-x: auto; scrollbar-width: none;
  padding-right: 2rem; mask-image: linear-gradient(90deg, #000 calc(100% - 2rem), transparent); }
nav a { display: flex; align-items: center; padding: 0 0.625rem; font: var(--small) var(--sans);
  color: var(--soft); text-decoration: none; outline-offset: -4px; }
nav a:hover { color: var(--ink); }
nav a[aria-current] { color: var(--accent); font-weight: 650; box-shadow: inset 0 -2px var(--accent); }
main { padding: 0 1rem 6rem; }
main > section { max-width: 36rem; margin: 0 auto; padding: 2.5rem 0 0.5rem; }
#introduction { padding-top: 3.5rem; }
#introduction .lead { margin: 1rem 0 1.5rem; }
article { padding-top: 0.5rem; }
article .copyable { margin-top: 1rem; }
article dd pre { margin-top: 0.25rem; }
.copyable { position: relative; margin-bottom: 1rem; }
.copyable pre { padding-right: 5rem; }
.copyable button { position: absolute; top: 0.375rem; right: 0.375rem; background: var(--well); }
.operations { list-style: none; margin: 0.5rem 0 0; padding: 0; }
.operations li { display: flex; align-items: baseline; gap: 1rem; padding: 0.375rem 0; }
.operations a:first-child { flex: 1; display: grid; gap: 0 1rem; color: inherit; text-decoration: none; }
.operations a:first-child:hover code { text-decoration: underline; }
.operations a > span { color: var(--soft); font: var(--small) var(--sans); }
.operations code { line-height: 1.25rem; }
.operations .method { display: inline-block; min-width: 3.75rem; }
.help > div { padding-top: 0.75rem; }
.help dt { margin: 0; }
.help dt span { display: block; margin: 0; }
[data-todo] { color: var(--ink); }
.try { flex: none; font: 500 var(--small) var(--sans); }
.endpoint { margin: 0.25rem 0 0.5rem; display: flex; flex-wrap: wrap; gap: 0 1rem; align-items: baseline; }
.codes { margin-top: 1rem; font: var(--small) var(--sans); color: var(--soft); }
.codes span { display: block; }
.codes a { color: inherit; margin-left: 0.375rem; }
.codes code { color: var(--ink); font-weight: 650; font-size: 1em; }
.label { display: block; margin: 1rem 0 0.25rem; font: 500 var(--small) var(--sans); }
.row { display: flex; gap: 0.5rem; }
.row > :first-child { flex: 1; min-width: 0; }
input, select, button { height: 2.5rem; padding: 0 0.75rem; border: 1px solid var(--line); border-radius: 0.5rem;
  background: var(--paper); color: var(--ink); font: inherit; accent-color: var(--accent); }
input { border-color: light-dark(oklch(62% 0.02 215), oklch(55% 0.02 225)); }
::placeholder { color: var(--soft); opacity: 1; }
button { font: 600 var(--small) var(--sans); cursor: pointer; transition: opacity 150ms; }
button:not(.primary) { height: 1.75rem; padding: 0 0.625rem; border-color: transparent; background: none;
  color: var(--accent); }
.row button:not(.primary) { height: 2.5rem; }
button:hover { opacity: 0.8; }
[aria-busy] .primary { opacity: 0.6; }
.primary { padding: 0 1.25rem; border-color: transparent; background: var(--accent); color: var(--on-accent); }
.notice { margin: 0.75rem 0 0.5rem; padding-left: 0.75rem; border-left: 3px solid var(--accent); }
.problem { margin: 0.5rem 0 0; color: var(--bad); }
#key .small { margin-top: 0.5rem; }
@media (max-width: 30rem) { .home span { display: none; } }
@media (min-width: 34rem) {
  .help > div { display: grid; grid-template-columns: 13rem 1fr; gap: 0 1rem; }
  .operations a:first-child { grid-template-columns: minmax(14.5rem, max-content) 1fr; align-items: baseline; }
}
@media (min-width: 48rem) {
  .bar { padding: 0 2rem; }
  main { padding: 0 2rem 8rem; }
}
@media (min-width: 64rem) {
  .bar { padding: 0 max(2rem, 50vw - 38.5rem); }
  main { display: grid; grid-template-columns: minmax(0, 36rem) minmax(0, 36rem);
    column-gap: clamp(2rem, 5vw, 5rem); justify-content: center; }
  main > section { grid-column: 1; width: 100%; margin: 0; }
  main > #call { grid-column: 2; grid-row: 1 / span 20; padding: 0; }
}
@media (scripting: none) {
  .needs-script { display: none !important; }
  main { display: block; }
  main > section { margin: 0 auto; max-width: 40rem; }
}
@media (prefers-reduced-motion: reduce) { *, ::before { transition: none !important; } }
@media print {
  :root { color-scheme: light; }
  .needs-script, .bar, .skip { display: none !important; }
  main { display: block; padding: 0; }
  article, dt, dl > div, tr { break-inside: avoid; }
}
`;

/** The page's stylesheet. */
export const STYLE: string = TOKENS + TYPE + LAYOUT + CONSOLE_STYLE;
