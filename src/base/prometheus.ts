/** Bounds of the buckets for durations, in seconds. */
const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Values by label, in nested maps with one level for each label. */
class Labelled<Value> {
  readonly #create: () => Value;
  readonly #names: readonly string[];
  readonly #root: Node<Value> = { children: new Map() };

  constructor(names: readonly string[], create: () => Value) {
    this.#names = names;
    this.#create = create;
  }

  get(labels: readonly string[]): Value {
    let node = this.#root;
    for (const label of labels) {
      let child = node.children.get(label);
      if (child === undefined) node.children.set(label, child = { children: new Map() });
      node = child;
    }
    return node.value ??= this.#create();
  }

  /** Every value with its labels in the text format. */
  *entries(node: Node<Value> = this.#root, labels: readonly string[] = []): Generator<[string[], Value]> {
    if (node.value !== undefined) {
      yield [labels.map((label, index) => `${this.#names[index]}="${escape(label)}"`), node.value];
    }
    for (const [label, child] of node.children) yield* this.entries(child, [...labels, label]);
  }
}

interface Node<Value> {
  readonly children: Map<string, Node<Value>>;
  value?: Value;
}

/** A number that only grows, for each set of labels. */
export class Counter {
  readonly #name: string;
  readonly #help: string;
  readonly #values: Labelled<{ value: number }>;

  constructor(name: string, help: string, labels: readonly string[] = []) {
    this.#name = name;
    this.#help = help;
    this.#values = new Labelled(labels, () => ({ value: 0 }));
    // It starts at 0, because Prometheus would not see the first increase of a counter that appears later.
    if (labels.length === 0) this.add(0);
  }

  /** Adds `count` to the number with these labels. */
  add(count: number, ...labels: readonly string[]): void {
    this.#values.get(labels).value += count;
  }

  /** The counter in the Prometheus text format. Its name begins with `prefix`. */
  text(prefix: string = ""): string {
    const name = prefix + this.#name;
    const lines = [...this.#values.entries()].map(([labels, { value }]) => sample(name, labels, value));
    return family(name, "counter", this.#help, lines);
  }
}

/** A distribution for each set of labels: the number of values up to the bound of each bucket, by default in seconds. */
export class Histogram {
  readonly #name: string;
  readonly #help: string;
  readonly #buckets: readonly number[];
  readonly #values: Labelled<{ counts: number[]; count: number; sum: number }>;

  constructor(name: string, help: string, labels: readonly string[] = [], buckets = SECONDS) {
    this.#name = name;
    this.#help = help;
    this.#buckets = buckets;
    const create = () => ({ counts: buckets.map(() => 0), count: 0, sum: 0 });
    this.#values = new Labelled(labels, create);
  }

  /** Adds a value with these labels. */
  observe(value: number, ...labels: readonly string[]): void {
    const values = this.#values.get(labels);
    values.count++;
    values.sum += value;
    let bucket = 0;
    while (value > (this.#buckets[bucket] ?? Infinity)) bucket++;
    if (bucket < values.counts.length) values.counts[bucket] = (values.counts[bucket] ?? 0) + 1;
  }

  /** The histogram in the Prometheus text format. Its name begins with `prefix`. */
  text(prefix: string = ""): string {
    const name = prefix + this.#name;
    const lines = [...this.#values.entries()].flatMap(([labels, { counts, count, sum }]) => {
      let total = 0;
      return [
        ...this.#buckets.map((bucket, index) =>
          sample(`${name}_bucket`, [...labels, `le="${bucket}"`], total += counts[index] ?? 0)
        ),
        sample(`${name}_bucket`, [...labels, 'le="+Inf"'], count),
        sample(`${name}_sum`, labels, sum),
        sample(`${name}_count`, labels, count),
      ];
    });
    return family(name, "histogram", this.#help, lines);
  }
}

/** Counters and histograms, in the order of their text. */
export class Registry {
  readonly #families: (Counter | Histogram)[] = [];

  /** Adds counters and histograms after those that it has. */
  add(...families: readonly (Counter | Histogram)[]): void {
    this.#families.push(...families);
  }

  /** All of them in the Prometheus text format. Their names begin with `prefix`. */
  text(prefix: string = ""): string {
    return this.#families.map((family) => family.text(prefix)).join("");
  }
}

/** A gauge in the Prometheus text format. */
export function gauge(name: string, help: string, value: number, labels: readonly string[] = []): string {
  return family(name, "gauge", help, [sample(name, labels, value)]);
}

/** A counter that is kept elsewhere, in the Prometheus text format. */
export function counter(name: string, help: string, value: number): string {
  return family(name, "counter", help, [sample(name, [], value)]);
}

function family(name: string, type: string, help: string, lines: readonly string[]): string {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines, ""].join("\n");
}

function sample(name: string, labels: readonly string[], value: number): string {
  return `${name}${labels.length > 0 ? `{${labels.join(",")}}` : ""} ${value}`;
}

function escape(label: string): string {
  return label.replace(/[\\"\n]/g, (character) => character === "\n" ? "\\n" : `\\${character}`);
}
