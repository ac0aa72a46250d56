// The guide for clients: what they need to know besides the operations.
import { type ErrorKind, FIX } from "../web/mod.ts";
import { resolved } from "../web/schema.ts";
import type { Limits } from "../limits/mod.ts";
import type { Resource } from "../resource/mod.ts";
import type { Plans } from "../resource/mod.ts";
import { type Content, type Html, html } from "./html.ts";

const RETRY = `let resumeAt = 0; // for all requests with the same key

async function send(url, init) {
  for (let attempt = 0;; attempt++) {
    while (Date.now() < resumeAt) {
      await new Promise((go) => setTimeout(go, resumeAt - Date.now()));
    }
    const response = await fetch(url, init);
    const { headers, status } = response;
    const isRefused = status === 429 || status === 503;
    if (!isRefused || attempt === 4) return response;
    const seconds = Number(headers.get("Retry-After")) || 1;
    const jitter = 1 + Math.random() / 4;
    const ms = seconds * 2 ** attempt * jitter * 1_000;
    resumeAt = Math.max(resumeAt, Date.now() + ms);
  }
}`;

/** Nouns for the items of all collections. */
type Nouns = Resource["nouns"];

/** Nouns for the items of these collections. */
export function nounsOf(resources: readonly Resource[]): Nouns {
  const [first, ...others] = resources;
  return first && others.length === 0 ? first.nouns : { an: "an item", one: "item", many: "items" };
}

/** A section of the page. The table of contents may link to its id. */
export function section(id: string, title: string, content: Content): Html {
  return html`
    <section id="${id}">
      <h2>${title}</h2>
      ${content}
    </section>
  `;
}

/** Text with a button that copies it. Screen readers call the button "Copy" and `name`. */
export function copyable(id: string, name: string, text: Content): Html {
  return html`
    <div class="copyable">
      <button type="button" class="link scripted" data-copy="${id}"
        aria-label="Copy ${name}">Copy</button>
      <pre id="${id}">${text}</pre>
    </div>
  `;
}

/** Limits and bans, plan by plan. */
export function limitsSection({ limits, own }: Plans): Html {
  return section("limits", "Limits", [
    html`
      <table>
        <thead>
          <tr>
            <th>Plan</th>
            <th class="number">Requests a minute</th>
            <th class="number">a day</th>
          </tr>
        </thead>
        <tbody>
          ${Object.entries(limits).map(planRow)}
          <tr>
            <th scope="row">${own}</th>
            <td class="number" colspan="2">as agreed</td>
          </tr>
        </tbody>
      </table>
      <p>
        Minutes and days follow the UTC clock. Every request under <code>/v1</code> counts toward both, even if
        it fails, except <code>OPTIONS</code>, <code>/v1/openapi.json</code>, requests that a limit or a ban
        refuses, and up to ten rotations an hour that are served nevertheless. For a higher plan, ask the operator
        of the service.
      </p>
      <p>
        Refused requests that arrive more than 5 seconds after the first 429 of a minute count toward a ban. With
        five times as many of them in that minute as the limit per minute allows, the account is banned for 5 minutes.
        Each further ban within a day is twice as long, up to 24 hours. Requests during a ban do not extend
        it. If all clients of the account stop at the first 429 and wait <code>Retry-After</code> seconds, it is
        never banned.
      </p>
      <p>
        A body can be at most 64 KiB. Without a valid key, an address gets 60 requests a minute. After that, even a valid key may get 429:
        try again after a second. If another limit refuses a request, such as that on rotations, the headers
        describe that limit.
      </p>
    `,
    rows([
      ["X-RateLimit-Limit", "The per-minute or daily limit, whichever has fewer requests left."],
      ["X-RateLimit-Remaining", "Requests left in that window."],
      [
        "X-RateLimit-Reset",
        "When that window resets or, during a ban, when the ban ends, as a Unix time in seconds.",
      ],
      ["RateLimit-Policy", html`Both windows: <code>q</code> requests in <code>w</code> seconds.`],
      ["RateLimit", html`Both windows: <code>r</code> requests left, reset in <code>t</code> seconds.`],
      ["Retry-After", "After 429 and 503: seconds to wait."],
    ]),
  ]);
}

function planRow([plan, { minute, day }]: [plan: string, Limits]): Html {
  return html`
    <tr>
      <th scope="row">${plan}</th>
      <td class="number">${minute.toLocaleString("en")}</td>
      <td class="number">${day.toLocaleString("en")}</td>
    </tr>
  `;
}

function rows(all: readonly [name: string, meaning: Content][]): Html {
  return html`
    <dl class="rows">${all.map(([name, meaning]) =>
      html`
        <div>
          <dt><code>${name}</code></dt>
          <dd>${meaning}</dd>
        </div>
      `
    )}</dl>
  `;
}

/** The errors in the table, by status. */
export function errorsSection(kinds: readonly ErrorKind[]): Html {
  return section(
    "errors",
    "Errors",
    html`
      <p>
        Every error has the same body: <code>code</code> for programs, <code>message</code> for people, and
        <code>status</code>. The message names the field or parameter and what was expected. After a 400, fix
        the request. A request with more than 100 headers, or more than 64 KiB of headers or URL, may get a
        400 without a body.
      </p>
      <p>
        Most operations refuse unknown fields and parameters. Operations that accept <code>Prefer</code> ignore
        them, unless the request has <code>Prefer: handling=strict</code>. Public documents always ignore them.
        The page's console sends that header.
      </p>
      <dl class="rows errors">${kinds.map(errorRow)}</dl>
    `,
  );
}

function errorRow({ code, status, means, todo }: ErrorKind): Html {
  return html`
    <div id="error-${code}">
      <dt><b>${status}</b> <code>${code}</code></dt>
      <dd>${means} ${todo === FIX ? "" : html`<span data-todo>${todo}</span>`}</dd>
    </div>
  `;
}

/** How to repeat requests. */
export function retriesSection({ one }: Nouns): Html {
  return section("retries", "Retries", [
    html`
      <p>
        After 429 or 503, send nothing with this key for at least <code>Retry-After</code> seconds, then send the
        request again. If it is refused again, wait longer each time. Add some jitter, so that clients do not all
        retry at once. If the daily limit is used up, <code>Retry-After</code> can be hours. Most other 4xx
        responses recur until you fix the request.
      </p>
    `,
    copyable("retry-code", "the retry function", RETRY),
    html`
      <p>
        If a response is lost, you cannot know whether the ${one} was added. So send an
        <code>Idempotency-Key</code> with each <code>POST</code> that accepts one. Use a new key, such as a
        UUID, for each new item, and the same key when you retry. Within 24 hours, a retry gets the first
        response again, with <code>Idempotency-Replayed: true</code>, and nothing is created twice. The same
        key with other values in the body gets 422. <code>GET</code> is always safe to repeat.
      </p>
    `,
  ]);
}

/** How to avoid lost updates and needless downloads. */
export function conditionsSection({ one }: Nouns): Html {
  return section(
    "conditions",
    "Conditional requests",
    html`
      <p>
        <code>POST</code> and <code>PATCH</code> return the ${one}'s <code>ETag</code>. A <code>PATCH</code>
        with <code>{}</code> changes nothing, but returns it too. Send the tag as <code>If-Match</code> with
        <code>PATCH</code> or <code>DELETE</code>: 412 means that someone else changed the ${one} first. Send
        a list's <code>ETag</code> as <code>If-None-Match</code>: 304 means that the list is unchanged.
      </p>
    `,
  );
}

const REVIVER = `const exact = (name, value, { source }) =>
  Number.isSafeInteger(value) || typeof value !== "number"
    ? value
    : BigInt(source);
const items = JSON.parse(await response.text(), exact);`;

/** How to read the fields of items that JavaScript rounds. */
export function integersSection(resources: readonly Resource[]): Html | undefined {
  const fields = resources.flatMap(({ fields }) => Object.entries(fields));
  const names = new Set(
    fields.filter(([, schema]) => resolved(schema).format === "int64").map(([name]) => name),
  );
  if (names.size === 0) return undefined;
  return section("integers", "Large integers", [
    html`
      <p>
        <code>id</code>${[...names].map((
          name,
          index,
        ) => [
          index < names.size - 1 ? ", " : " and ",
          html`<code>${name}</code>`,
        ])} are int64 and exact: 9223372036854775807 comes back as you sent it. Most languages read such integers
        exactly. JavaScript rounds those beyond 2<sup>53</sup> − 1, so pass <code>JSON.parse</code> a reviver that
        reads the digits (this works in Node 21 or later and in browsers since 2025).
      </p>
    `,
    copyable("integer-code", "the reviver", REVIVER),
  ]);
}

/** How to see whether the service works. Links begin with `base`, and the command with `sampleBase`. */
export function healthSection(base: string, sampleBase: string): Html {
  return section("health", "Health", [
    html`
      <p>
        <code>/health</code> shows whether the process is running. <code>/ready</code> shows whether it can
        serve requests: it returns 503 while the store fails or the service stops. Neither needs a key or counts
        toward a limit. <a href="${base}/docs/deprecations">/docs/deprecations</a> lists operations that will be
        removed. When you report a problem, include the <code>X-Request-Id</code> of the response.
      </p>
    `,
    copyable("health-curl", "the command", `curl -i '${sampleBase}/ready'`),
  ]);
}
