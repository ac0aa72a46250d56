import { PLAN_LIMITS } from "../accounts/account.ts";
import { ERRORS } from "../http/error.ts";
import type { Catalogue } from "./catalogue.ts";
import { type Html, html, prose } from "./html.ts";

const HEADERS = [
  ["X-RateLimit-Limit", "The limit of the window, minute or day, that has fewer requests left."],
  ["X-RateLimit-Remaining", "How many requests that window has left."],
  ["X-RateLimit-Reset", "When that window resets, in Unix seconds."],
  ["RateLimit-Policy", "Both windows: `q` requests in `w` seconds."],
  ["RateLimit", "Both windows: `r` requests left, reset in `t` seconds."],
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
            <th class="number">Requests a minute</th>
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
          <tr><th scope="row">enterprise</th><td class="number" colspan="2">as agreed</td></tr>
        </tbody>
      </table>
      <p>
        Minutes and days are those of the UTC clock. Every answered request counts in both, errors too; one that is
        refused with 429 counts in neither. A higher plan comes from the operator of the service.
      </p>
      <p>
        A client that keeps calling after 429 is banned once a minute refuses it more often than its limit: for 5
        minutes, then twice as long for each further ban within a day, at most 24 hours. Requests during a ban do
        not extend it. Stop at the first 429, wait <code>Retry-After</code> seconds, and you are never banned.
      </p>
      <p>
        A list has 20 animals, or up to 100 with <code>limit</code>. A body is at most 64 KiB. Without a valid key,
        an address has 60 requests a minute.
      </p>
      <dl class="rows">
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

/** Every error code that a client can meet: what it means and what to do. */
export function errorsSection({ errors }: Catalogue): Html {
  return html`
    <section id="errors">
      <h2>Errors</h2>
      <p>
        Every error has one body: <code>code</code> for programs, <code>message</code> for people, and
        <code>status</code>. The message names the field or parameter and what was expected of it.
      </p>
      <dl class="rows errors">
        ${errors.map((code) =>
          html`
            <div id="error-${code}">
              <dt><b>${ERRORS[code].status}</b> <code>${code}</code></dt>
              <dd>${ERRORS[code].means} <span data-todo>${ERRORS[code].todo}</span></dd>
            </div>
          `
        )}
      </dl>
    </section>
  `;
}

const RETRY = `async function send(url, init) {
  for (let attempt = 0;; attempt++) {
    const response = await fetch(url, init);
    const { headers, status } = response;
    const isRefused = status === 429 || status === 503;
    if (!isRefused || attempt === 4) return response;
    const seconds = Number(headers.get("Retry-After")) || 1;
    const jitter = 1 + Math.random() / 4;
    const ms = seconds * 2 ** attempt * jitter * 1_000;
    await new Promise((go) => setTimeout(go, ms));
  }
}`;

/** What a client does when a call fails. */
export function retriesSection(): Html {
  return html`
    <section id="retries">
      <h2>Retries</h2>
      <p>
        On 429 and 503, wait <code>Retry-After</code> seconds, then send again. After 429 the value is exact, and hours
        long when the day is used up. If the request is refused again, wait longer each time. Some jitter keeps
        clients from all coming back at once. Any other 4xx stays the same until you fix the request.
      </p>
      ${copyable("retry-code", "the retry function", RETRY)}
      <p>
        A lost answer leaves open whether an animal was added. So send an <code>Idempotency-Key</code> with each
        <code>POST</code> of an animal or a message: a new one for each thing you make, such as a UUID, and the same
        one when you try again. Within 24 hours the first reply comes again, with
        <code>Idempotency-Replayed: true</code>, and nothing is made twice. The same key with another body is 422.
        <code>GET</code> is always safe to repeat.
      </p>
    </section>
  `;
}

/** How a client changes an animal only as long as nobody else has. */
export function conditionsSection(): Html {
  return html`
    <section id="conditions">
      <h2>Conditional requests</h2>
      <p>
        <code>POST</code> and <code>PATCH</code> answer with the <code>ETag</code> of the animal; a <code>PATCH</code>
        of <code>{}</code> changes nothing and answers with it, too. Send it as <code>If-Match</code> with
        <code>PATCH</code> or <code>DELETE</code>: 412 means that somebody changed the animal meanwhile. Send the
        <code>ETag</code> of a list as <code>If-None-Match</code>: 304 means that it is as it was.
      </p>
    </section>
  `;
}

const REVIVER = `const exact = (name, value, { source }) =>
  Number.isSafeInteger(value) || typeof value !== "number"
    ? value
    : BigInt(source);
const animals = JSON.parse(await response.text(), exact);`;

/** What a client has to know of integers of 64 bits. */
export function integersSection(): Html {
  return html`
    <section id="integers">
      <h2>Large integers</h2>
      <p>
        <code>id</code> and <code>categoryId</code> are int64, exact to the digit: 9223372036854775807 comes back as
        it was sent. Most languages read that as it is. JavaScript rounds integers beyond
        2<sup>53</sup>&nbsp;−&nbsp;1 to the nearest that it can hold; give <code>JSON.parse</code> a reviver that
        looks at the digits (Node 21, browsers of 2025, or later). The ids that this service assigns stay below that.
      </p>
      ${copyable("integer-code", "the reviver", REVIVER)}
    </section>
  `;
}

/** How to see whether the service works. */
export function healthSection(base: string): Html {
  return html`
    <section id="health">
      <h2>Health</h2>
      <p>
        <code>/health</code> says whether the process is alive, <code>/ready</code> whether it can serve: 503 while
        its store does not work. Neither takes a key, and neither is charged.
        <a href="${base}/docs/deprecations">/docs/deprecations</a> lists what will be removed, and when. When you report
        a problem, include the <code>X-Request-Id</code> of the response.
      </p>
      ${copyable("health-curl", "the command", `curl -i '${base}/ready'`)}
    </section>
  `;
}

/** A text to copy; `name` completes "Copy …" for those who do not see where the button is. */
export function copyable(id: string, name: string, text: string): Html {
  return html`
    <div class="copyable">
      <button type="button" class="link scripted" data-copy="${id}"
        aria-label="Copy ${name}">Copy</button>
      <pre id="${id}">${text}</pre>
    </div>
  `;
}
