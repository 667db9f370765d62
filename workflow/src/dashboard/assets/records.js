// Every record, as it was written.

import { brief, count, duration, place } from './format.js';
import { useKeys } from './keys.js';
import { html, useMemo, useRef, useState } from './lib.js';
import { List, listKeys } from './list.js';
import { told } from './spans.js';

const ROW = 26;

export function Records({ records, began, at, select }) {
  const [text, setText] = useState('');
  const field = useRef();
  const rows = useMemo(() => records.map((record) => ({ key: record.seq, record, at: place(record.location).replaceAll('\u0000', ''), told: told(record) })), [records]);
  const wanted = text.trim().toLowerCase();
  const found = useMemo(
    () => (wanted ? rows.filter((row) => `${row.record.seq} ${row.at} ${row.told.what} ${row.told.says} ${JSON.stringify(row.record.body)}`.toLowerCase().includes(wanted)) : rows),
    [rows, wanted],
  );
  const selected = found.findIndex((row) => `#${row.record.seq}` === at || row.at === at);
  const choose = (index) => select(`#${found[index].record.seq}`);
  useKeys({ ...listKeys(found.length, selected, choose, choose), '/': () => field.current.focus() });
  return html`<div class="records">
    <div class="tools thin">
      <label class="search"><span class="hidden">Search in the records</span>
        <input ref=${field} type="search" placeholder="Search in the records  ( / )" value=${text} onInput=${(event) => setText(event.target.value)} /></label>
      <span class="dim">${wanted ? `${count(found.length)} of ${count(rows.length)}` : ''}</span>
    </div>
    <${List} items=${found} height=${ROW} label="Records" id="record" selected=${selected} select=${choose}
      columns=${html`<div class="columns" aria-hidden="true"><span class="num">#</span><span class="num">After</span><span>Location</span><span>What</span><span class="c-value">Value</span></div>`}
      row=${({ record, at, told }) => html`
        <span class="num dim">${record.seq}</span>
        <span class="num">+${duration(record.at - began)}</span>
        <span class="id" title=${at}>${at || html`<span class="dim">the run</span>`}</span>
        <span class=${told.bad ? 'bad' : ''}>${told.what}${told.says && html` <span class="dim">${told.says}</span>`}</span>
        <code class="c-value dim">${told.payload === undefined ? '' : brief(told.payload)}</code>`}
      foot=${found.length === 0 && html`<p class="foot">no record fits</p>`} />
  </div>`;
}
