// Where a time stands on a line: from 0 to 1 over all of it.

/** Time as it passed. */
export function even(from, to) {
  const whole = Math.max(1, to - from);
  return {
    at: (time) => (time - from) / whole,
    time: (part) => from + part * whole,
  };
}

/** Every moment at which something happened is as far from the next as any other: days of waiting take no more room than a step. */
export function eventful(moments) {
  const all = [...new Set(moments)].sort((a, b) => a - b);
  const steps = Math.max(1, all.length - 1);
  const before = (time) => {
    let low = 0, high = all.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (all[middle] <= time) low = middle;
      else high = middle - 1;
    }
    return low;
  };
  return {
    at(time) {
      const i = before(time);
      const next = all[i + 1];
      if (next === undefined || time <= all[i]) return i / steps;
      return (i + (time - all[i]) / (next - all[i])) / steps;
    },
    time(part) {
      const i = Math.min(all.length - 1, Math.max(0, Math.floor(part * steps)));
      const next = all[i + 1] ?? all[i];
      return all[i] + (part * steps - i) * (next - all[i]);
    },
  };
}

const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 108e5, 216e5, 432e5, 864e5, 1728e5, 6048e5];

/** So many marks at most between two times, at round distances from the beginning. */
export function marks(from, to, origin, most) {
  const step = STEPS.find((step) => (to - from) / step <= most) ?? Math.ceil((to - from) / most / 864e5) * 864e5;
  const first = origin + Math.ceil((from - origin) / step) * step;
  const found = [];
  for (let at = first; at <= to && found.length <= most; at += step) found.push(at);
  return found;
}
