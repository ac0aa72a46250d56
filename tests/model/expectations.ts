import { assert, assertEquals } from "@std/assert";
import { HAMMER, type Thing } from "../support/things.ts";
import type { Span } from "./customer.ts";

/** What differs between things. */
export type Known = Pick<Thing, "id" | "name" | "state" | "isSpare">;

/** The state of a thing after a write: its JSON, or null if it was removed. */
type Content = string | null;

/** A write that was applied, or may have been. */
interface Write {
  readonly content: Content;
  readonly from: number;
  /** When its request ended; Infinity until then. */
  to: number;
  /** Whether a response confirmed it. */
  isConfirmed: boolean;
  /** Whether a response has shown its content. */
  wasSeen: boolean;
}

function writeOf(content: Content, from: number): Write {
  return { content, from, to: Infinity, isConfirmed: false, wasSeen: false };
}

/** Records a response that confirms a write. The earliest one determines when it was applied at the latest. */
function confirm(write: Write, to: number): void {
  write.to = Math.min(to, write.isConfirmed ? write.to : Infinity);
  write.isConfirmed = true;
}

/** The JSON of a thing. */
export function textOf({ id, name, state, isSpare }: Known): string {
  return JSON.stringify({ id, name, weight: HAMMER.weight, state, isSpare });
}

/**
 * Records what clients have written and what responses confirmed, and checks what clients see: no confirmed write is
 * lost, no write is applied twice, and no earlier state comes back.
 */
export class Expectations {
  readonly #writes: Map<number, Write[]> = new Map();
  /** IDs by name. No two requests give the same name. */
  readonly #ids: Map<string, number> = new Map();
  /** When a request that gives the name was first sent. */
  readonly #given: Map<string, number> = new Map();
  readonly #etags: Map<number, string> = new Map();
  /** IDs and entity tags of the states that requests with If-Match replaced. */
  readonly #replaced: Set<string> = new Set();
  /** Replies to requests with an Idempotency-Key, by the name that the request gives. */
  readonly #replies: Map<string, { readonly body: string; wasCarriedOut: boolean }> = new Map();

  /** Records that a client is about to give a thing this name. */
  give(name: string, from: number): void {
    this.#given.set(name, Math.min(from, this.#given.get(name) ?? Infinity));
  }

  /** IDs of the known things, latest first. */
  get ids(): number[] {
    return [...this.#writes.keys()].reverse();
  }

  /** The latest known entity tag of a thing. */
  etagOf(id: number): string | undefined {
    return this.#etags.get(id);
  }

  /** Records a response that confirms a new thing. */
  created(thing: Known, etag: string | null, span: Span): void {
    this.#see(thing, etag);
    const writes = this.#writesOf(thing.id);
    const known = writes.find(({ content }) => content === textOf(thing));
    const write = known ?? writeOf(textOf(thing), span.from);
    if (known === undefined) writes.unshift(write);
    // If this is a replay, the write was applied even earlier.
    confirm(write, span.to);
  }

  /**
   * Records that a client is about to change or remove a thing. Call the returned function when the request ends,
   * with whether the write was applied (undefined if that is unknown) and the time.
   */
  beginChange(id: number, content: Content, from: number): (isDone: boolean | undefined, to: number) => void {
    const write = writeOf(content, from);
    const writes = this.#writesOf(id);
    writes.push(write);
    return (isDone, to) => {
      write.to = to;
      if (isDone) confirm(write, to);
      if (isDone !== false) return;
      assert(!write.wasSeen || content === null, `Thing ${id} was seen as ${content}, which was refused`);
      writes.splice(writes.indexOf(write), 1);
    };
  }

  /** Records that a request with If-Match replaced this state. Throws if another one has replaced it. */
  replaced(id: number, etag: string): void {
    assert(!this.#replaced.has(`${id} ${etag}`), `Two requests have replaced ${etag} of thing ${id}`);
    this.#replaced.add(`${id} ${etag}`);
  }

  /** Checks that a thing may have been in this state at some time of the span. It is null if it was not found. */
  saw(id: number, thing: Known | null, etag: string | null, span: Span): void {
    if (thing) {
      assertEquals(thing.id, id);
      this.#see(thing, etag);
    }
    const writes = this.#writes.get(id);
    if (writes === undefined && thing === null) return;
    if (writes === undefined) return this.#adopt(id, thing, span);
    const content = thing && textOf(thing);
    // It may not have existed yet.
    if (content === null && (writes[0]?.to ?? Infinity) >= span.from) return;
    const possible = this.#possible(id, span);
    const seen = possible.filter((write) => write.content === content);
    for (const write of seen) write.wasSeen = true;
    const others = possible.map(({ content }) => content).join(" or ");
    assert(seen.length > 0, `Thing ${id} was seen as ${content}, but can only have been ${others}`);
  }

  /** Checks a page of the catalogue that begins after an id: what it lists, and what it does not list. */
  sawPage(things: readonly Known[], after: number, hasNext: boolean, span: Span): void {
    const ids = things.map(({ id }) => id);
    assertEquals(ids, [...new Set(ids)].toSorted((a, b) => a - b));
    for (const thing of things) this.saw(thing.id, thing, null, span);
    const end = hasNext ? ids.at(-1) ?? 0 : Infinity;
    for (const id of this.#writes.keys()) {
      if (id > after && id < end && !ids.includes(id)) this.saw(id, null, null, span);
    }
  }

  /** Checks a reply to a request with an Idempotency-Key: all are the same, and only one is not a replay. */
  replied(name: string, body: string, isReplay: boolean): void {
    const reply = this.#replies.get(name) ?? { body, wasCarriedOut: false };
    assertEquals(body, reply.body, `${name} got two different replies`);
    assert(isReplay || !reply.wasCarriedOut, `${name} was carried out twice`);
    reply.wasCarriedOut ||= !isReplay;
    this.#replies.set(name, reply);
  }

  /** Records a thing that is seen although no response has confirmed it. */
  #adopt(id: number, thing: Known | null, { to }: Span): void {
    const from = this.#given.get(thing?.name ?? "") ?? Infinity;
    assert(thing && from <= to, `Nobody created thing ${id}, ${thing?.name}`);
    const write = writeOf(textOf(thing), from);
    confirm(write, to);
    this.#writesOf(id).push(write);
  }

  /** Writes whose content a thing may have had at some time of the span. */
  #possible(id: number, { from, to }: Span): Write[] {
    const writes = this.#writes.get(id) ?? [];
    const isGone = writes.some((write) => write.content === null && write.isConfirmed && write.to < from);
    const isOver = (one: Write) =>
      writes.some((other) => other.isConfirmed && other.from > one.to && other.to < from);
    return writes.filter((write) =>
      write.from <= to && !isOver(write) && (!isGone || write.content === null)
    );
  }

  #see({ id, name }: Known, etag: string | null): void {
    const known = this.#ids.get(name);
    assert(known === undefined || known === id, `${name} was created twice: ${known} and ${id}`);
    this.#ids.set(name, id);
    if (etag !== null) this.#etags.set(id, etag);
  }

  #writesOf(id: number): Write[] {
    const writes = this.#writes.get(id) ?? [];
    this.#writes.set(id, writes);
    return writes;
  }
}
