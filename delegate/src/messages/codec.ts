/** Strict JSON readers. Every member must be present and have its own type; others are not allowed. Errors name a path, never a value. */
import { invalidMessage } from "../errors.js";

/** Returns `value` with its type, or throws an error that names its path. */
export type Reader<T> = (value: unknown, path?: string) => T;

/** An object with these members and no others. */
export const record = <T extends object>(members: { readonly [Name in keyof T]: Reader<T[Name]> }): Reader<T> => {
  const names = Object.keys(members) as (keyof T & string)[];
  const object: Reader<T> = reader(`an object of ${names.join(", ")}`, (value) => {
    const present = typeof value === "object" && value !== null ? Object.keys(value) : [];
    return present.length === names.length && names.every((name) => present.includes(name));
  });
  return (value, path = "$") => {
    const content = object(value, path);
    return Object.fromEntries(names.map((name) => [name, members[name](content[name], `${path}.${name}`)])) as T;
  };
};

export const list = <T>(read: Reader<T>): Reader<T[]> => {
  const array = reader<unknown[]>("a list", Array.isArray);
  return (value, path) => array(value, path).map((item) => read(item, path));
};

export const orNull =
  <T>(read: Reader<T>): Reader<T | null> =>
  (value, path) =>
    value === null ? null : read(value, path);

export const oneOf = <T>(...allowed: readonly T[]): Reader<T> => reader(`one of ${allowed.join(", ")}`, (value) => allowed.includes(value));

export const whole = (least: number, most: number): Reader<number> =>
  reader(`a whole number from ${least} to ${most}`, (value) => Number.isInteger(value) && value >= least && value <= most);

/** A finite number of at most this size. */
export const real = (most = Infinity): Reader<number> =>
  reader("a finite number", (value) => Number.isFinite(value) && Math.abs(value) <= most);

/** A text with this many characters that can be encoded as UTF-8. */
export const text = (least = 0, most = 200): Reader<string> =>
  matching(`a text of ${least} to ${most} characters`, `\\P{Cs}{${least},${most}}`);

/** A text without line breaks or control characters. */
export const printable = (most: number): Reader<string> => matching("printable characters", `( |[^\\p{C}\\p{Z}]){1,${most}}`);

/** This many bytes as lower-case hexadecimal digits. */
export const hexadecimal = (least: number, most: number): Reader<string> =>
  matching("hexadecimal digits", `([0-9a-f]{2}){${least},${most}}`);

function matching(what: string, pattern: string): Reader<string> {
  const expression = new RegExp(`^${pattern}$`, "u"); // counts code points, not UTF-16 units
  return reader(what, (value) => typeof value === "string" && expression.test(value));
}

function reader<T>(what: string, fits: (value: T) => boolean): Reader<T> {
  return (value, path = "$") => {
    if (!fits(value as T)) throw invalidMessage(`expected ${what} at ${path}.`);
    return value as T;
  };
}

/** The version of every JSON message: 1. */
export const VERSION_1 = whole(1, 1);
