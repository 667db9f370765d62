// What an operator does to a run. Each asks first, says what it will do, and shows what the service answered.

import { get, post } from './api.js';
import { count, place } from './format.js';
import { html, useEffect, useState } from './lib.js';
import { Dialog, isFinal, Json, Trouble } from './parts.js';
import { told } from './spans.js';

/** In which states there is something to do. */
const FITS = {
  cancel: (run) => !isFinal(run.state),
  recover: (run) => run.state === 'failed',
  resume: (run) => run.state === 'parked',
  rewind: () => true,
  fork: () => true,
  'skip-undo': (run) => run.parked?.reason === 'undo_failed' || run.parked?.reason === 'undo_missing',
  send: (run) => !isFinal(run.state),
};
const LABELS = { cancel: 'Cancel…', recover: 'Recover…', resume: 'Resume…', rewind: 'Rewind…', fork: 'Fork…', 'skip-undo': 'Skip the undo…', send: 'Send…' };

export function Actions({ run, records, allowed, refresh, go }) {
  const [doing, setDoing] = useState();
  const names = [...allowed.controls, ...(allowed.messages.length + allowed.requests.length > 0 ? ['send'] : [])];
  const close = () => setDoing();
  const open = (id) => go(`#/run/${encodeURIComponent(id)}`);
  const Doing = { cancel: Cancel, recover: Recover, resume: Resume, rewind: Rewind, fork: Fork, 'skip-undo': SkipUndo, send: Send }[doing];
  return html`<div class="actions" role="group" aria-label="What can be done">
    ${names.filter((name) => FITS[name]?.(run)).map((name) => html`<button type="button" key=${name} class=${name === 'cancel' ? 'danger' : ''} onClick=${() => setDoing(name)}>${LABELS[name]}</button>`)}
    ${doing && html`<${Doing} run=${run} records=${records} allowed=${allowed} close=${close} done=${doing === 'fork' ? open : refresh} />`}
  </div>`;
}

/** Does something once, and knows how it stands with it. */
function useDoing(act, done) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState();
  const [answer, setAnswer] = useState();
  const go = async () => {
    setBusy(true);
    setProblem(undefined);
    try {
      const answer = await act();
      setAnswer(answer);
      await done?.(answer);
      return true;
    } catch (problem) {
      setProblem(problem);
      return false;
    } finally {
      setBusy(false);
    }
  };
  return { busy, problem, answer, go };
}

/** A window that asks, and does it. Enter in a field does it, too. */
function Ask({ title, verb, danger, children, ready = true, doing, close, stays }) {
  const submit = async (event) => {
    event.preventDefault();
    if (ready && !doing.busy && (await doing.go()) && !stays) close();
  };
  return html`<${Dialog} title=${title} close=${close}>
    <form onSubmit=${submit}>
      ${children}
      ${doing.problem && html`<${Trouble} problem=${doing.problem} />`}
      <div class="buttons">
        <button type="button" onClick=${close}>${doing.answer && stays ? 'Close' : 'Leave it'}</button>
        <button type="submit" class=${danger ? 'danger primary' : 'primary'} disabled=${!ready || doing.busy}>${doing.busy ? 'doing it…' : verb}</button>
      </div>
    </form>
  </${Dialog}>`;
}

function Cancel({ run, close, done }) {
  const [undo, setUndo] = useState(false);
  const doing = useDoing(() => post(['runs', run.id, 'cancel'], { query: { undo: undo || undefined } }), done);
  return html`<${Ask} title="Cancel this run?" verb="Cancel the run" danger doing=${doing} close=${close}>
    <p><code>${run.id}</code> ends, and does not go on. Steps that are under way are dropped.</p>
    <label class="check"><input type="checkbox" checked=${undo} onChange=${(event) => setUndo(event.target.checked)} /> undo first what it did, where its code says how</label>
  </${Ask}>`;
}

function Recover({ run, close, done }) {
  const doing = useDoing(() => post(['runs', run.id, 'recover']), done);
  return html`<${Ask} title="Recover this run?" verb="Recover" doing=${doing} close=${close}>
    <p>What failed in <code>${run.id}</code> is tried again; what had succeeded is not done again.</p>
  </${Ask}>`;
}

function Resume({ run, close, done }) {
  const doing = useDoing(() => post(['runs', run.id, 'resume']), done);
  return html`<${Ask} title="Resume this run?" verb="Resume" doing=${doing} close=${close}>
    <p><code>${run.id}</code> is tried again with the code of this program. If it cannot go on, it is parked again, and nothing is changed.</p>
  </${Ask}>`;
}

function SkipUndo({ run, records, close, done }) {
  const undone = new Set(records.filter((record) => record.body.undone && ('ok' in record.body.undone.outcome || record.body.undone.skipped)).map((record) => record.body.undone.undoes));
  const open = records.filter((record) => record.body.armed && !undone.has(record.body.armed.number)).map((record) => record.body.armed);
  const [entry, setEntry] = useState(String(open.at(-1)?.number ?? ''));
  const [reason, setReason] = useState('');
  const doing = useDoing(() => post(['runs', run.id, 'skip-undo'], { body: { entry: Number(entry), reason } }), done);
  return html`<${Ask} title="Go on without an undo?" verb="Skip it" danger ready=${entry !== '' && reason.trim() !== ''} doing=${doing} close=${close}>
    <p>The effect stays as it is. Why is recorded.</p>
    <label>Undo <select value=${entry} onChange=${(event) => setEntry(event.target.value)}>${open.map((one) => html`<option key=${one.number} value=${one.number}>#${one.number} ${place(one.location)}</option>`)}</select></label>
    <label>Reason <input value=${reason} onInput=${(event) => setReason(event.target.value)} required /></label>
  </${Ask}>`;
}

/** Where a run can be taken back to: what it has recorded. */
function places(records) {
  const all = records.map((record) => place(record.location)).filter((at) => at && !at.includes('\u0000'));
  return [...new Set(all)];
}

export function Rewind({ run, records, at, close, done }) {
  const all = places(records);
  const [to, setTo] = useState(at ?? all.at(-1) ?? '');
  const [dry, setDry] = useState();
  const [refused, setRefused] = useState();
  useEffect(() => {
    let over = false;
    setDry(undefined);
    setRefused(undefined);
    if (!to) return undefined;
    const later = setTimeout(() => {
      post(['runs', run.id, 'rewind'], { query: { dry_run: true }, body: { to } }).then(
        ({ body }) => over || setDry(body),
        (problem) => over || setRefused(problem),
      );
    }, 200);
    return () => {
      over = true;
      clearTimeout(later);
    };
  }, [to]);
  const doing = useDoing(() => post(['runs', run.id, 'rewind'], { body: { to } }), done);
  return html`<${Ask} title="Rewind this run?" verb="Rewind" danger ready=${dry !== undefined} doing=${doing} close=${close}>
    <p>What <code>${run.id}</code> did from there on is forgotten, and done again. What it did to the world stays done.</p>
    <label>Back to <input list="places" value=${to} onInput=${(event) => setTo(event.target.value)} spellcheck=${false} autocomplete="off" /></label>
    <datalist id="places">${all.slice(-500).map((at) => html`<option key=${at} value=${at} />`)}</datalist>
    <div class="dry" aria-live="polite">
      ${refused && html`<${Trouble} problem=${refused} />`}
      ${!dry && !refused && to && html`<p class="dim">looking what that would do…</p>`}
      ${dry && html`<p><strong>${count(dry.removed.length)} ${dry.removed.length === 1 ? 'record' : 'records'}</strong> would be removed${dry.returned.length > 0 ? `, ${dry.returned.length} messages given back` : ''}${dry.cancelled.length > 0 ? `, and these children cancelled: ${dry.cancelled.join(', ')}` : ''}. It would go on as generation ${dry.generation}.</p>
        <ul class="removed">${dry.removed.slice(0, 12).map((record) => html`<li key=${record.seq}><span class="num dim">${record.seq}</span> <code>${place(record.location)}</code> ${told(record).what}</li>`)}</ul>
        ${dry.removed.length > 12 && html`<p class="dim">and ${count(dry.removed.length - 12)} more</p>`}`}
    </div>
  </${Ask}>`;
}

export function Fork({ run, at, close, done }) {
  const [id, setId] = useState(`${run.id.replaceAll('/', '-')}-fork`);
  const [from, setFrom] = useState(at ?? '');
  const doing = useDoing(() => post(['runs', run.id, 'fork'], { body: { id, at: from || null } }), ({ body }) => done(body.id));
  return html`<${Ask} title="Fork this run?" verb="Fork" ready=${id !== ''} doing=${doing} close=${close}>
    <p>A new run begins with a copy of the history of <code>${run.id}</code>, and goes on by itself. This one stays as it is.</p>
    <label>Id of the new run <input value=${id} onInput=${(event) => setId(event.target.value)} spellcheck=${false} required /></label>
    <label>From <input value=${from} onInput=${(event) => setFrom(event.target.value)} placeholder="where it is now" spellcheck=${false} /></label>
  </${Ask}>`;
}

function isJson(text) {
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    return error.message;
  }
}

/** A field for JSON that says what is wrong with it. */
function JsonField({ label, text, set }) {
  const wrong = isJson(text);
  return html`<label>${label}
    <textarea rows="5" value=${text} spellcheck=${false} aria-invalid=${wrong ? 'true' : 'false'} onInput=${(event) => set(event.target.value)}></textarea>
    <small class=${wrong ? 'bad' : 'dim'} aria-live="polite">${wrong ?? 'is JSON'}</small></label>`;
}

function Send({ run, allowed, close, done }) {
  const all = [...allowed.messages.map((name) => ({ name, of: 'messages' })), ...allowed.requests.map((name) => ({ name, of: 'requests' }))];
  const waited = all.findIndex((one) => run.waits_for?.includes(one.name));
  const [at, setAt] = useState(String(Math.max(0, waited)));
  const [text, setText] = useState('null');
  const channel = all[Number(at)];
  const asks = channel.of === 'requests';
  const [key] = useState(() => crypto.randomUUID?.() ?? String(Math.random()));
  const doing = useDoing(async () => (await post(['runs', run.id, channel.of, channel.name], { body: text, key, query: asks ? { wait: 20 } : {} })).body, done);
  return html`<${Ask} title="Send to this run" verb=${asks ? 'Ask' : 'Send'} ready=${!isJson(text)} doing=${doing} close=${close} stays=${asks}>
    <label>Channel <select value=${at} onChange=${(event) => setAt(event.target.value)}>${all.map((one, n) => html`<option key=${n} value=${n} selected=${String(n) === at}>${one.name}${one.of === 'requests' ? ' (asks, and is answered)' : ''}${run.waits_for?.includes(one.name) ? ' · waited for' : ''}</option>`)}</select></label>
    <${JsonField} label=${asks ? 'Question' : 'Message'} text=${text} set=${setText} />
    ${asks && doing.answer !== undefined && html`<h3>Answer</h3><${Json} value=${doing.answer} />`}
  </${Ask}>`;
}

/** What the API's own description says of a workflow's input, if it has one: a text to begin with. */
async function example(workflow) {
  const all = await get(['openapi.json']);
  const body = all.paths?.[`/workflows/${workflow}/runs`]?.post?.requestBody?.content?.['application/json']?.schema;
  const sample = (schema, depth = 0) => {
    if (!schema || depth > 6) return null;
    if (schema.$ref) return sample(all.components?.schemas?.[schema.$ref.split('/').at(-1)], depth + 1);
    if (schema.enum) return schema.enum[0];
    const type = Array.isArray(schema.type) ? schema.type.find((one) => one !== 'null') : schema.type;
    if (type === 'object' || schema.properties) return Object.fromEntries(Object.entries(schema.properties ?? {}).map(([name, of]) => [name, sample(of, depth + 1)]));
    return { string: '', integer: schema.minimum > 0 ? schema.minimum : 0, number: 0, boolean: false, array: [] }[type] ?? null;
  };
  return JSON.stringify(sample(body) ?? {}, null, 2);
}

export function Start({ workflows, close, done }) {
  const [workflow, setWorkflow] = useState(workflows[0]);
  const [id, setId] = useState('');
  const [text, setText] = useState('{}');
  useEffect(() => {
    let over = false;
    example(workflow).then((text) => over || setText(text), () => {});
    return () => {
      over = true;
    };
  }, [workflow]);
  const doing = useDoing(() => post(['workflows', workflow, 'runs'], { body: text, key: id || undefined }), ({ body }) => done(body.id));
  return html`<${Ask} title="Start a run" verb="Start" ready=${!isJson(text)} doing=${doing} close=${close}>
    <label>Workflow <select value=${workflow} onChange=${(event) => setWorkflow(event.target.value)}>${workflows.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}</select></label>
    <label>Id <input value=${id} onInput=${(event) => setId(event.target.value)} placeholder="chosen by the service" spellcheck=${false} autocomplete="off" /></label>
    <${JsonField} label="Input: an object with a field for each parameter" text=${text} set=${setText} />
  </${Ask}>`;
}
