import { assert, assertEquals } from "@std/assert";
import type { Span } from "./customer.ts";

/** An animal as JSON.parse reads it. */
export interface Animal {
  readonly id: number;
  readonly name: string;
  readonly status: string;
}

/** What a write makes of an animal: its JSON, or null where it is removed. */
type Content = string | null;

/** A write that was done, or may have been. */
class Write {
  readonly content: Content;
  readonly from: number;
  /** When its client was told what became of it, if it was. */
  to: number = Infinity;
  /** Whether its client was told that it was done. */
  isTold = false;
  /** Whether anybody has seen what it makes. */
  wasSeen = false;

  constructor(content: Content, from: number) {
    this.content = content;
    this.from = from;
  }

  /** Its client was told that it was done, at this time if not before. */
  tell(to: number): void {
    this.to = Math.min(to, this.isTold ? this.to : Infinity);
    this.isTold = true;
  }
}

/** An animal, as a client writes it. */
export function textOf({ id, name, status }: Animal): string {
  return `{"id":${id},"name":${JSON.stringify(name)},"categoryId":1,"status":"${status}"}`;
}

/**
 * What clients have made and changed, as they were told: from that follows what any of them may see. Nothing that was told
 * is lost, nothing is done twice, and nothing that is over comes back.
 */
export class Goods {
  readonly #writes: Map<number, Write[]> = new Map();
  /** Ids by name: each name is given once, by one request. */
  readonly #ids: Map<string, number> = new Map();
  /** When the requests came that give these names, or may. */
  readonly #given: Map<string, number> = new Map();
  readonly #etags: Map<number, string> = new Map();
  /** Ids and entity tags of what was replaced on condition that it was still there. */
  readonly #replaced: Set<string> = new Set();
  /** Ids of messages by their text. */
  readonly #messages: Map<string, string> = new Map();
  /** Texts of messages that were accepted, and those that may have been. */
  readonly #sent: Map<string, { isTold: boolean; isTaken: boolean }> = new Map();
  /** First replies by Idempotency-Key. */
  readonly #replies: Map<string, string> = new Map();
  readonly #firsts: Set<string> = new Set();

  /** A request is about to give an animal this name. */
  give(name: string, from: number): void {
    this.#given.set(name, Math.min(from, this.#given.get(name) ?? Infinity));
  }

  /** The animals that are known, the last first. */
  get ids(): number[] {
    return [...this.#writes.keys()].reverse();
  }

  /** The entity tag that was seen last. */
  etagOf(id: number): string | undefined {
    return this.#etags.get(id);
  }

  /** An animal was made, as its client was told. */
  created(animal: Animal, etag: string | null, span: Span): void {
    this.#see(animal, etag);
    const writes = this.#writesOf(animal.id);
    const known = writes.find(({ content }) => content === textOf(animal));
    const write = known ?? new Write(textOf(animal), span.from);
    if (known === undefined) writes.unshift(write);
    // A later replay tells that the first time was over before.
    write.tell(span.to);
  }

  /**
   * A client is about to change or remove an animal. What it returns is called with the outcome: whether it was done,
   * undefined where that is not known, and when.
   */
  beginChange(id: number, content: Content, from: number): (isDone: boolean | undefined, to: number) => void {
    const write = new Write(content, from);
    const writes = this.#writesOf(id);
    writes.push(write);
    return (isDone, to) => {
      write.to = to;
      if (isDone) write.tell(to);
      if (isDone !== false) return;
      assert(!write.wasSeen || content === null, `Animal ${id} became ${content}, which was refused`);
      writes.splice(writes.indexOf(write), 1);
    };
  }

  /** What an entity tag stood for was replaced, as a client was told who asked for just that. */
  replaced(id: number, etag: string): void {
    assert(!this.#replaced.has(`${id} ${etag}`), `Two have replaced ${etag} of animal ${id}`);
    this.#replaced.add(`${id} ${etag}`);
  }

  /** An animal was seen, or that there is none; in a state that it may have been in at some time of the span. */
  saw(id: number, animal: Animal | null, etag: string | null, span: Span): void {
    if (animal) {
      assertEquals(animal.id, id);
      this.#see(animal, etag);
    }
    const writes = this.#writes.get(id);
    if (writes === undefined && animal === null) return;
    if (writes === undefined) return this.#adopt(id, animal, span);
    const content = animal && textOf(animal);
    // Before it was made, there was none.
    if (content === null && (writes[0]?.to ?? Infinity) >= span.from) return;
    const possible = this.#possible(id, span);
    const seen = possible.filter((write) => write.content === content);
    for (const write of seen) write.wasSeen = true;
    const others = possible.map(({ content }) => content).join(" or ");
    assert(seen.length > 0, `Animal ${id} was seen as ${content}, but can only have been ${others}`);
  }

  /** A page of the catalogue was seen, which begins after an id; undefined for `next` where it is the last. */
  sawPage(animals: readonly Animal[], after: number, hasNext: boolean, span: Span): void {
    const ids = animals.map(({ id }) => id);
    assertEquals(ids, [...new Set(ids)].toSorted((a, b) => a - b));
    for (const animal of animals) this.saw(animal.id, animal, null, span);
    const end = hasNext ? ids.at(-1) ?? 0 : Infinity;
    for (const id of this.#writes.keys()) {
      if (id > after && id < end && !ids.includes(id)) this.saw(id, null, null, span);
    }
  }

  /** A message is sent, and may be accepted. */
  sending(text: string): void {
    if (!this.#sent.has(text)) this.#sent.set(text, { isTold: false, isTaken: false });
  }

  /** A message was accepted, as its client was told. */
  accepted(text: string, id: string): void {
    const known = this.#messages.get(text);
    assert(known === undefined || known === id, `A message was accepted twice: ${text}`);
    this.#messages.set(text, id);
    const sent = this.#sent.get(text);
    assert(sent);
    sent.isTold = true;
  }

  /** All messages that wait were taken. */
  took(messages: readonly { readonly id: string; readonly message: string }[]): void {
    for (const { id, message } of messages) {
      const sent = this.#sent.get(message);
      assert(sent && !sent.isTaken, `A message was stored twice: ${message}`);
      sent.isTaken = true;
      this.accepted(message, id);
    }
  }

  /** Nothing that was accepted is missing. */
  assertAllTaken(): void {
    const lost = [...this.#sent].filter(([, { isTold, isTaken }]) => isTold && !isTaken);
    assertEquals(lost.map(([text]) => text), []);
  }

  /** A request with an Idempotency-Key was answered: every time alike, and the first time only once. */
  replied(name: string, body: string, isReplay: boolean): void {
    const first = this.#replies.get(name);
    assert(first === undefined || first === body, `${name} was answered in two ways`);
    this.#replies.set(name, body);
    assert(isReplay || !this.#firsts.has(name), `${name} was carried out twice`);
    if (!isReplay) this.#firsts.add(name);
  }

  /** An animal that appears without its client having been told. */
  #adopt(id: number, animal: Animal | null, { to }: Span): void {
    const from = this.#given.get(animal?.name ?? "") ?? Infinity;
    assert(animal && from <= to, `Nobody made animal ${id}, ${animal?.name}`);
    const write = new Write(textOf(animal), from);
    write.tell(to);
    this.#writesOf(id).push(write);
  }

  /** Writes after which an animal was as they made it at some time of the span, it may be. */
  #possible(id: number, { from, to }: Span): Write[] {
    const writes = this.#writes.get(id) ?? [];
    const isGone = writes.some((write) => write.content === null && write.isTold && write.to < from);
    const isOver = (one: Write) =>
      writes.some((other) => other.isTold && other.from > one.to && other.to < from);
    return writes.filter((write) =>
      write.from <= to && !isOver(write) && (!isGone || write.content === null)
    );
  }

  #see({ id, name }: Animal, etag: string | null): void {
    const known = this.#ids.get(name);
    assert(known === undefined || known === id, `${name} was made twice: ${known} and ${id}`);
    this.#ids.set(name, id);
    if (etag !== null) this.#etags.set(id, etag);
  }

  #writesOf(id: number): Write[] {
    const writes = this.#writes.get(id) ?? [];
    this.#writes.set(id, writes);
    return writes;
  }
}
