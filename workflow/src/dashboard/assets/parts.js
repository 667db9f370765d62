// Small parts that every page has.

import { ago, instant, precise, words } from './format.js';
import { html, useEffect, useRef, useState } from './lib.js';
import { useNow } from './live.js';

/** All states of a run, in the order of its life. */
export const STATES = ['pending', 'running', 'waiting', 'rolling_back', 'parked', 'completed', 'failed', 'cancelled'];
export const isFinal = (state) => state === 'completed' || state === 'failed' || state === 'cancelled';

/** A state: a dot and a word, so that colour is never all that tells. */
export function State({ state }) {
  return html`<span class="state" data-state=${state}><i aria-hidden="true"></i>${words(state)}</span>`;
}

/** A time: how long ago, and exactly when one points at it. */
export function Ago({ at, every }) {
  const now = useNow(every);
  return html`<time datetime=${iso(at)} title=${precise(at)}>${ago(at, now)}</time>`;
}

export function At({ at }) {
  return html`<time datetime=${iso(at)} title=${precise(at)}>${instant(at)}</time>`;
}

const iso = (at) => (Math.abs(at) < 8.64e15 ? new Date(at).toISOString() : '');

/** What went wrong, and a way to try again. */
export function Trouble({ problem, again }) {
  return html`<div class="trouble" role="alert">
    <strong>${problem.title ?? 'that did not work'}</strong>
    <span>${problem.message}</span>
    ${again && html`<button type="button" onClick=${again}>Try again</button>`}
  </div>`;
}

/** Copies a text, and says so. */
export function Copy({ text, label }) {
  const [done, set] = useState(false);
  const copy = async () => {
    await navigator.clipboard?.writeText(text);
    set(true);
    setTimeout(() => set(false), 1200);
  };
  return html`<button type="button" class="quiet small" onClick=${copy} aria-label=${label ?? 'Copy'}>
    <span aria-live="polite">${done ? 'copied' : 'copy'}</span>
  </button>`;
}

/** A value as JSON, in colours; long texts and lists can be folded open. */
export function Json({ value }) {
  if (value === undefined) return html`<span class="dim">nothing</span>`;
  const text = JSON.stringify(value, null, 2);
  return html`<div class="json">
    <pre tabindex="0" aria-label="value">${text.length > 40_000 ? text.slice(0, 40_000) : tokens(text)}</pre>
    ${text.length > 40_000 && html`<p class="dim">The first 40,000 of ${text.length} characters; all of it is copied.</p>`}
    <${Copy} text=${text} label="Copy the value" />
  </div>`;
}

const TOKEN = /("(?:\\.|[^"\\])*")(\s*:)?|\b(true|false|null)\b|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)/g;

function tokens(text) {
  const out = [];
  let from = 0;
  for (const found of text.matchAll(TOKEN)) {
    if (found.index > from) out.push(text.slice(from, found.index));
    const kind = found[2] ? 'key' : found[1] ? 'text' : found[3] ? 'word' : 'number';
    out.push(html`<span class=${kind}>${found[1] ?? found[0]}</span>${found[2] ?? ''}`);
    from = found.index + found[0].length;
  }
  out.push(text.slice(from));
  return out;
}

/** A window over the page; esc and its button close it. What was looked at before has the focus again then. */
export function Dialog({ title, close, children, wide }) {
  const dialog = useRef();
  useEffect(() => {
    const before = document.activeElement;
    dialog.current.showModal();
    return () => before?.focus?.();
  }, []);
  const outside = (event) => event.target === dialog.current && close();
  return html`<dialog ref=${dialog} class=${wide ? 'wide' : ''} aria-labelledby="dialog-title" onClose=${close} onMouseDown=${outside}>
    <div class="sheet">
      <h2 id="dialog-title">${title}</h2>
      ${children}
    </div>
  </dialog>`;
}

/** Tabs: arrows go from one to the next, as screen readers say they do. */
export function Tabs({ tabs, at, go, label }) {
  const row = useRef();
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = tabs[(tabs.findIndex((tab) => tab.key === at) + step + tabs.length) % tabs.length];
    go(next.key);
    row.current.querySelector(`[data-tab="${next.key}"]`)?.focus();
    event.preventDefault();
  };
  return html`<div class="tabs" role="tablist" aria-label=${label} ref=${row} onKeyDown=${move}>
    ${tabs.map(
      (tab) => html`<button type="button" role="tab" key=${tab.key} id=${`tab-${tab.key}`} data-tab=${tab.key} aria-selected=${tab.key === at ? 'true' : 'false'}
        aria-controls="panel" tabindex=${tab.key === at ? 0 : -1} onClick=${() => go(tab.key)}>${tab.label}${tab.count !== undefined && html` <small>${tab.count}</small>`}</button>`,
    )}
  </div>`;
}
