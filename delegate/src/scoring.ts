/** Private scores: what the items of an offer are worth to her. Every candidate gets one, whatever happens, and no error leaves. */
import type { Catalogue } from "./catalogue.js";
import { bodyOf, type Answer } from "./client.js";
import { linearEstimates } from "./local_models.js";
import type { Candidate } from "./offer.js";
import { Reply } from "./reply.js";

const MOST_PARTS = 1000;
const MICRO = 1_000_000;
const LARGEST = 1e300; // a private score beyond it is taken for no number: the difference of two such scores overflows

/** How much she would like some items, from her features; null or NaN where it is not known. */
export type PrivateScorer = (features: Float64Array, items: readonly string[]) => readonly (number | null)[];

/** bid * quality of every candidate, whatever happens: where that is no number the candidate's public score stands. */
export function privateScores(candidates: readonly Candidate[], quality: () => readonly (number | null)[]): number[] {
  const publicly = candidates.map((one) => one.public_score);
  try {
    const found = quality();
    if (!Array.isArray(found) || found.length !== candidates.length) return publicly;
    return candidates.map(({ bid }, place) => {
      const liked: unknown = found[place];
      const score = typeof liked === "number" ? (bid / MICRO) * liked : NaN;
      return Math.abs(score) <= LARGEST ? score : publicly[place]!; // NaN is not
    });
  } catch {
    return publicly; // an error would be an answer to a question that a server may have crafted
  }
}

/** All parts of the server's public model, at once, whatever will be chosen; null where they are not of one version of it. */
export async function partsOf(part: (number: number) => Promise<Answer>): Promise<Reply[] | null> {
  const first = await part(0);
  const count = Number(first.headers.get("Tacit-Parts") ?? 1);
  if (!(Number.isInteger(count) && count >= 1 && count <= MOST_PARTS)) return null;
  const all = [first, ...(await Promise.all(Array.from({ length: count - 1 }, (_, place) => part(place + 1))))];
  const versions = new Set(all.map(({ headers }) => headers.get("Tacit-Version"))); // of a part that is not there any more, too
  return versions.size > 1 ? null : all.map((answer) => Reply.fromBytes(bodyOf(answer)));
}

/** The public local model of the server's listed items, in parts, as a scorer. null where the parts are not one for this device. */
export function scorerOf(parts: readonly Reply[], catalogue: Catalogue): PrivateScorer | null {
  const rows = new Map<number, Float64Array>();
  for (const part of parts) {
    if (!part.kind.startsWith("linear-map") || part.dimension !== catalogue.dimension) return null;
    const own = part.rows();
    part.items.forEach((number, place) => {
      const code = catalogue.placeOfNumber(number);
      if (code !== undefined) rows.set(code, own[place]!);
    });
  }
  return (features, items) =>
    items.map((item) => {
      const row = rows.get(catalogue.placeOfText(item) ?? -1);
      return row === undefined ? null : linearEstimates([row], features)[0]!;
    });
}
