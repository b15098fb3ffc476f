// Puts databases back as version 0.1.0 left them, then goes on in them with the delegate of this page. Returns, as JSON, what it answers.
// Bytes stand in JSON as {"Uint8Array": hexadecimal digits}.
async ({ fixture, sessions }) => {
  const bytesOf = (digits) => Uint8Array.from(digits.match(/../g) ?? [], (pair) => parseInt(pair, 16));
  const digitsOf = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  const { databases, served } = JSON.parse(fixture, (_, value) => (value?.Uint8Array === undefined ? value : bytesOf(value.Uint8Array)));

  const restore = ({ name, version, stores }) =>
    new Promise((resolve, reject) => {
      const request = indexedDB.open(name, version);
      request.onupgradeneeded = () => {
        for (const { name, keyPath, autoIncrement, indexes, records } of stores) {
          const store = request.result.createObjectStore(name, { keyPath, autoIncrement });
          for (const { name, keyPath, unique, multiEntry } of indexes) store.createIndex(name, keyPath, { unique, multiEntry });
          for (const { value } of records) store.add(value); // its key is in it
        }
      };
      request.onsuccess = () => resolve(request.result.close());
      request.onerror = () => reject(request.error);
    });

  const { Delegate, offerFromJSON, systemNoise, TacitError } = await import("/web/delegate.js");
  const [json, binary] = ["application/json", "application/vnd.tacit"].map((type) => ({ headers: { "Content-Type": type } }));

  const play = async ({ opened: { caveat = null, ...options }, steps }) => {
    let step = steps[0];
    let offer = null;
    let posted = [];
    const fetch = async (url, { body }) => {
      const { pathname } = new URL(url);
      if (pathname === "/v1/catalogue") return new Response(JSON.stringify(served.catalogue), json);
      if (pathname === "/v1/private-selection/scorer") return new Response(served.scorer, binary);
      if (pathname === "/v1/private-selection/offers") return new Response(JSON.stringify(offer), json);
      posted.push(new TextDecoder().decode(body));
      if (step.unreachable) throw new TypeError("the network is down");
      return new Response('{"outcome":"ok"}', json);
    };
    const draw = (count) => {
      if (step.noiseless) throw new TacitError("system-noise-unavailable", "there is no noise.");
      return systemNoise.draw(count);
    };
    const clock = () => Date.parse(step.at);
    let delegate;
    const chosen = new Map();
    // What is drawn in a step is chance. Its answer is compared without that.
    const doing = {
      open: async () => void (delegate = await Delegate.open({ ...options, fetch, clock, noise: { caveat, draw } })),
      rate: () => step.ratings.forEach(([item, value]) => delegate.rate(item, value)),
      ask: async () => {
        const { from, signal } = await delegate.ask(step.eta);
        return step.draws ? { from } : { from, signal: { Uint8Array: digitsOf(signal.toBytes()) } };
      },
      choose: async () => {
        const { token, policy } = step;
        const items = served.catalogue.ids.slice(0, policy.m).map(String);
        const candidates = items.map((item, place) => ({ item, bid: 1_000_000, public_score: (9 - place) / 10 }));
        offer = { version: 1, token, expires: clock() / 1000 + 600, policy, candidates, batch: null };
        const choice = await delegate.choose((await delegate.offer()) ?? offerFromJSON(null));
        chosen.set(token, choice);
        return choice === null || !step.draws ? choice : { ...choice, items: choice.items.length };
      },
      shown: () => delegate.shown(chosen.get(step.token)),
    };
    const answers = [];
    for (step of steps) {
      posted = [];
      const answer = {};
      try {
        answer.said = (await (doing[step.do] ?? (() => delegate[step.do]()))()) ?? null;
      } catch (problem) {
        answer.refused = problem.code ?? String(problem);
      }
      if (posted.length > 0) answer.posted = step.draws ? posted.length : posted;
      answers.push(answer);
    }
    delegate?.close();
    return answers;
  };

  for (const database of databases) await restore(database);
  const answers = [];
  for (const session of sessions) answers.push(await play(session));
  return JSON.stringify(answers);
};
