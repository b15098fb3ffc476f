/** Local models: the small scorer that is sent along with a slate. Principal components are solved once, into a linear map. */

type Row = Float64Array | readonly number[];

const CUT = 1e-6; // relative cut-off of singular values
const SWEEPS = 60;
const CLOSE = 1e-15;

/** matrix @ [1, features]: one estimate for each row. */
export const linearEstimates = (matrix: readonly Row[], features: Row): number[] =>
  matrix.map((row) => {
    let total = row[0]!;
    for (let place = 1; place < row.length; place += 1) total += row[place]! * features[place - 1]!;
    return total;
  });

/**
 * The linear map that principal components of rows [1, features, utilities] amount to: below @ pinv(above). It does not depend on
 * features, and so neither does its failure.
 */
export function mapOf(basis: readonly Row[], items: number): number[][] {
  const above = basis.slice(0, basis.length - items);
  const below = basis.slice(basis.length - items);
  const inverse = pseudoinverse(above.map((row) => Array.from(row))); // components x (1 + d)
  return below.map((row) => above.map((_, column) => inverse.reduce((sum, own, place) => sum + row[place]! * own[column]!, 0)));
}

/** The pseudoinverse, by rotating pairs of columns until all are orthogonal (one-sided Jacobi). Never by normal equations. */
function pseudoinverse(matrix: number[][]): number[][] {
  const wide = matrix.length < matrix[0]!.length;
  // columns of the matrix, or of its transpose where that has fewer of them; `turns` gathers the rotations
  const columns = wide ? matrix.map((row) => [...row]) : transposed(matrix);
  const turns = columns.map((_, row) => columns.map((__, column) => Number(row === column)));
  for (let sweep = 0, moved = true; moved && sweep < SWEEPS; sweep += 1) {
    moved = false;
    for (let p = 0; p < columns.length; p += 1) {
      for (let q = p + 1; q < columns.length; q += 1) moved = rotate(columns, turns, p, q) || moved;
    }
  }
  const squares = columns.map((column) => dot(column, column));
  const least = Math.max(...squares) * CUT * CUT;
  // A = U S V', columns = U S: pinv(A) = V S^-2 (U S)'
  const inverse = columns.map((_, row) =>
    columns[0]!.map((__, place) =>
      columns.reduce((sum, column, k) => (squares[k]! > least ? sum + (turns[k]![row]! * column[place]!) / squares[k]! : sum), 0),
    ),
  );
  return wide ? transposed(inverse) : inverse;
}

/** Makes two columns orthogonal; whether they were not. */
function rotate(columns: number[][], turns: number[][], p: number, q: number): boolean {
  const [a, b, c] = [dot(columns[p]!, columns[p]!), dot(columns[q]!, columns[q]!), dot(columns[p]!, columns[q]!)];
  if (!(Math.abs(c) > CLOSE * Math.sqrt(a * b))) return false;
  const zeta = (b - a) / (2 * c);
  const tangent = Math.sign(zeta || 1) / (Math.abs(zeta) + Math.hypot(1, zeta));
  const cosine = 1 / Math.hypot(1, tangent);
  for (const table of [columns, turns]) {
    const [first, second] = [table[p]!, table[q]!];
    table[p] = first.map((one, place) => cosine * (one - tangent * second[place]!));
    table[q] = second.map((one, place) => cosine * (one + tangent * first[place]!));
  }
  return true;
}

const dot = (a: Row, b: Row): number => (a as number[]).reduce((sum, one, place) => sum + one * b[place]!, 0);
const transposed = (table: number[][]): number[][] => table[0]!.map((_, column) => table.map((row) => row[column]!));
