/** Times at which the outcome of private work may show: full tenths of a second after the call, so that how long it took does not. */
const TICK = 100; // milliseconds: what `supported` allows takes some two on a desktop computer, ten on a slow phone

/** Waits for the next one. `started` is performance.now() of the call. */
export function nextTick(started: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, TICK - ((performance.now() - started) % TICK)));
}
