// A run over time: a row for each location, what lies in a branch in the lane of that branch.

import { duration, precise } from './format.js';
import { useKeys } from './keys.js';
import { html, useEffect, useMemo, useRef, useState } from './lib.js';
import { List, listKeys } from './list.js';
import { useNow } from './live.js';
import { isFinal } from './parts.js';
import { even, eventful, marks } from './scale.js';
import { seen } from './spans.js';

const ROW = 26;
const CLOSEST = 1e-6;
const GLYPHS = { step: '▪', sleep: '◔', recv: '✉', child: '↳', join: '⇉', race: '⇥', join_all: '⇶', loop: '↻', branch: '┆', item: '·', send: '➤', reply: '➤', attempt: '⛨', checkpoint: '⚑', version: 'v', now: '◷', stage: '▣', fragment: '❑' };

export function Timeline({ run, spans, at, select, whole }) {
  const goesOn = !isFinal(run.state) && spans.roots.some((of) => of.goesOn);
  const now = useNow(goesOn ? 500 : 60_000);
  const end = Math.max(spans.last, spans.began + 1, run.finished_at ?? 0, isFinal(run.state) ? 0 : run.parked ? run.updated_at : now);
  const [byTime, setByTime] = useState(true);
  const [window_, setWindow] = useState([0, 1]);
  const [folded, setFolded] = useState(new Set());
  const scale = useMemo(() => (byTime ? even(spans.began, end) : eventful([...spans.moments, end])), [byTime, spans, end]);
  const rows = useMemo(() => seen(spans.roots, folded), [spans, folded]);
  const selected = rows.findIndex((of) => of.key === at);
  const lanes = useRef();

  const [from, to] = window_;
  const zoom = (by, around = 0.5) => {
    const width = Math.min(1, Math.max(CLOSEST, (to - from) / by));
    const middle = from + (to - from) * around;
    const first = Math.min(1 - width, Math.max(0, middle - width * around));
    setWindow([first, first + width]);
  };
  const pan = (by) => {
    const width = to - from;
    const first = Math.min(1 - width, Math.max(0, from + by * width));
    setWindow([first, first + width]);
  };
  const fold = (key) => {
    const next = new Set(folded);
    if (!next.delete(key)) next.add(key);
    setFolded(next);
  };
  const open = (index) => {
    const of = rows[index];
    if (of.key === at && of.under.length) fold(of.key);
    else select(of.key);
  };
  useKeys({
    ...listKeys(rows.length, selected, (index) => select(rows[index].key), open),
    '+': () => zoom(1.6),
    '=': () => zoom(1.6),
    '-': () => zoom(1 / 1.6),
    0: () => setWindow([0, 1]),
    ArrowLeft: () => pan(-0.2),
    ArrowRight: () => pan(0.2),
  });
  useWheel(lanes, zoom, pan, window_);

  const part = (time) => ((scale.at(time) - from) / (to - from)) * 100;
  const origin = spans.began;
  const shownFrom = scale.time(from), shownTo = scale.time(to);
  const most = Math.max(2, Math.min(8, Math.floor(innerWidth / 160)));
  const ticks = byTime ? marks(shownFrom, shownTo, origin, most) : Array.from({ length: most }, (_, n) => scale.time(from + (n / most) * (to - from)));

  const axis = html`<div class="axis">
    <span class="name">${duration(spans.last - spans.began)} in all</span>
    <div class="lane" aria-hidden="true">${ticks.map((tick, n) => html`<span key=${n} class="tick" style=${{ left: `${part(tick)}%` }}>+${duration(tick - origin)}</span>`)}</div>
  </div>`;

  return html`<div class="timeline" ref=${lanes}>
    <div class="tools thin">
      <button type="button" class="quiet" onClick=${() => zoom(1.6)} aria-label="Zoom in">+</button>
      <button type="button" class="quiet" onClick=${() => zoom(1 / 1.6)} aria-label="Zoom out">−</button>
      <button type="button" class="quiet" onClick=${() => setWindow([0, 1])}>all</button>
      <button type="button" class="quiet" aria-pressed=${byTime ? 'false' : 'true'} onClick=${() => { setByTime(!byTime); setWindow([0, 1]); }}
        title="Draws every moment at which something happened as far from the next, so that long waits take no room">squeeze waits</button>
      <span class="legend dim" aria-hidden="true"><i class="part" data-kind="run"></i>runs <i class="part" data-kind="wait"></i>waits <i class="part" data-kind="backoff"></i>until the next attempt <i class="part" data-kind="failed"></i>failed</span>
      <span class="dim range">${precise(shownFrom)} + ${duration(shownTo - shownFrom)}</span>
    </div>
    ${rows.length === 0
      ? html`<p class="empty">${whole ? 'Nothing durable has ended yet: a step leaves a record when it has.' : 'reading…'}</p>`
      : html`<${List} items=${rows} height=${ROW} label="Timeline" id="span" columns=${axis} selected=${selected} select=${(index) => select(rows[index].key)} open=${() => {}}
          row=${(of) => html`<${Row} of=${of} part=${part} now=${end} folded=${folded.has(of.key)} fold=${() => fold(of.key)} />`} />`}
  </div>`;
}

function Row({ of, part, now, folded, fold }) {
  const lane = laneOf(of);
  const tail = of.goesOn ? now : of.last;
  const took = `${of.note ? `${of.note} · ` : ''}${duration(tail - of.began)}`;
  const scope = of.under.length > 0;
  return html`
    <span class="name" style=${{ paddingLeft: `${8 + of.depth * 14}px` }} title=${of.key}>
      ${scope
        ? html`<button type="button" class="fold" tabindex="-1" aria-label=${`${folded ? 'Unfold' : 'Fold'} ${of.name}`} onClick=${(event) => { event.stopPropagation(); fold(); }}>${folded ? '▸' : '▾'}</button>`
        : html`<span class="fold"></span>`}
      <span class="glyph" aria-hidden="true">${GLYPHS[of.kind] ?? '▪'}</span>
      <span class="word">${of.name}</span>
      <small class="dim">${of.kind && of.kind !== 'branch' && of.kind !== 'item' ? of.kind.replaceAll('_', ' ') : ''}${of.attempts > 1 ? ` ×${of.attempts}` : ''}</small>
      ${of.state && of.state !== 'done' && html`<small class="is" data-is=${of.state}>${of.state}</small>`}
    </span>
    <div class="lane" data-lane=${lane} title=${took}>
      ${scope && bar(part(of.began), part(tail), 'scope', 'scope', of.goesOn)}
      ${of.parts.map((one, n) => bar(part(one.from), part(one.to ?? Math.max(now, one.from)), n, of.state === 'lost' ? 'lost' : one.kind, one.to === undefined && of.goesOn))}
      ${of.marks.map((mark, n) => {
        const at = part(mark.at);
        return at < -1 || at > 101 ? null : html`<i key=${`m${n}`} class="mark" data-kind=${mark.kind} style=${{ left: `${at}%` }}></i>`;
      })}
    </div>`;
}

function bar(from, to, key, kind, goesOn) {
  if (to < 0 || from > 100) return null;
  const left = Math.max(-1, from), right = Math.min(101, to);
  return html`<i key=${key} class="part" data-kind=${kind} data-on=${goesOn ? 'yes' : undefined} style=${{ left: `${left}%`, width: `${Math.max(0, right - left)}%` }}></i>`;
}

/** The lane that a span lies in: that of the branch nearest above. */
function laneOf(of) {
  for (let at = of; at; at = at.above) if (at.lane !== undefined) return at.lane % 4;
  return undefined;
}

/** With ctrl, or two fingers that spread, the wheel zooms around the pointer; sideways it moves. */
function useWheel(box, zoom, pan, inputs) {
  useEffect(() => {
    const turn = (event) => {
      const lane = box.current.querySelector('.axis .lane')?.getBoundingClientRect();
      if (!lane) return;
      if (event.ctrlKey || event.metaKey) {
        const around = Math.min(1, Math.max(0, (event.clientX - lane.left) / lane.width));
        zoom(Math.exp(-event.deltaY / 200), around);
      } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) {
        pan((event.deltaX || event.deltaY) / lane.width);
      } else return;
      event.preventDefault();
    };
    box.current.addEventListener('wheel', turn, { passive: false });
    return () => box.current?.removeEventListener('wheel', turn);
  }, inputs);
}
