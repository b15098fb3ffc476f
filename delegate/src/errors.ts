/**
 * What can go wrong. Every error has a stable `code`, the same as in Python's `tacit.errors`; it says what is wrong and what to do,
 * and shows no private value.
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

/** For objects that hold something private: they are not written, copied or sent. */
export function refuseToBeWritten(what: string): never {
  throw invalidParameter(`${what} is private and is not written, copied or sent.`);
}
