import { errorsOf } from "../../../api/openapi.ts";
import type { Operation } from "../../../api/operation.ts";
import { type ErrorCode, ERRORS } from "../../../http/error.ts";
import { SUNSET } from "../../../pets/deprecation.ts";
import { type Html, html } from "../html.ts";
import { copyable } from "./parts.ts";

const OF_NO_OPERATION: readonly ErrorCode[] = ["not_found", "method_not_allowed"];

/** Every error code that a client can meet: what it means and what to do. */
export function errorsSection(operations: readonly Operation[]): Html {
  const codes = [...new Set([...operations.flatMap(errorsOf), ...OF_NO_OPERATION])]
    .sort((a, b) => ERRORS[a].status - ERRORS[b].status);
  return html`
    <section id="errors">
      <h2>Errors</h2>
      <p>
        Every error has one body: <code>code</code> for programs, <code>message</code> for people, and
        <code>status</code>. The message names the field or parameter and what was expected of it.
      </p>
      <dl class="help">${codes.map(describeError)}</dl>
    </section>
  `;
}

function describeError(code: ErrorCode): Html {
  const { status, means, todo } = ERRORS[code];
  return html`
    <div id="error-${code}">
      <dt><code>${code}</code> <span>${status}</span></dt>
      <dd>${means} <span data-todo>${todo}</span></dd>
    </div>
  `;
}

const RETRY = `async function send(url, init) {
  for (let attempt = 1;; attempt++) {
    const response = await fetch(url, init);
    const { headers, status } = response;
    const isRefused = status === 429 || status === 503;
    if (!isRefused || attempt === 5) return response;
    const seconds = Number(headers.get("Retry-After")) || 1;
    const chance = 1 + Math.random() / 4;
    const wait = seconds * 2 ** (attempt - 1) * chance;
    await new Promise((go) => setTimeout(go, wait * 1_000));
  }
}`;

/** What a client does when a call fails. */
export function retriesSection(): Html {
  return html`
    <section id="retries">
      <h2>Retries</h2>
      <p>
        On 429 and 503, wait for <code>Retry-After</code> seconds, then longer each time, with a little chance so
        that clients do not come back all at once. Other 4xx answers stay the same however often you ask: mend the
        request first.
      </p>
      ${copyable("retry-code", RETRY)}
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
      ${copyable("integer-code", REVIVER)}
    </section>
  `;
}

/** What goes away, and what to use instead. */
export function deprecationSection(): Html {
  const end = new Date(SUNSET);
  const date = end.toISOString().slice(0, 10);
  const day = end.toLocaleDateString("en-GB", { dateStyle: "long", timeZone: "UTC" });
  return html`
    <section id="deprecation">
      <h2>Deprecation</h2>
      <p>
        <a href="#getPet"><code>GET /v1/pets/{petId}</code></a> is to be removed on
        <time datetime="${date}">${day}</time>; from then on it answers 410. Use
        <a href="#listPets"><code>GET /v1/pets</code></a> with the
        <code>status</code> filter instead. Its answers say so too, in <code>Deprecation</code>,
        <code>Sunset</code> and <code>Link</code>: have your client log them.
      </p>
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
        its store does not work. Neither takes a key, and neither is charged. When you report a problem, name the
        <code>X-Request-Id</code> of the response.
      </p>
      ${copyable("health-curl", `curl -i '${base}/ready'`)}
    </section>
  `;
}
