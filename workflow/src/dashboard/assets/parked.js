// Why a run does not go on, and what helps.

import { html } from './lib.js';
import { words } from './format.js';

const END = 'End it: cancel, and undo first what it did.';
const BACK = 'Do a part of it again: rewind says first what that would take back.';
const RESUME = 'Once that is mended, resume it.';
const SKIP = 'Go on without that undo: skip it, with a reason, which is recorded.';

/** Of each reason: what it means, and the ways out. */
const REASONS = {
  diverged: ['The code of this program does not do what the run has recorded. Nothing was run and nothing was changed: its history is as it was.', ['Deploy code that fits its history: declare what is gone by `removed!`, gate what is new by `version!`, or give a renamed site its old name. It goes on by itself then.', BACK, END]],
  decode: ['Something that is recorded is not of the type that the code has now.', ['Deploy code whose types read what is recorded. It goes on by itself then.', BACK, END]],
  version: ['It was begun by code of a version that this program does not have.', ['Deploy code that has the version that it was pinned to. It goes on by itself then.', END]],
  unregistered: ['This program does not know its workflow.', ['Give the workflow to the engine. It goes on by itself then.', END]],
  panicked: ['The code of the workflow itself panicked, outside of any step.', ['Deploy code that is mended. It goes on by itself then.', RESUME, BACK, END]],
  not_durable: ['The code waits for something that is not durable, so it would wait for ever.', ['Deploy code that waits for durable things only. It goes on by itself then.', RESUME, END]],
  encode: ['What the workflow returned cannot be recorded.', ['Deploy code that is mended. It goes on by itself then.', RESUME, BACK, END]],
  undo_failed: ['It is being rolled back, and an undo keeps failing.', [RESUME, SKIP]],
  undo_missing: ['It is being rolled back, and this code has no undo for something that was done.', ['Deploy code that has the undo. It goes on by itself then.', SKIP]],
  newer_format: ['A newer program has written to it.', ['Deploy a program with a newer library. It goes on by itself then.']],
  storage: ['The store failed.', ['See to the disk; `workflow doctor` says what cannot be read.', RESUME]],
};

export function Parked({ run, records, select }) {
  const { reason, detail } = run.parked;
  const [means, ways] = REASONS[reason] ?? ['It cannot go on as things are.', [RESUME, END]];
  const { title, rows } = report(detail);
  return html`<section class="callout warn parked" aria-label="Why it is parked">
    <h2>Parked: ${words(reason)}</h2>
    <p>${means}</p>
    <div class="explained">
      <div>
        <h3>What was found</h3>
        <p>${linked(title, records, select)}</p>
        ${rows.length > 0 && html`<dl class="report">${rows.map(([name, says], n) => html`<div key=${n} data-row=${name}><dt>${name}</dt><dd>${linked(says, records, select)}</dd></div>`)}</dl>`}
      </div>
      <div>
        <h3>What to do</h3>
        <ol>${ways.map((way) => html`<li key=${way}>${linked(way, [], select)}</li>`)}</ol>
      </div>
    </div>
  </section>`;
}

/** A report's first line, and its lines of the form `  name:   what`; a line that has no name belongs to the one before. */
function report(detail) {
  const [title, ...lines] = detail.split('\n');
  const rows = [];
  for (const line of lines) {
    const named = /^ {2}([a-z][a-z ]{1,14}):\s+(.*)$/.exec(line);
    if (named) rows.push([named[1], named[2]]);
    else if (rows.length) rows.at(-1)[1] += `\n${line.trim()}`;
    else if (line.trim()) rows.push(['', line.trim()]);
  }
  return { title, rows };
}

/** What is named in backticks: code, and `record 7` leads to that record. */
function linked(text, records, select) {
  return text.split(/(`[^`]*`|record \d+)/).map((part) => {
    if (part.startsWith('`')) return html`<code>${part.slice(1, -1)}</code>`;
    const seq = /^record (\d+)$/.exec(part)?.[1];
    if (seq && records.some((record) => record.seq === Number(seq))) return html`<button type="button" class="link" onClick=${() => select(`#${seq}`)}>${part}</button>`;
    return part;
  });
}
