// What is known of one place of a run, or of one record: values, attempts, errors, and what can be done from there.

import { Fork, Rewind } from './actions.js';
import { duration, failed, place, precise, value } from './format.js';
import { html, useState } from './lib.js';
import { At, Copy, Json } from './parts.js';
import { told } from './spans.js';

export function Inspector({ chosen, run, records, began, allowed, refresh, go, close }) {
  const { span, record } = chosen;
  const location = span ? span.key : place(record.location);
  const shown = span ? span.records : [record];
  const [doing, setDoing] = useState();
  const can = (what) => location && !location.includes('\u0000') && allowed.controls.includes(what);
  return html`<aside class="inspector" aria-label=${`About ${location || 'the run'}`}>
    <div class="line">
      <h2 title=${location}>${location || 'the run'}</h2>
      <${Copy} text=${location} label="Copy the location" />
      <button type="button" class="quiet" onClick=${close} aria-label="Close">✕</button>
    </div>
    ${span && html`<dl class="facts">
      ${span.kind && html`<div><dt>kind</dt><dd>${span.kind.replaceAll('_', ' ')}</dd></div>`}
      ${span.state && html`<div><dt>is</dt><dd>${span.state}</dd></div>`}
      ${span.attempts > 0 && html`<div><dt>attempts</dt><dd>${span.attempts}</dd></div>`}
      <div><dt>after</dt><dd>${duration(span.began - began)}</dd></div>
      <div><dt>took</dt><dd>${span.goesOn ? 'goes on' : duration(span.last - span.began)}</dd></div>
      ${span.until !== undefined && html`<div><dt>until</dt><dd><${At} at=${span.until} /></dd></div>`}
    </dl>`}
    ${span?.note && html`<p class=${span.state === 'failed' || span.state === 'retrying' ? 'bad' : ''}>${span.note}</p>`}
    ${span?.child && html`<p><a href=${`#/run/${encodeURIComponent(span.child)}`}>Open the child run</a></p>`}
    ${(can('rewind') || can('fork')) && html`<div class="buttons left">
      ${can('rewind') && html`<button type="button" onClick=${() => setDoing('rewind')}>Rewind to here…</button>`}
      ${can('fork') && html`<button type="button" onClick=${() => setDoing('fork')}>Fork from here…</button>`}
    </div>`}
    ${shown.map((one) => html`<${One} key=${one.seq} record=${one} began=${began} />`)}
    ${span && shown.length === 0 && html`<p class="dim">It has no record of its own: what lies under it has.</p>`}
    ${doing === 'rewind' && html`<${Rewind} run=${run} records=${records} at=${location} close=${() => setDoing()} done=${refresh} />`}
    ${doing === 'fork' && html`<${Fork} run=${run} at=${location} close=${() => setDoing()} done=${(id) => go(`#/run/${encodeURIComponent(id)}`)} />`}
  </aside>`;
}

function One({ record, began }) {
  const { what, says, payload, failure, again } = told(record);
  const [raw, setRaw] = useState(false);
  const ended = record.body.ended;
  return html`<section class="one">
    <h3>${what} <small class="dim">record ${record.seq}, +${duration(record.at - began)}</small></h3>
    <p class="dim small" title=${precise(record.at)}><${At} at=${record.at} /> by code ${record.code}${ended && ended.attempts > 0 && html`; the last attempt took ${duration(record.at - ended.started_at)}`}</p>
    ${says && html`<p class=${failure ? 'bad' : ''}>${says}</p>`}
    ${failure && html`<p class="dim">${failed({ ...failure, message: '' }).trim()}${failure.type_name && html`, a <code>${failure.type_name}</code>`}</p><${Chain} failure=${failure} />`}
    ${again !== undefined && html`<p>again at <${At} at=${again} /></p>`}
    ${payload !== undefined && html`<${Json} value=${payload} />`}
    ${record.body.taken?.map((message) => html`<p key=${message.id} class="dim small">message ${message.arrival} on <code>${message.channel}</code>, came <${At} at=${message.at} />${message.dedup && `, key ${message.dedup}`}${message.payload && 'hex' in message.payload ? `, ${value(message.payload)}` : ''}</p>`)}
    <button type="button" class="quiet small" aria-expanded=${raw ? 'true' : 'false'} onClick=${() => setRaw(!raw)}>${raw ? 'hide the record' : 'the whole record'}</button>
    ${raw && html`<${Json} value=${record} />`}
  </section>`;
}

/** What was behind a failure, and what its branches failed by. */
export function Chain({ failure }) {
  const causes = failure.chain ?? [];
  const branches = failure.branches ?? [];
  if (causes.length + branches.length === 0 && !failure.value) return null;
  return html`<ul class="chain">
    ${causes.map((cause, n) => html`<li key=${n}>because: ${cause}</li>`)}
    ${branches.map((branch, n) => html`<li key=${`b${n}`}><code>${place(branch.location)}</code>: ${failed(branch)}<${Chain} failure=${branch} /></li>`)}
    ${failure.value && html`<li>with <${Json} value=${failure.value.json ?? failure.value} /></li>`}
  </ul>`;
}
