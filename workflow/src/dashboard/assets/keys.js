// The keyboard. Whoever is on the page says what its keys do; the newest says so first.

import { useEffect, useRef } from './lib.js';

const layers = [];

const typing = (target) => target.closest?.('input, textarea, select, [contenteditable]');

document.addEventListener('keydown', (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  const inField = typing(event.target);
  // A dialog has its own keys, and the browser ends it.
  if (document.querySelector('dialog[open]')) return;
  if (inField && event.key !== 'Escape') return;
  if (inField) {
    event.target.blur();
    event.preventDefault();
    return;
  }
  // Enter and space press what has the focus.
  const pressed = (event.key === 'Enter' || event.key === ' ') && event.target.closest?.('button, a, summary, [role=tab]');
  if (pressed) return;
  for (let at = layers.length - 1; at >= 0; at -= 1) {
    const act = layers[at].current[event.key];
    if (act && act(event) !== false) {
      event.preventDefault();
      return;
    }
  }
});

/** While this part is on the page, these keys do this. One that gives `false` did nothing, and the next is asked. */
export function useKeys(keys) {
  const current = useRef(keys);
  current.current = keys;
  useEffect(() => {
    layers.push(current);
    return () => layers.splice(layers.indexOf(current), 1);
  }, []);
}

/** What the keys do, for whoever asks. */
export const HELP = [
  ['Everywhere', [
    ['?', 'this list'],
    ['t', 'light, dark, or as the system has it'],
    ['g', 'to the runs'],
    ['esc', 'leave a field, close what is open, go back'],
  ]],
  ['Runs', [
    ['/', 'search by id'],
    ['j  k', 'next, previous'],
    ['enter', 'open'],
    ['f', 'those that failed or are parked'],
    ['o', 'newest or oldest first'],
  ]],
  ['A run', [
    ['1 2 3 4', 'timeline, graph, records, guide'],
    ['j  k', 'next, previous'],
    ['enter', 'look into it, or fold it'],
    ['+  −  0', 'zoom in, out, all of it'],
    ['/', 'search in the records'],
  ]],
];
