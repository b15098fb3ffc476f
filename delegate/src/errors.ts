/**
 * The delegate's errors. Each has a stable `code`, the same as in Python's `tacit.errors`. The message says what is wrong and what to do
 * and never contains a private value.
 */
export class TacitError extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(`${code}: ${message}`);
    this.name = "TacitError";
    this.code = code;
  }
}

export const invalidParameter = (message: string): TacitError => new TacitError("invalid-parameter", message);
export const invalidMessage = (message: string): TacitError => new TacitError("invalid-message", message);
export const conflict = (message: string): TacitError => new TacitError("conflict", message);
export const unknownName = (message: string): TacitError => new TacitError("unknown-name", message);

/** The `toJSON` of objects that hold private data: always throws. */
export function refuseToSerialise(what: string): never {
  throw invalidParameter(`${what} is private and cannot be serialised.`);
}
