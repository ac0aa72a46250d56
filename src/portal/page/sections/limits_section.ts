import { PLAN_LIMITS } from "../../../accounts/plans.ts";
import { type Html, html, prose } from "../html.ts";

const HEADERS = [
  ["X-RateLimit-Limit", "The limit of the window, minute or day, that has fewer requests left."],
  ["X-RateLimit-Remaining", "How many requests it has left."],
  ["X-RateLimit-Reset", "When it begins anew, in Unix seconds."],
  ["RateLimit-Policy", "Both windows: `q` requests in `w` seconds."],
  ["RateLimit", "Both windows: `r` requests left, new in `t` seconds."],
  ["Retry-After", "On 429 and 503: how many seconds to wait."],
] as const;

/** The plans, how they are counted, and what happens beyond. */
export function limitsSection(): Html {
  const count = (value: number) => value.toLocaleString("en");
  return html`
    <section id="limits">
      <h2>Limits</h2>
      <table>
        <thead>
          <tr>
            <th>Plan</th>
            <th class="number">requests a minute</th>
            <th class="number">a day</th>
          </tr>
        </thead>
        <tbody>
          ${Object.entries(PLAN_LIMITS).map(([plan, { minute, day }]) =>
            html`
              <tr>
                <th scope="row">${plan}</th>
                <td class="number">${count(minute)}</td>
                <td class="number">${count(day)}</td>
              </tr>
            `
          )}
          <tr><th scope="row">enterprise</th><td class="number">as agreed</td><td class="number">as agreed</td></tr>
        </tbody>
      </table>
      <p>
        Minutes and days are those of the UTC clock. A request counts in both, whatever its answer; one that
        either limit or a ban refuses counts in neither. A higher plan comes from the operator of the service.
      </p>
      <p>
        Whoever goes on after 429, more often within a minute than the minute allows, is banned: for 5 minutes,
        then twice as long for each further ban within a day, at most 24 hours. Requests during a ban do not
        extend it. Stop at the first 429, wait out <code>Retry-After</code>, and no ban ever comes.
      </p>
      <p>
        A list has 20 animals, or up to 100 with <code>limit</code>. A body is at most 64 KiB, with at most
        1,000 values, 16 levels deep. Without a valid key, an address has 60 requests a minute.
      </p>
      <h3>Headers that tell</h3>
      <dl class="help">
        ${HEADERS.map(([name, text]) =>
          html`
            <div>
              <dt><code>${name}</code></dt>
              <dd>${prose(text)}</dd>
            </div>
          `
        )}
      </dl>
    </section>
  `;
}
