/** Readers of JSON, strict: every member is there, none is unknown, each has its own type. The error names a path, never a value. */
import { invalidMessage } from "./errors.js";

/** `value` as what it should be; else an error that names its path. */
export type Reader<T> = (value: unknown, path?: string) => T;

function reader<T>(what: string, fits: (value: T) => boolean): Reader<T> {
  return (value, path = "$") => {
    if (!fits(value as T)) throw invalidMessage(`expected ${what} at ${path}.`);
    return value as T;
  };
}

export const whole = (least: number, most: number): Reader<number> =>
  reader(`a whole number from ${least} to ${most}`, (value) => Number.isInteger(value) && value >= least && value <= most);

/** A finite number. */
export const real = (most = Infinity): Reader<number> =>
  reader("a finite number", (value) => Number.isFinite(value) && Math.abs(value) <= most);

export const oneOf = <T>(...allowed: readonly T[]): Reader<T> => reader(`one of ${allowed.join(", ")}`, (value) => allowed.includes(value));

function matching(what: string, pattern: string): Reader<string> {
  const expression = new RegExp(`^${pattern}$`, "u"); // counts characters, not halves of them
  return reader(what, (value) => typeof value === "string" && expression.test(value));
}

/** A text of so many characters that can be written as UTF-8. */
export const text = (least = 0, most = 200): Reader<string> =>
  matching(`a text of ${least} to ${most} characters`, `\\P{Cs}{${least},${most}}`);

/** A text without line breaks or control characters. */
export const printable = (most: number): Reader<string> => matching("printable characters", `( |[^\\p{C}\\p{Z}]){1,${most}}`);

/** So many bytes as lower-case hexadecimal digits. */
export const hexadecimal = (least: number, most: number): Reader<string> =>
  matching("hexadecimal digits", `([0-9a-f]{2}){${least},${most}}`);

export const orNull =
  <T>(read: Reader<T>): Reader<T | null> =>
  (value, path) =>
    value === null ? null : read(value, path);

export const list = <T>(read: Reader<T>): Reader<T[]> => {
  const listed = reader<unknown[]>("a list", Array.isArray);
  return (value, path) => listed(value, path).map((one) => read(one, path));
};

/** An object with these members and no others. */
export const record = <T extends object>(members: { readonly [Name in keyof T]: Reader<T[Name]> }): Reader<T> => {
  const names = Object.keys(members) as (keyof T & string)[];
  const object: Reader<T> = reader(`an object of ${names.join(", ")}`, (value) => {
    const found = typeof value === "object" && value !== null ? Object.keys(value) : [];
    return found.length === names.length && names.every((name) => found.includes(name));
  });
  return (value, path = "$") => {
    const found = object(value, path);
    return Object.fromEntries(names.map((name) => [name, members[name](found[name], `${path}.${name}`)])) as T;
  };
};

export const VERSION_1 = whole(1, 1);
