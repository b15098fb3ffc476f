// Private selection on the device: shared vectors, and a delegate against an in-memory server. Each token has one draw, and refusals depend
// on public data only.
import "fake-indexeddb/auto";
import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import vectors from "../../vectors/private-selection.json";
import { weightOf } from "../src/arithmetic.js";
import { Delegate, type DelegateOptions } from "../src/device.js";
import { TacitError } from "../src/errors.js";
import { randomisedBit, rateOf } from "../src/mechanisms.js";
import { costOf, impression, offerFromJSON, offerRequest, policyFromJSON, type Candidate, type Offer, type Policy } from "../src/messages/private_selection.js";
import { systemNoise, type Noise } from "../src/noise.js";
import { privateScores, select, supports } from "../src/private_selection.js";
import { FakeServer, offerOf, problem } from "./fake_server.js";
import { offerToJSON } from "./forms.js";
import { GivenNoise } from "./given_noise.js";
import { lawOf } from "./laws.js";

describe("vectors/private-selection.json, shared with the device in Python", () => {
  const NOT_RUN: Record<string, string> = {
    about: "not a case",
    groups: "the digest of a shuffled report: this device has no blind tokens, and answers no offer of a batch",
  };
  const MESSAGES: Record<string, (json: any) => unknown> = {
    OfferRequest: ({ context, consent }) => offerRequest(context, consent === 1),
    Impression: ({ token, items }) => impression(token, items),
  };
  const MESSAGES_NOT_SENT: Record<string, string> = {
    ShuffledReport: "this device answers no offer of a batch",
    Engagement: "this device draws the bit of a click and leaves the sending to the application",
  };
  const LAWS_NOT_SUPPORTED = ["pf clipped", "gumbel clipped"]; // clipped scores are answered publicly

  const plain = (rule: string, m: number, more: object = {}): Policy =>
    policyFromJSON({ version: 1, id: rule, epsilon: 0, m, d: 1, slots: 1, bounding: "none", width: null, floors: null, ...more });

  test("every family is tested or has a reason why not", () => {
    const run = ["offers", "refused_offers", "messages", "costs", "draws", "uniform", "clicks", "laws", "private_scores"];
    expect(Object.keys(vectors).sort()).toEqual([...run, ...Object.keys(NOT_RUN)].sort());
    expect(vectors.messages.filter(({ kind }) => !(kind in MESSAGES)).map(({ kind }) => kind)).toEqual(Object.keys(MESSAGES_NOT_SENT));
  });

  test.each(vectors.offers)("offers: $name", ({ json }) => {
    expect(offerToJSON(offerFromJSON(json))).toEqual(json);
  });

  test.each(vectors.refused_offers)("refused offers: $name", ({ json }) => {
    expect(() => offerFromJSON(json)).toThrow(TacitError);
  });

  test.each(vectors.messages.filter(({ kind }) => kind in MESSAGES))("messages: $name", ({ kind, json }) => {
    expect(MESSAGES[kind]!(json)).toEqual(json);
  });

  test.each(vectors.costs)("costs: $name", ({ policy, epsilon }) => {
    expect(costOf(policyFromJSON(policy))).toBe(epsilon === "inf" ? Infinity : epsilon);
  });

  test.each(vectors.draws)("draws: $name, $bytes", ({ scores, d, epsilon, weight, bytes, place }) => {
    const noise = new GivenNoise(bytes);
    const policy = plain("rr", scores.length, { epsilon, d });
    expect(
      select(
        policy,
        scores,
        scores.map(() => 0),
        noise,
      ),
    ).toEqual([place]);
    expect(noise.left).toHaveLength(0);
    if (d < scores.length) expect(String(weightOf(epsilon))).toBe(weight);
  });

  test.each(vectors.uniform)("uniform: $name", ({ m, slots, bytes, places }) => {
    const noise = new GivenNoise(bytes);
    expect(select(plain("uniform", m, { slots }), null, new Array(m).fill(0), noise)).toEqual(places);
    expect(noise.left).toHaveLength(0);
  });

  test.each(vectors.clicks)("clicks: $name, $bytes", ({ epsilon, clicked, bytes, bit }) => {
    const noise = new GivenNoise(bytes);
    expect(randomisedBit(clicked, epsilon, noise)).toBe(bit);
    expect(noise.left).toHaveLength(0);
  });

  test.each(vectors.laws)("laws: $name", ({ name, policy: json, scores, rate, law }) => {
    const policy = policyFromJSON(json);
    if (LAWS_NOT_SUPPORTED.some((law) => name.startsWith(law))) {
      expect(supports(policy)).toBe(false);
      return;
    }
    lawOf(policy, scores).forEach((probability, place) => expect(Math.abs(probability - law[place]!)).toBeLessThan(1e-5));
    if (rate !== null) {
      const { numerator, denominator } = rateOf(policy.rule as "pf" | "gumbel", policy.m, policy.epsilon);
      expect((Number(numerator) / Number(denominator)) * 2 ** 20).toBeCloseTo(rate, 8);
    }
  });

  test.each(vectors.private_scores)("private scores: $name", ({ candidates, quality, scores }) => {
    expect(privateScores(candidates as Candidate[], () => quality as (number | null)[])).toEqual(scores);
  });
});

describe("supported sizes", () => {
  const policy = (rule: Policy["rule"], m: number, slots: number): Policy => ({
    ...{ rule, m, slots, epsilon: 1, d: 1, width: null, floors: null },
    bounding: rule === "pf" || rule === "gumbel" ? "scaled" : "none",
  });

  test.each([
    ["gumbel", 200, 1, true],
    ["gumbel", 201, 1, false],
    ["pf", 20, 11, false],
    ["rr", 10_000, 2, true],
    ["rr", 10_000, 3, false],
  ] as const)("%s of %i candidates in %i slots is supported: %s", (rule, m, slots, expected) => {
    expect(supports(policy(rule, m, slots))).toBe(expected);
  });
});

const NOW = Date.UTC(2026, 10, 17, 12);
const DAY = 86_400_000;
const ORIGIN = "http://server.test";

let places = 0;
let [place, now] = ["", NOW];
let server = new FakeServer();

beforeEach(() => {
  [place, now, server] = [`choosing ${(places += 1)}`, NOW, new FakeServer()];
});

const opened = (more: Partial<DelegateOptions> = {}): Promise<Delegate> =>
  Delegate.open({ server: ORIGIN, place, budget: { epsilon: 20, per: "month" }, fetch: server.fetch, clock: () => now, ...more });

/** A delegate with consent and a scorer, whose user likes drama, item 5. */
async function consenting(more: Partial<DelegateOptions> = {}): Promise<Delegate> {
  const delegate = await opened(more);
  delegate.rate(5, 5);
  await delegate.consent();
  await delegate.offer();
  return delegate;
}

const offered = (more: Parameters<typeof offerOf>[0] = {}): Offer => offerFromJSON(offerOf(more, now));

/** Noise that counts its bytes. */
const counting = (): Noise & { drawn: number } => ({
  caveat: null,
  drawn: 0,
  draw(count) {
    this.drawn += count;
    return systemNoise.draw(count);
  },
});

/** All-zero noise, which makes rr take the privately best. */
const zeros: Noise = { caveat: null, draw: (count) => new Uint8Array(count) };

describe("consent", () => {
  test("must be granted, is durable, and its revocation wipes the profile", async () => {
    const delegate = await opened();
    expect(await delegate.consented()).toBe(false);
    await delegate.consent();
    delegate.close();
    const again = await opened();
    expect(await again.consented()).toBe(true);
    again.rate(5, 5);
    await again.revoke();
    expect([await again.consented(), again.ratings().size]).toEqual([false, 0]);
  });

  test("without consent the publicly best is shown, nothing is charged and no noise is drawn", async () => {
    const noise = counting();
    const delegate = await opened({ noise });
    delegate.rate(5, 5);
    await delegate.offer();
    const choice = await delegate.choose(offered());
    expect(choice).toMatchObject({ items: ["1"], consented: false, epsilon: 0, policy: { rule: "public" } });
    expect([(await delegate.selectionStatement()).charges, noise.drawn]).toEqual([0, 0]);
  });

  test("consent is sent with a request for an offer, as one digit", async () => {
    const delegate = await opened();
    await delegate.offer("sport");
    await delegate.consent();
    await delegate.offer("sport");
    const sent = server.seen.filter(({ path }) => path.endsWith("/offers")).map(({ body }) => new TextDecoder().decode(body!));
    expect(sent).toEqual(['{"version":1,"context":"sport","consent":0}', '{"version":1,"context":"sport","consent":1}']);
  });
});

describe("choosing", () => {
  test("uses private scores, with consent, for the policy's epsilon", async () => {
    const delegate = await consenting({ noise: zeros });
    const choice = await delegate.choose(offered());
    expect(choice).toMatchObject({ items: ["5"], consented: true, epsilon: 1, policy: { rule: "rr" } });
    expect(await delegate.selectionStatement()).toMatchObject({ spent: "1", left: "9", charges: 1 });
    expect((await delegate.statement()).charges).toBe(0);
  });

  test("the same token returns the same items for one charge, in every tab, after a restart and without consent", async () => {
    const [first, second] = [await consenting(), await opened()];
    const offer = offered();
    const choice = await first.choose(offer);
    await second.revoke();
    expect(await second.choose(offer)).toEqual(choice);
    first.close();
    expect(await (await opened()).choose(offer)).toEqual(choice);
    expect((await second.selectionStatement()).charges).toBe(1);
  });

  test("of concurrent calls one writes, and the others return the same items or null", async () => {
    const offers = fc.array(fc.record({ tab: fc.nat(1), token: fc.nat(3) }), { minLength: 2, maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(offers, async (calls) => {
        place = `tabs ${(places += 1)}`;
        const tabs = [await consenting(), await opened()];
        await tabs[1]!.offer();
        const results = await Promise.all(
          calls.map(async ({ tab, token }) => ({
            token,
            choice: await tabs[tab]!.choose(offered({ token: String(token).padStart(32, "a") })),
          })),
        );
        const shown = new Map<number, string>();
        for (const { token, choice } of results) {
          if (choice === null) continue;
          expect(shown.get(token) ?? String(choice.items)).toBe(String(choice.items));
          shown.set(token, String(choice.items));
        }
        expect(shown.size).toBe(new Set(calls.map(({ token }) => token)).size);
        expect((await tabs[0]!.selectionStatement()).charges).toBe(shown.size);
        tabs.forEach((tab) => tab.close());
      }),
      { numRuns: 25 },
    );
  });

  test("a second offer with the same token and a cheaper policy does not overtake the first", async () => {
    const [first, second] = [await consenting(), await opened()];
    const token = "c".repeat(32);
    const results = await Promise.all([
      first.choose(offered({ token })),
      second.choose(offered({ token, policy: { id: "public", epsilon: 0 } })),
    ]);
    expect(results).toMatchObject([{ policy: { rule: "rr" } }, null]); // the time that scoring takes must not decide what is shown
    expect(await second.choose(offered({ token }))).toEqual(results[0]);
  });

  test("after a crash between charge and draw the token has no fill and is never drawn again", async () => {
    const failing: Noise = {
      caveat: null,
      draw: () => {
        throw new TacitError("system-noise-unavailable", "none");
      },
    };
    const delegate = await consenting({ noise: failing });
    const offer = offered();
    await expect(delegate.choose(offer)).rejects.toThrow(TacitError);
    delegate.close();
    const again = await consenting();
    expect(await again.choose(offer)).toBeNull();
    expect((await again.selectionStatement()).charges).toBe(1);
  });

  test("over a limit, out of budget or without a scorer, the publicly best is shown at no cost", async () => {
    const delegate = await consenting({ limits: { epsilon: 1, budget: { epsilon: 2, per: "day" } } });
    for (const epsilon of [1.5, 0.0001])
      expect(await delegate.choose(offered({ policy: { epsilon } }))).toMatchObject({ items: ["1"], epsilon: 0 });
    await delegate.choose(offered());
    await delegate.choose(offered());
    expect(await delegate.choose(offered())).toMatchObject({ items: ["1"], epsilon: 0, policy: { rule: "public" }, consented: true });
    expect((await delegate.selectionStatement()).left).toBe("0");
    now += DAY;
    expect(await delegate.choose(offered())).toMatchObject({ epsilon: 1 });
    for (const scorer of ["missing", "other"] as const) {
      place = `without ${scorer}`;
      server.scorer = scorer;
      expect(await (await consenting()).choose(offered())).toMatchObject({ items: ["1"], epsilon: 0 });
    }
  });

  test("the budget for offers covers any 24 hours: midnight does not renew it", async () => {
    const delegate = await consenting();
    const spend = async (count: number): Promise<number> => {
      const choices = await Promise.all(Array.from({ length: count }, () => delegate.choose(offered())));
      return choices.reduce((sum, choice) => sum + choice!.epsilon, 0);
    };
    now = Date.UTC(2026, 10, 17, 23, 59);
    expect(await spend(12)).toBe(10);
    now = Date.UTC(2026, 10, 18);
    expect(await spend(12)).toBe(0);
    expect(await delegate.selectionStatement()).toMatchObject({ spent: "10", renews: null, budget: { per: "day", sliding: true } });
    now = Date.UTC(2026, 10, 18, 23, 59);
    expect(await spend(12)).toBe(10);
  });

  test("unsupported policies are answered publicly: laplace, greedy, clipped scores", async () => {
    const delegate = await consenting();
    for (const policy of [
      { id: "laplace", bounding: "scaled" },
      { id: "greedy", epsilon: 0 },
      { id: "pf", bounding: "clipped", width: 1 },
      { id: "gumbel", bounding: "clipped", width: 1 },
    ]) {
      expect(await delegate.choose(offered({ policy }))).toMatchObject({ items: ["1"], epsilon: 0, policy: { rule: "public" } });
    }
    expect((await delegate.selectionStatement()).charges).toBe(0);
  });

  test("every supported rule chooses and is charged its cost", async () => {
    const delegate = await consenting();
    for (const [policy, epsilon] of [
      [{ id: "uniform", epsilon: 0 }, 0],
      [{ id: "public", epsilon: 0 }, 0],
      [{ id: "rr", d: 4 }, 0],
      [{ id: "rr", d: 2 }, 1],
      [{ id: "rr", slots: 3 }, 1],
      [{ id: "pf", bounding: "scaled" }, 1],
      [{ id: "gumbel", bounding: "scaled", slots: 4 }, 1],
      [{ id: "envelope", floors: [2 ** 30, 2 ** 30, 2 ** 29, 2 ** 29] }, 1],
    ] as const) {
      const choice = await delegate.choose(offered({ policy }));
      expect(choice).toMatchObject({ epsilon, policy: { rule: policy.id } });
      expect(new Set(choice!.items).size).toBe("slots" in policy ? policy.slots : 1);
    }
    expect((await delegate.selectionStatement()).spent).toBe("5");
  });

  test("offers that have expired, expire too late or belong to a batch give no fill and cost nothing", async () => {
    const delegate = await consenting();
    const seconds = Math.floor(now / 1000);
    for (const odd of [
      { expires: seconds },
      { expires: seconds - 5 },
      { expires: seconds + 32 * 86_400 },
      { batch: { id: "b", prices: [1, 2, 3, 4], key: "" } },
    ]) {
      expect(await delegate.choose(offered(odd))).toBeNull();
    }
    expect(await delegate.choose({ ...offered() })).toBeNull(); // a copy was not validated
    expect((await delegate.selectionStatement()).charges).toBe(0);
  });

  test("anything but a valid offer is no fill", async () => {
    const delegate = await consenting();
    expect(await delegate.offer()).toBeNull(); // 204
    for (const odd of [{}, [], 7, "offer", { ...offerOf(), price: 1 }]) {
      server.offers = [odd];
      expect(await delegate.offer()).toBeNull();
    }
    server.offers = [offerOf({}, now)];
    expect((await delegate.offer())!.candidates).toHaveLength(4);
  });

  test("all parts of the scorer are loaded once, at the first offer", async () => {
    const delegate = await opened();
    await delegate.offer();
    await delegate.offer();
    expect(server.seen.filter(({ path }) => path.includes("scorer")).map(({ path }) => path)).toEqual([
      "/v1/private-selection/scorer?part=0",
      "/v1/private-selection/scorer?part=1",
    ]);
  });

  test.each([
    [["a", "a"], true, 2],
    [["a", "b", "b", "b"], true, 4], // the model changed in between
    [["a", null, "b", "b"], true, 4],
    [["a", "gone", "b", "b"], true, 4], // the new model has fewer parts
    [["a", "b", "b", "c"], false, 4], // changed twice: no scorer until the next offer
    [[null, null], true, 2],
  ] as const)("parts of the scorer with the versions %j are one model: %s", async (versions, complete, requests) => {
    server.versions = [...versions];
    const delegate = await consenting({ noise: zeros });
    expect(server.seen.filter(({ path }) => path.includes("scorer"))).toHaveLength(requests);
    expect(await delegate.choose(offered())).toMatchObject(complete ? { items: ["5"], epsilon: 1 } : { items: ["1"], epsilon: 0 });
    await delegate.offer();
    expect(await delegate.choose(offered())).toMatchObject({ items: ["5"], epsilon: 1 });
  });

  test("a token finds its choice until a day after its offer expired, also after old displays were deleted", async () => {
    const delegate = await consenting();
    const offer = offered({ expires: Math.floor(now / 1000) + 600 });
    const choice = await delegate.choose(offer);
    now += 600_000 + 23 * 3_600_000;
    expect(await delegate.flush()).toBe(0); // deletes old displays
    await delegate.choose(offered()); // and so does this
    expect(choice).not.toBeNull();
    expect(await delegate.choose(offer)).toEqual(choice);
    now += 3_600_000 + 2_000;
    await delegate.flush();
    expect(await delegate.choose(offer)).toBeNull(); // a day and a second later the display is gone and the offer has expired
  });

  test("displays are deleted a day after their offers expired, charges are not", async () => {
    const delegate = await consenting();
    const offer = offered();
    await delegate.choose(offer);
    now += DAY + 700_000;
    expect(await delegate.choose(offered())).not.toBeNull(); // deletes old displays
    const again = { ...offerOf({ token: offer.token }, now) };
    expect(await delegate.choose(offerFromJSON(again))).toBeNull(); // the charge outlived its display: no second answer for one charge
  });
});

describe("reporting", () => {
  test("what was shown is reported exactly and once", async () => {
    const delegate = await consenting();
    const choice = (await delegate.choose(offered()))!;
    expect(await delegate.shown(choice)).toBe("ok");
    expect(await delegate.flush()).toBe(0);
    const sent = server.seen.filter(({ path }) => path.endsWith("/impressions")).map(({ body }) => new TextDecoder().decode(body!));
    expect(sent).toEqual([`{"version":1,"token":"${choice.token}","items":["${choice.items[0]}"]}`]);
    expect(await delegate.shown(choice)).toBe("duplicate");
  });

  test.each([429, 408, 500, 503, "network"] as const)(
    "after %s the report stays pending, survives a restart and is sent again with the same bytes",
    async (failing) => {
      const delegate = await consenting();
      const choice = (await delegate.choose(offered()))!;
      server.failing = failing;
      expect(await delegate.shown(choice)).toBe("pending");
      expect(await delegate.flush()).toBe(1);
      delegate.close();
      const again = await opened();
      expect(await again.flush()).toBe(1);
      server.failing = null;
      expect(await again.flush()).toBe(0);
      expect(await again.flush()).toBe(0);
      const sent = server.seen.filter(({ path }) => path.endsWith("/impressions")).map(({ body }) => String(body));
      expect([sent.length, new Set(sent).size]).toEqual([4, 1]);
      expect(server.impressions.get(choice.token)).toBe(JSON.stringify(choice.items));
    },
  );

  test.each([
    ["a gateway's page", () => new Response("<html>Forbidden</html>", { status: 403, headers: { "Content-Type": "text/html" } })],
    ["a code in plain JSON", () => problem("forbidden", 403, "application/json")],
    ["a problem without a stable code", () => problem("No <b>entry</b>", 404)],
    ["a problem whose code is not a text", () => problem(7, 404)],
    ["a page with status 200", () => new Response("<html>Sign in</html>", { headers: { "Content-Type": "text/html" } })],
    ["an empty 204", () => new Response(null, { status: 204 })],
  ])("%s is not an answer: the report stays pending until the server answers", async (_, answer) => {
    const delegate = await consenting();
    const choice = (await delegate.choose(offered()))!;
    server.failing = answer();
    expect(await delegate.shown(choice)).toBe("pending");
    expect(await delegate.flush()).toBe(1);
    server.failing = null;
    expect(await delegate.flush()).toBe(0);
    expect(server.impressions.get(choice.token)).toBe(JSON.stringify(choice.items));
  });

  test("an outcome or the server's own refusal is final", async () => {
    const delegate = await consenting();
    for (const outcome of ["ok", "duplicate", "conflict", "unknown", "expired"]) {
      server.outcome = outcome;
      expect(await delegate.shown((await delegate.choose(offered()))!)).toBe(outcome);
    }
    server.outcome = "nonsense";
    expect(await delegate.shown((await delegate.choose(offered()))!)).toBe("pending");
    server.outcome = null;
    for (const refusal of [422, problem("not-found", 404, "application/problem+json; charset=utf-8")]) {
      server.failing = refusal;
      expect(await delegate.shown((await delegate.choose(offered()))!)).toBe("refused");
    }
    server.failing = null;
    expect(await delegate.flush()).toBe(0);
  });

  test("a choice that was not made here cannot be reported", async () => {
    const delegate = await consenting();
    const choice = (await delegate.choose(offered()))!;
    await expect(delegate.shown({ ...choice, token: "f".repeat(32) })).rejects.toThrow(TacitError);
    await delegate.shown({ ...choice, items: ["9", "2"] }); // the written choice counts, not the argument
    expect(server.impressions.get(choice.token)).toBe(JSON.stringify(choice.items));
    const after = await delegate.choose(offered());
    expect(await delegate.flush()).toBe(0); // chosen but not shown, so not reported
    expect(server.impressions.has(after!.token)).toBe(false);
  });

  test("each server has its own budget", async () => {
    const delegate = await consenting();
    await delegate.choose(offered());
    const other = await opened({ server: "http://other.test" });
    expect((await other.selectionStatement()).spent).toBe("0");
    expect((await delegate.selectionStatement()).spent).toBe("1");
  });
});
