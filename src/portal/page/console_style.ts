/** How the console looks: as a terminal does, in both schemes. */
export const CONSOLE_STYLE: string = `
#console { --well: oklch(25.5% 0.02 225); --paper: oklch(21% 0.018 225); color-scheme: dark; padding: 0 1.5rem 1.5rem;
  border-radius: 1rem; background: var(--paper); color: var(--ink); }
#console h2 { font: 650 var(--large) var(--sans); margin: 0; padding-top: 1.25rem; }
#console fieldset { margin: 0; padding: 0; border: 0; min-width: 0; }
#console input, #console select { height: 2rem; padding: 0 0.5rem; border-color: transparent; border-radius: 0.375rem;
  background: var(--well); font: var(--small) var(--mono); min-width: 0; }
#console .row { position: sticky; top: var(--bar); z-index: 1; margin: 0 -0.25rem; padding: 0.75rem 0.25rem 0.5rem;
  background: var(--paper); }
#console .row > * { height: 2.5rem; }
#operation { text-overflow: ellipsis; }
#console .fields { margin-top: 0.5rem; }
#console .fields:not(:has(label)) { margin: 0; }
.fields, .fields details[open] { display: grid; grid-template-columns: minmax(5rem, max-content) minmax(0, 1fr);
  gap: 0.5rem 1rem; align-items: center; }
.fields label { font: var(--small) var(--mono); color: var(--soft); }
.fields details, .fields summary { grid-column: 1 / -1; }
summary { font: var(--small) var(--sans); color: var(--soft); cursor: pointer; }
details[open]::details-content { display: contents; }
#no-key { margin: 0.75rem 0 0; }
.request { margin-top: 1rem; }
.tabs { display: flex; align-items: center; flex-wrap: wrap; }
.tabs label { position: relative; }
#console .tabs input { position: absolute; inset: 0; width: 100%; height: 100%; margin: 0; opacity: 0; cursor: pointer; }
.tabs span { display: block; padding: 0.25rem 0.5rem; border-radius: 0.375rem; font: var(--small) var(--sans);
  color: var(--soft); }
.tabs label:first-of-type span { margin-left: -0.5rem; }
.tabs :checked + span { color: var(--ink); font-weight: 650; }
.tabs :focus-visible + span { outline: 2px solid var(--accent); outline-offset: -2px; }
.tabs button { margin-left: auto; }
#send { position: relative; isolation: isolate; min-width: 6.5rem; overflow: hidden;
  font-variant-numeric: tabular-nums; }
#send[aria-disabled] { background: var(--well); color: var(--wait); cursor: not-allowed; opacity: 1; }
#send[aria-disabled]::before { content: ""; position: absolute; inset: 0; z-index: -1; background: var(--wait);
  opacity: 0.2; transform: scaleX(var(--waited, 0)); transform-origin: left; transition: transform 150ms; }
.meters { display: grid; grid-template-columns: 1fr 1fr; gap: 1.5rem; margin-top: 1rem; }
.meter { display: grid; grid-template-columns: auto 1fr; gap: 0.25rem 0.5rem; font: var(--small) var(--sans);
  font-variant-numeric: tabular-nums; align-items: end; }
.meter-name { font-weight: 650; text-transform: capitalize; }
.meter span { color: var(--soft); }
.meter .meter-name { color: var(--ink); }
.meter-name + span { text-align: right; }
.meter span:last-child { grid-column: 1 / -1; min-height: 1.25rem; }
.meter-track { grid-column: 1 / -1; height: 4px; border-radius: 2px; overflow: hidden;
  background: oklch(33% 0.02 225); forced-color-adjust: none; }
.meter-track span { display: block; height: 100%; background: var(--accent); transform: scaleX(0);
  transform-origin: left; transition: transform 150ms; }
[data-state="empty"] span { color: var(--wait); }
#answer { margin-top: 1.5rem; }
.answer-line { display: flex; align-items: baseline; gap: 0.75rem; margin-bottom: 0.25rem;
  font-variant-numeric: tabular-nums; }
.answer-line strong { font-weight: 650; }
#answer-time { font: var(--small) var(--sans); color: var(--soft); }
#next-page { margin-left: auto; }
[data-kind="2"] strong { color: var(--good); }
[data-kind="4"] strong, [data-kind="5"] strong, [data-kind="none"] strong { color: var(--bad); }
[data-kind="429"] strong { color: var(--wait); }
#answer-advice { margin: 0 0 0.5rem; font: var(--small) var(--sans); }
.headers { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 0 1rem;
  font: var(--small) var(--mono); margin: 0.25rem 0; }
.headers dt { margin: 0; line-height: inherit; color: var(--soft); }
.headers dd { color: var(--ink); overflow-wrap: anywhere; }
#answer pre { margin-top: 0.75rem; }
#console pre { max-height: 24rem; overflow: auto; }
#answer:focus { outline: none; }
.name { color: var(--accent); }
#answer :is(.number, .literal) { color: oklch(90% 0.06 180); }
#answer .plain { color: var(--soft); }
@media (pointer: coarse) { #console :is(input, select) { font-size: 1rem; } }
@media (max-width: 30rem) {
  #console { margin: 0 -0.5rem; padding: 0 1rem 1rem; }
  .meters { grid-template-columns: 1fr; gap: 0.75rem; }
  .headers { display: block; }
  .headers dt { float: left; clear: left; margin-right: 0.75rem; }
}
@media (min-width: 64rem) {
  #console { position: sticky; top: calc(var(--bar) + 1.5rem); margin-top: 1.5rem;
    max-height: calc(100vh - var(--bar) - 3rem); overflow-y: auto; scrollbar-width: thin;
    scroll-padding: 4rem 0 1.5rem; }
  #console .row { top: 0; }
}
`;
