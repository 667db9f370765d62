// What goes on, by server-sent events. A browser has few connections to a host, and each stream holds one: so only the page that
// somebody looks at listens, and one that comes back asks for everything that it missed.

import { path } from './api.js';
import { useEffect, useState } from './lib.js';

const AGAIN = 3000;

/** Listens while the page is seen, and comes again after a failure. Gives what ends it. */
export function listen(address, on, state = () => {}) {
  let source, timer;
  const stop = () => {
    clearTimeout(timer);
    source?.close();
    source = undefined;
  };
  const end = () => {
    document.removeEventListener('visibilitychange', start);
    stop();
  };
  const start = () => {
    stop();
    if (document.hidden) return;
    source = new EventSource(address());
    source.onopen = () => state(true);
    source.onerror = () => {
      state(false);
      // A browser comes again by itself unless it was refused.
      if (source?.readyState === EventSource.CLOSED) timer = setTimeout(start, AGAIN);
    };
    for (const [name, take] of Object.entries(on)) {
      source.addEventListener(name, (event) => take(JSON.parse(event.data)));
    }
  };
  document.addEventListener('visibilitychange', start);
  start();
  return end;
}

// What the whole page shares: the counts, and whether they are of now.
const shared = { counts: undefined, connected: undefined };
const watchers = new Set();
const tell = (changed) => {
  for (const watcher of [...watchers]) watcher(changed);
};

/** Begins to listen for changes. Once. */
export function begin() {
  listen(
    () => path(['changes']),
    {
      changed(counts) {
        shared.counts = counts;
        tell(true);
      },
    },
    (connected) => {
      if (shared.connected === connected) return;
      shared.connected = connected;
      tell(false);
    },
  );
}

/** How many runs there are, as of now. */
export function useShared() {
  const [, redraw] = useState(0);
  useEffect(() => {
    const watcher = () => redraw((n) => n + 1);
    watchers.add(watcher);
    watcher();
    return () => watchers.delete(watcher);
  }, []);
  return shared;
}

/** Calls back when something has changed, but again only when the last call is over. */
export function useChanged(act, inputs) {
  useEffect(() => {
    let busy = false, again = false, over = false;
    const watcher = async (changed) => {
      if (!changed) return;
      again = true;
      if (busy) return;
      busy = true;
      while (again && !over) {
        again = false;
        await act();
        await new Promise((later) => setTimeout(later, 250));
      }
      busy = false;
    };
    watchers.add(watcher);
    return () => {
      over = true;
      watchers.delete(watcher);
    };
  }, inputs);
}

/** Now, every so many milliseconds. */
export function useNow(every = 1000) {
  const [now, set] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => document.hidden || set(Date.now()), every);
    return () => clearInterval(timer);
  }, [every]);
  return now;
}
