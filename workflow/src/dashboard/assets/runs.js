// All runs: which, in which order, and what each is doing.

import { Start } from './actions.js';
import { get } from './api.js';
import { brief, count, duration, words } from './format.js';
import { useKeys } from './keys.js';
import { html, useCallback, useEffect, useMemo, useRef, useState } from './lib.js';
import { List, listKeys } from './list.js';
import { useChanged, useNow, useShared } from './live.js';
import { Ago, isFinal, State, STATES, Trouble } from './parts.js';

const ROW = 30;
const PAGE = 200;
const MOST = 1000;
const SPANS = [['', 'any time'], ['900000', 'last 15 min'], ['3600000', 'last hour'], ['86400000', 'last day'], ['604800000', 'last week']];

/** What the address says is to be seen. */
function filterOf(query) {
  const states = (query.get('state') ?? '').split(',').filter((state) => STATES.includes(state));
  return { states, text: query.get('id') ?? '', workflow: query.get('workflow') ?? '', span: query.get('span') ?? '', order: query.get('order') === 'oldest' ? 'oldest' : 'newest' };
}

function addressOf(filter) {
  const query = new URLSearchParams();
  if (filter.states.length) query.set('state', filter.states.join(','));
  if (filter.text) query.set('id', filter.text);
  if (filter.workflow) query.set('workflow', filter.workflow);
  if (filter.span) query.set('span', filter.span);
  if (filter.order === 'oldest') query.set('order', 'oldest');
  return `#/runs${query.size ? `?${query}` : ''}`;
}

const asked = (filter) => ({
  state: filter.states.join(','),
  id_contains: filter.text,
  workflow: filter.workflow,
  order: filter.order,
  changed_from: filter.span ? Date.now() - Number(filter.span) : undefined,
});

/** Reads until there are so many, or no more: a page may be short and yet not the last. */
async function read(filter, limit, cursor, signal) {
  let runs = [], next = cursor;
  do {
    const page = await get(['runs'], { ...asked(filter), limit: Math.min(MOST, limit - runs.length), cursor: next }, signal);
    runs = runs.concat(page.runs);
    next = page.next;
  } while (next && runs.length < limit);
  return { runs, next };
}

function useRuns(filter) {
  const key = addressOf(filter);
  const [found, set] = useState({ runs: [], next: undefined, loading: true });
  const now = useRef();
  now.current = { ...found, filter, key };
  const busy = useRef(false);

  const load = useCallback(async (signal) => {
    const { filter, key } = now.current;
    try {
      const first = await read(filter, PAGE, undefined, signal);
      if (now.current.key === key) set({ ...first, loading: false });
    } catch (problem) {
      if (problem.name !== 'AbortError') set((was) => ({ ...was, loading: false, problem }));
    }
  }, []);

  useEffect(() => {
    const over = new AbortController();
    set((was) => ({ ...was, loading: true, problem: undefined }));
    load(over.signal);
    return () => over.abort();
  }, [key]);

  // What is at the top is read anew; what was read further down stays as it was read.
  useChanged(async () => {
    const { filter, key, runs, loading } = now.current;
    if (loading) return;
    try {
      const fresh = await read(filter, Math.min(MOST, Math.max(PAGE, runs.length)), undefined);
      if (now.current.key !== key) return;
      set((was) => {
        if (was.runs.length <= fresh.runs.length || !fresh.next) return { ...fresh, loading: false };
        const ids = new Set(fresh.runs.map((run) => run.id));
        return { ...was, problem: undefined, runs: fresh.runs.concat(was.runs.slice(fresh.runs.length).filter((run) => !ids.has(run.id))) };
      });
    } catch (problem) {
      if (now.current.key === key) set((was) => ({ ...was, problem }));
    }
  }, []);

  const more = useCallback(async () => {
    const { filter, key, next, loading } = now.current;
    if (!next || loading || busy.current) return;
    busy.current = true;
    try {
      const page = await read(filter, PAGE, next);
      if (now.current.key === key) {
        set((was) => {
          const ids = new Set(was.runs.map((run) => run.id));
          return { ...was, next: page.next, runs: was.runs.concat(page.runs.filter((run) => !ids.has(run.id))) };
        });
      }
    } catch (problem) {
      set((was) => ({ ...was, problem }));
    } finally {
      busy.current = false;
    }
  }, []);

  return { ...found, more, load };
}

export function Runs({ query, go, remember }) {
  const filter = useMemo(() => filterOf(query), [String(query)]);
  const change = (part) => go(addressOf({ ...filter, ...part }), true);
  const { runs, next, loading, problem, more, load } = useRuns(filter);
  const shared = useShared();
  const [selectedId, setSelected] = useState(remember.current.selected);
  const selected = runs.findIndex((run) => run.id === selectedId);
  const select = (index) => {
    remember.current.selected = runs[index]?.id;
    setSelected(runs[index]?.id);
  };
  const open = (index) => go(`#/run/${encodeURIComponent(runs[index].id)}`);
  const search = useRef();
  const [described, setDescribed] = useState({ workflows: [], may_start: [] });
  const [starting, setStarting] = useState(false);
  useEffect(() => {
    get(['workflows']).then(setDescribed, () => {});
  }, []);
  const workflows = [...new Set([...described.workflows, ...Object.keys(shared.counts?.workflows ?? {}), ...(filter.workflow ? [filter.workflow] : [])])].sort();
  const bad = filter.states.join() === 'parked,failed';

  useKeys({
    ...listKeys(runs.length, selected, select, open),
    '/': () => search.current.focus(),
    f: () => change({ states: bad ? [] : ['parked', 'failed'] }),
    o: () => change({ order: filter.order === 'newest' ? 'oldest' : 'newest' }),
    Escape: () => (addressOf(filter) === '#/runs' ? false : go('#/runs', true)),
  });

  const of = filter.workflow ? shared.counts?.workflows[filter.workflow] ?? {} : shared.counts?.states;
  const toggle = (state) => change({ states: filter.states.includes(state) ? filter.states.filter((is) => is !== state) : STATES.filter((is) => is === state || filter.states.includes(is)) });

  const columns = html`<div class="columns" aria-hidden="true">
    <span>State</span><span>Id</span><span class="c-workflow">Workflow</span><span class="c-what">What</span><span class="c-records num">Records</span><span class="c-took num">Took</span><span class="num">Changed</span>
  </div>`;

  return html`<main class="runs">
    <div class="tools" role="search">
      <label class="search"><span class="hidden">Search by id</span>
        <input ref=${search} type="search" placeholder="Search by id  ( / )" value=${filter.text} spellcheck=${false} autocomplete="off" onInput=${(event) => change({ text: event.target.value })} />
      </label>
      <label><span class="hidden">Workflow</span>
        <select value=${filter.workflow} onChange=${(event) => change({ workflow: event.target.value })}>
          <option value="">all workflows</option>
          ${workflows.map((name) => html`<option key=${name} value=${name} selected=${name === filter.workflow}>${name}</option>`)}
        </select>
      </label>
      <label><span class="hidden">Last changed</span>
        <select value=${filter.span} onChange=${(event) => change({ span: event.target.value })}>
          ${SPANS.map(([span, says]) => html`<option key=${span} value=${span} selected=${span === filter.span}>${says}</option>`)}
        </select>
      </label>
      <button type="button" class="quiet" aria-pressed=${filter.order === 'oldest' ? 'true' : 'false'} onClick=${() => change({ order: filter.order === 'newest' ? 'oldest' : 'newest' })}>
        ${filter.order === 'newest' ? 'newest first ↓' : 'oldest first ↑'}
      </button>
      ${described.may_start.length > 0 && html`<button type="button" class="start" onClick=${() => setStarting(true)}>Start a run…</button>`}
    </div>
    <div class="chips" role="group" aria-label="States">
      ${STATES.map(
        (state) => html`<button type="button" key=${state} class="chip" data-state=${state} aria-pressed=${filter.states.includes(state) ? 'true' : 'false'} onClick=${() => toggle(state)}>
          <i aria-hidden="true"></i>${words(state)} <small>${of ? count(of[state] ?? 0) : '…'}</small></button>`,
      )}
    </div>
    ${problem && html`<${Trouble} problem=${problem} again=${() => load()} />`}
    <${List} items=${runs} height=${ROW} label="Runs" columns=${columns} selected=${selected} select=${select} open=${open} nearEnd=${more}
      row=${(run) => html`<${Row} run=${run} />`}
      foot=${html`<p class="foot" aria-live="polite">${
        loading ? 'reading…' : runs.length === 0 ? (problem ? '' : 'no run fits') : next ? `${count(runs.length)} read, more below` : `${count(runs.length)} ${runs.length === 1 ? 'run' : 'runs'}`
      }</p>`} />
    ${starting && html`<${Start} workflows=${described.may_start} close=${() => setStarting(false)} done=${(id) => go(`#/run/${encodeURIComponent(id)}`)} />`}
  </main>`;
}

function Row({ run }) {
  const href = `#/run/${encodeURIComponent(run.id)}`;
  return html`<${State} state=${run.state} />
    <a class="id" href=${href} tabindex="-1" title=${run.id}>${run.id}</a>
    <span class="c-workflow">${run.workflow}</span>
    <span class="c-what dim"><${What} run=${run} /></span>
    <span class="c-records num">${count(run.records)}</span>
    <span class="c-took num">${run.finished_at ? duration(run.finished_at - run.created_at) : ''}</span>
    <span class="num"><${Ago} at=${run.updated_at} /></span>`;
}

/** What a run waits for, or why it does not go on. */
export function What({ run }) {
  const now = useNow(1000);
  if (run.parked) return html`<b class="bad">${words(run.parked.reason)}</b> ${run.parked.detail.split('\n')[0]}`;
  const waits = [];
  if (run.waits_for?.length) waits.push(`for ${run.waits_for.join(', ')}`);
  if (run.wake_at && !isFinal(run.state)) waits.push(run.wake_at > now ? `for ${duration(Math.ceil((run.wake_at - now) / 1000) * 1000)} more` : 'its time has come');
  if (waits.length === 0 && run.progress !== undefined) return brief(run.progress);
  return waits.join(', or ');
}
