// Preloaded into a server by `IN_HASTE`: its time, other than that of the day, runs twice as fast.
const { setTimeout: start, performance } = globalThis;
const now = performance.now.bind(performance);
performance.now = () => 2 * now();
Object.assign(globalThis, { setTimeout: (work: () => void, ms: number) => start(work, ms / 2) });
