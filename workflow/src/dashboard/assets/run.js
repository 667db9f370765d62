// One run: what it is doing, what can be done, and its history in four views.

import { Actions } from './actions.js';
import { get, history, path } from './api.js';
import { brief, duration, failed, place } from './format.js';
import { Graph } from './graph.js';
import { Guide } from './guide.js';
import { Chain, Inspector } from './inspector.js';
import { useKeys } from './keys.js';
import { html, useCallback, useEffect, useMemo, useRef, useState } from './lib.js';
import { listen, useChanged, useNow } from './live.js';
import { Ago, Copy, isFinal, State, Tabs, Trouble } from './parts.js';
import { Parked } from './parked.js';
import { Records } from './records.js';
import { What } from './runs.js';
import { spansOf, stopAll } from './spans.js';
import { Timeline } from './timeline.js';

/** A run's row, and its records as they come. */
function useRun(id) {
  const [run, setRun] = useState();
  const [records, setRecords] = useState([]);
  const [problem, setProblem] = useState();
  const [whole, setWhole] = useState(false);
  const last = useRef(0);
  const generation = useRef();
  // What ends the stream, while there is one; and whether all that was there was read.
  const follows = useRef();
  const read = useRef(false);
  const leave = useCallback(() => {
    follows.current?.();
    follows.current = undefined;
  }, []);

  const status = useCallback(async () => {
    try {
      const now = await get(['runs', id]);
      // A run that was taken back has another history.
      const rewound = generation.current !== undefined && generation.current !== now.generation;
      generation.current = now.generation;
      setRun(now);
      setProblem(undefined);
      // Of a run that has ended nothing more comes, and who asks for it is refused. But it may be recovered.
      const isOver = isFinal(now.state) && now.records <= last.current;
      if (isOver) leave();
      const goesOn = read.current && !follows.current && !isOver;
      return rewound || now.records < last.current || goesOn;
    } catch (problem) {
      setProblem(problem);
      return false;
    }
  }, [id]);

  const add = useCallback((more) => {
    const fresh = more.filter((record) => record.seq > last.current);
    if (fresh.length === 0) return;
    last.current = fresh.at(-1).seq;
    setRecords((was) => was.concat(fresh));
  }, []);

  const [round, setRound] = useState(0);
  useEffect(() => {
    const over = new AbortController();
    last.current = 0;
    read.current = false;
    setRecords([]);
    setWhole(false);
    (async () => {
      await status();
      try {
        await history(id, 0, over.signal, add);
        setWhole(true);
      } catch (problem) {
        if (problem.name !== 'AbortError') setProblem(problem);
        return;
      }
      if (over.signal.aborted) return;
      follows.current = listen(() => path(['runs', id, 'events'], { after: last.current || undefined }), {
        record(record) {
          add([record]);
        },
        end(now) {
          setRun(now);
          leave();
        },
      });
      read.current = true;
      // It may have ended before there was a stream.
      await status();
    })();
    return () => {
      over.abort();
      leave();
    };
  }, [id, round]);

  useChanged(async () => {
    if (await status()) setRound((n) => n + 1);
  }, [status]);

  const refresh = useCallback(async () => {
    await status();
    setRound((n) => n + 1);
  }, [status]);
  return { run, records, problem, whole, refresh };
}

export function Run({ id, tab, query, go, back }) {
  const { run, records, problem, whole, refresh } = useRun(id);
  const [allowed, setAllowed] = useState({ controls: [], messages: [], requests: [] });
  const [flows, setFlows] = useState([]);
  const at = query.get('at') ?? undefined;
  useEffect(() => {
    get(['runs', id, 'allowed']).then(setAllowed, () => {});
    get(['workflows']).then((all) => setFlows(all.flows), () => {});
  }, [id]);

  const address = (tab, at) => `#/run/${encodeURIComponent(id)}/${tab}${at === undefined ? '' : `?at=${encodeURIComponent(at)}`}`;
  const open = (tab) => go(address(tab, at), true);
  const select = useCallback((at) => go(address(tab, at), true), [id, tab]);

  const spans = useMemo(() => {
    const spans = spansOf(records, run?.created_at);
    if (run && isFinal(run.state)) spans.roots.forEach((of) => stopAll(of, run.finished_at ?? spans.last));
    return spans;
  }, [records, run?.state, run?.created_at]);

  const isGuide = run && flows.includes(run.workflow);
  const tabs = [
    { key: 'timeline', label: 'Timeline' },
    { key: 'graph', label: 'Graph' },
    { key: 'records', label: 'Records', count: records.length },
    ...(isGuide ? [{ key: 'guide', label: 'Guide' }] : []),
  ];
  const shown = tabs.some((one) => one.key === tab) ? tab : 'timeline';
  useKeys({
    ...Object.fromEntries(tabs.map((one, number) => [String(number + 1), () => open(one.key)])),
    Escape: () => (at === undefined ? false : go(address(tab), true)),
  });

  if (!run) {
    return html`<main class="run"><p class="empty">${problem ? '' : 'reading…'}</p>${problem && html`<${Trouble} problem=${problem} again=${refresh} />`}</main>`;
  }
  const chosen = at === undefined ? undefined : at.startsWith('#') ? { record: records.find((record) => `#${record.seq}` === at) } : { span: spans.known.get(at), place: at };

  return html`<main class="run">
    <${Head} run=${run} back=${back} go=${go} actions=${html`<${Actions} run=${run} records=${records} allowed=${allowed} refresh=${refresh} go=${go} />`} />
    ${problem && html`<${Trouble} problem=${problem} again=${refresh} />`}
    ${run.parked && html`<${Parked} run=${run} records=${records} select=${select} />`}
    ${run.state === 'failed' && html`<${Failed} records=${records} select=${select} />`}
    <${Tabs} tabs=${tabs} at=${shown} go=${open} label="Views" />
    <div class=${`panel ${chosen && (chosen.span || chosen.record) ? 'split' : ''}`} id="panel" role="tabpanel" aria-labelledby=${`tab-${shown}`}>
      ${shown === 'timeline' && html`<${Timeline} run=${run} spans=${spans} at=${at} select=${select} whole=${whole} />`}
      ${shown === 'graph' && html`<${Graph} run=${run} count=${records.length} at=${at} select=${select} />`}
      ${shown === 'records' && html`<${Records} records=${records} began=${spans.began} at=${at} select=${select} />`}
      ${shown === 'guide' && html`<${Guide} run=${run} count=${records.length} />`}
      ${chosen && (chosen.span || chosen.record) && html`<${Inspector} chosen=${chosen} run=${run} records=${records} began=${spans.began} allowed=${allowed} refresh=${refresh} go=${go} close=${() => go(address(tab), true)} />`}
    </div>
  </main>`;
}

function Head({ run, back, go, actions }) {
  const now = useNow(1000);
  const facts = [
    ['workflow', run.workflow],
    ['started', html`<${Ago} at=${run.created_at} />`],
    [isFinal(run.state) ? 'took' : 'for', duration((run.finished_at ?? now) - run.created_at)],
    ...(run.generation > 0 ? [['generation', run.generation]] : []),
    ...(run.parent ? [['child of', html`<a href=${`#/run/${encodeURIComponent(run.parent.id)}?at=${encodeURIComponent(run.parent.location)}`}>${run.parent.id}</a>`]] : []),
  ];
  return html`<div class="head">
    <div class="title">
      <a class="back" href=${back} aria-label="Back to the runs" onClick=${(event) => { event.preventDefault(); go(back); }}>←</a>
      <h1 title=${run.id}>${run.id}</h1>
      <${Copy} text=${run.id} label="Copy the id" />
      <${State} state=${run.state} />
      <span class="dim what"><${What} run=${{ ...run, progress: undefined, parked: undefined }} /></span>
    </div>
    ${actions}
    <dl class="facts">${facts.map(([name, is]) => html`<div key=${name}><dt>${name}</dt><dd>${is}</dd></div>`)}
      ${run.progress !== undefined && html`<div class="progress"><dt>progress</dt><dd title=${JSON.stringify(run.progress)}>${brief(run.progress, 200)}</dd></div>`}
    </dl>
  </div>`;
}

/** Why it failed, and where. */
function Failed({ records, select }) {
  const failure = records.findLast((record) => record.body.finished)?.body.finished.failed;
  if (!failure) return null;
  const at = place(failure.location);
  return html`<section class="callout bad" aria-label="Why it failed">
    <h2>${failure.message}</h2>
    <p>${failed({ ...failure, message: '' }).trim()}${at && html` at <button type="button" class="link" onClick=${() => select(at)}>${at}</button>`}${failure.type_name && html`, a <code>${failure.type_name}</code>`}</p>
    <${Chain} failure=${failure} />
  </section>`;
}
