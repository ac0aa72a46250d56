/**
 * What the libraries share: metrics, bounded maps, times, values that may be promises.
 *
 * @module
 */
export { BoundedMap } from "./bounded_map.ts";
export { Counter, counter, gauge, Histogram, Registry } from "./prometheus.ts";
export {
  DAY,
  dayOf,
  earlier,
  FUTURE,
  HOUR,
  later,
  MINUTE,
  monotonicNow,
  type MonotonicTime,
  msBetween,
  msSince,
  PAST,
  pause,
  plus,
  SECOND,
} from "./time.ts";
export { whenReady } from "./when_ready.ts";
