/**
 * What the libraries share: metrics, bounded maps, durations, values that may be promises.
 *
 * @module
 */
export { BoundedMap } from "./bounded_map.ts";
export { Counter, counter, gauge, Histogram, Registry } from "./prometheus.ts";
export { DAY, dayOf, HOUR, MINUTE, pause, SECOND } from "./time.ts";
export { whenReady } from "./when_ready.ts";
