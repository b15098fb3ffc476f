/**
 * Multi-selection on the device: release one signal in each slot, pick from the server's slate at the true features, and explain what a
 * signal reveals. Proof: docs/proofs/multi-selection.md.
 */
import { fraction, nearestEven, ofFloat, plus, times, up, type Fraction } from "./arithmetic.js";
import { linearEstimates, type Catalogue, type Row } from "./catalogue.js";
import { invalidMessage, invalidParameter, refuseToSerialise, TacitError } from "./errors.js";
import type { Ledger, Stores } from "./ledger.js";
import { costFrom, formatUnits, moment, periodText, slotOf, unitsUp, type Budget, type Cost, type Period } from "./limits.js";
import { discreteLaplace, rank } from "./mechanisms.js";
import { GRID_BITS, guaranteeOf, MOST_STEPS, Signal, type Reply } from "./messages/multi_selection.js";
import type { Noise } from "./noise.js";
import { blockSums, countsOf, DIAMETER, movedByOneRating, type FeatureSpace } from "./profile.js";

/**
 * A signal and its origin. `fresh`: drawn now. `memo`: drawn earlier in this slot. If the period's budget is spent: `older`, drawn in an
 * earlier slot, or `nothing`, an empty signal.
 */
export interface Asked {
  readonly signal: Signal;
  readonly from: "fresh" | "memo" | "older" | "nothing";
}

/** What `ask` needs besides eta. */
export interface SignalContext {
  readonly ledger: Ledger;
  readonly subject: string; // of signals
  readonly budget: Budget;
  readonly refresh: Period;
  readonly perPeriod: number;
  readonly noise: Noise;
  readonly version: string; // of the feature space
  readonly dimension: number;
  /** Reads the private features as of this transaction. Throws if they lie outside the domain. */
  readonly features: (stores: Stores) => Promise<Float64Array>;
}

/** Returns this slot's signal: the first call charges and draws it, later calls return the same bytes even if ratings change. */
export async function ask(eta: Fraction, context: SignalContext): Promise<Asked> {
  const { ledger, subject, budget, dimension } = context;
  const cost = costFrom(guaranteeOf(eta, dimension).epsilon, context.noise);
  if (cost.amount > unitsUp(budget.epsilon)) {
    const price = `${formatUnits(cost.amount)} of ${budget.epsilon} in ${periodText(budget)}`;
    throw invalidParameter(`a signal with this eta never fits into the budget (${price}): use a larger eta.`);
  }
  const kind = `${context.version} ${eta.numerator}/${eta.denominator}`;
  const id = `${slotOf(moment(ledger.clock), context.refresh, context.perPeriod)} ${kind}`;
  const memo = await ledger.stored(subject, id);
  if (memo !== null) return { signal: Signal.fromBytes(memo), from: "memo" }; // the profile is not touched
  try {
    // One tab at a time, from charge to keep. If two tabs drew at once, the faster draw would be kept, and the time of a draw depends on
    // its value.
    return await runInTurn(`tacit ${ledger.database.db.name} ${subject} ${id}`, () => release(id, cost, eta, context));
  } catch (problem) {
    if (!(problem instanceof TacitError && problem.code === "budget-exhausted")) throw problem;
  }
  const older = await ledger.newest(subject, ` ${kind}`);
  return older === null
    ? { signal: Signal.nothing(dimension, eta), from: "nothing" }
    : { signal: Signal.fromBytes(older), from: "older" };
}

/** Charges, draws and keeps a signal, or returns the one that another tab has kept meanwhile. */
async function release(id: string, cost: Cost, eta: Fraction, { ledger, subject, features, noise }: SignalContext): Promise<Asked> {
  let row: Float64Array | null = null;
  // Invalid features are refused before anything is charged or drawn. If the charge does not fit, features are not read at all. After a
  // crash between charge and draw, the charge exists already, and features are read below.
  const receipt = await ledger.charge(subject, id, cost, async (stores) => (row = await features(stores)));
  if (receipt.stored !== null) return { signal: Signal.fromBytes(receipt.stored), from: "memo" };
  const drawn = drawSignal(row ?? (await ledger.database.transact("readonly", features)), eta, noise).toBytes();
  const kept = await ledger.keep(subject, id, drawn); // without Web Locks another tab may have been first
  return { signal: Signal.fromBytes(kept), from: kept === drawn ? "fresh" : "memo" };
}

/**
 * Runs `work` while no other tab of this origin runs work under the same name, by Web Locks. Without Web Locks it runs at once: the first
 * draw kept still decides for all tabs, but it is more likely the faster one.
 */
function runInTurn<T>(name: string, work: () => Promise<T>): Promise<T> {
  const locks = (globalThis.navigator as Partial<Navigator> | undefined)?.locks;
  return locks === undefined ? work() : (locks.request(name, work) as Promise<T>);
}

/** Draws a signal: each feature (0 to 1) on the grid plus exact noise of scale eta, cut to 2^30 steps. */
export function drawSignal(features: Float64Array, eta: Fraction, noise: Noise): Signal {
  const scale = fraction(eta.numerator << BigInt(GRID_BITS), eta.denominator);
  const most = BigInt(MOST_STEPS);
  const steps = Array.from(features, (feature) => {
    const noisy = BigInt(nearestEven(feature * 2 ** GRID_BITS)) + discreteLaplace(scale, noise); // 2^20 times a float is exact
    return Number(noisy > most ? most : noisy < -most ? -most : noisy);
  });
  return new Signal(steps, GRID_BITS, eta, noise.caveat !== null);
}

/** Picks the numbers of the `t` best items of a slate at these features, best first. Nothing leaves the device. */
export function pick(reply: Reply, features: Float64Array, t = 1): { picked: bigint[]; estimates: number[] } {
  const estimates = estimatorOf(reply, features.length)(features);
  const best = rank(estimates).slice(0, t);
  return { picked: best.map((index) => reply.items[index] as bigint), estimates };
}

/** The catalogue indices of a slate's items. Throws if an item is unknown. */
export function slateOf(reply: Reply, catalogue: Catalogue): number[] {
  return reply.items.map((number) => {
    const index = catalogue.indexOfNumber(number);
    if (index === undefined) throw invalidMessage("the slate has an item that this catalogue lacks: load the server's catalogue again.");
    return index;
  });
}

/** Returns a function that estimates the slate's items at true features. An unusable reply throws here, before a feature is read. */
export function estimatorOf(reply: Reply, dimension: number): (features: Float64Array) => number[] {
  if (reply.dimension !== dimension) {
    throw invalidMessage(`the reply's local model is for ${reply.dimension} features; this device has ${dimension}.`);
  }
  if (reply.kind === "network") throw invalidMessage("the reply needs a network on the device, which has none.");
  if (reply.kind === "none") return () => reply.items.map((_, index) => -index);
  const rows = reply.rows();
  const matrix = reply.kind === "principal-components" ? linearMapOf(rows, reply.items.length) : rows;
  if (!matrix.every((row) => (row as number[]).every(Number.isFinite))) {
    throw invalidMessage("the reply's principal components give no finite estimates.");
  }
  return (features) => linearEstimates(matrix, features);
}

/**
 * Converts principal components of rows [1, features, utilities] to the equivalent linear map, below @ pinv(above). The map does not depend
 * on features, so neither does a failure.
 */
export function linearMapOf(basis: readonly Row[], items: number): number[][] {
  const above = basis.slice(0, basis.length - items);
  const below = basis.slice(basis.length - items);
  const inverse = pseudoinverse(above.map((row) => Array.from(row))); // components x (1 + d)
  return below.map((row) => above.map((_, column) => inverse.reduce((sum, own, component) => sum + row[component]! * own[column]!, 0)));
}

const CUT = 1e-6; // relative cut-off of singular values
const SWEEPS = 60;
const CLOSE = 1e-15;

/** The pseudoinverse by one-sided Jacobi: rotates pairs of columns until all are orthogonal. Normal equations would lose digits. */
function pseudoinverse(matrix: number[][]): number[][] {
  const wide = matrix.length < matrix[0]!.length;
  // works on the columns of the matrix, or of its transpose if that has fewer; `rotations` accumulates V
  const columns = wide ? matrix.map((row) => [...row]) : transpose(matrix);
  const rotations = columns.map((_, row) => columns.map((__, column) => Number(row === column)));
  for (let sweep = 0, moved = true; moved && sweep < SWEEPS; sweep += 1) {
    moved = false;
    for (let p = 0; p < columns.length; p += 1) {
      for (let q = p + 1; q < columns.length; q += 1) moved = rotate(columns, rotations, p, q) || moved;
    }
  }
  const squares = columns.map((column) => dot(column, column));
  const least = Math.max(...squares) * CUT * CUT;
  // A = U S V', columns = U S: pinv(A) = V S^-2 (U S)'
  const inverse = columns.map((_, row) =>
    columns[0]!.map((__, entry) =>
      columns.reduce((sum, column, k) => (squares[k]! > least ? sum + (rotations[k]![row]! * column[entry]!) / squares[k]! : sum), 0),
    ),
  );
  return wide ? transpose(inverse) : inverse;
}

/** Makes two columns orthogonal. Returns false if they already were. */
function rotate(columns: number[][], rotations: number[][], p: number, q: number): boolean {
  const [a, b, c] = [dot(columns[p]!, columns[p]!), dot(columns[q]!, columns[q]!), dot(columns[p]!, columns[q]!)];
  if (!(Math.abs(c) > CLOSE * Math.sqrt(a * b))) return false;
  const zeta = (b - a) / (2 * c);
  const tangent = Math.sign(zeta || 1) / (Math.abs(zeta) + Math.hypot(1, zeta));
  const cosine = 1 / Math.hypot(1, tangent);
  for (const table of [columns, rotations]) {
    const [first, second] = [table[p]!, table[q]!];
    table[p] = first.map((value, entry) => cosine * (value - tangent * second[entry]!));
    table[q] = second.map((value, entry) => cosine * (value + tangent * first[entry]!));
  }
  return true;
}

const dot = (a: Row, b: Row): number => (a as number[]).reduce((sum, value, index) => sum + value * b[index]!, 0);
const transpose = (table: number[][]): number[][] => table[0]!.map((_, column) => table.map((row) => row[column]!));

const LEAST_RADIUS = 2 ** -20; // one step of the grid: nearer points are the same point
const SPARE = 1 + 2 ** -40; // shares are floats, so a distance may be off in its last digits

/** What one signal reveals, as epsilons rounded up. Infinity if the noise promises nothing. */
export interface Readings {
  /** Per unit of L1 distance between features. */
  readonly perUnit: number;
  /** About a new rating of any item of the catalogue. */
  readonly oneRatingAdded: number;
  /** About the user's rating that weighs most; null if they have none. */
  readonly oneRatingRemoved: number | null;
  /** About the user's rating that weighs most, moved from liked to disliked or back, which moves both blocks; null if they have none. */
  readonly oneRatingMoved: number | null;
  /** Between any two users. */
  readonly anywhere: number;
}

/**
 * Explains the guarantee of one signal for a user with these ratings, given by the items' indices. The readings about one rating depend on
 * the user's own counts: show them to the user only and keep them on the device.
 */
export function readingsOf(eta: Fraction, space: FeatureSpace, ratings: ReadonlyMap<number, number>, protects: boolean): Readings {
  const { epsilon, rounding } = guaranteeOf(eta, 2 * space.names.length);
  const at = (distance: number): number => (protects ? up(times(ofFloat(epsilon), plus(ofFloat(distance), ofFloat(rounding)))) : Infinity);
  const within = (radius: number): number => at(Math.max(radius, LEAST_RADIUS) * SPARE);
  const blocks = blockSums(countsOf(space, ratings));
  const most = space.genres.reduce((largest, genres) => Math.max(largest, genres.length), 0);
  const added = Math.max(...blocks.map((count) => movedByOneRating(count, most))); // grows with the item's number of genres
  let [removed, moved] = [0, 0];
  for (const [index, value] of ratings) {
    const size = space.genres[index]?.length ?? 0;
    const [own, other] = value >= space.likedFrom ? blocks : [blocks[1], blocks[0]];
    const distance = movedByOneRating(own - size, size); // counted without the item
    removed = Math.max(removed, distance);
    moved = Math.max(moved, distance + movedByOneRating(other, size));
  }
  const ofOwn = (distance: number): number | null => (ratings.size === 0 ? null : within(distance));
  const readings = {
    perUnit: protects ? epsilon : Infinity,
    oneRatingAdded: within(added),
    oneRatingRemoved: ofOwn(removed),
    oneRatingMoved: ofOwn(moved),
    anywhere: at(DIAMETER),
  };
  Object.defineProperty(readings, "toJSON", { value: () => refuseToSerialise("a reading") });
  return Object.freeze(readings);
}
