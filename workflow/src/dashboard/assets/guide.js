// A flow that a person is led through: where they are, what they said, and what they may do.

import { get } from './api.js';
import { words } from './format.js';
import { html, useEffect, useState } from './lib.js';
import { Json, Trouble } from './parts.js';

export function Guide({ run, count }) {
  const [view, setView] = useState();
  const [problem, setProblem] = useState();
  useEffect(() => {
    get(['guides', run.workflow, run.id]).then((view) => {
      setView(view);
      setProblem(undefined);
    }, setProblem);
  }, [run.id, count, run.updated_at]);
  if (problem) return html`<${Trouble} problem=${problem} />`;
  if (!view) return html`<p class="empty">reading…</p>`;
  const actions = Object.entries(view.actions).filter(([, may]) => may === true || (may && may.allowed === true) || may === 'allowed').map(([name]) => name);
  return html`<div class="guide">
    <p><strong>${words(view.status)}</strong> <span class="dim">revision ${view.revision}${view.busy ? ', something is being done' : ''}${view.durable ? '' : ', not all of it stored yet'}</span></p>
    <ol class="stages">${view.stages.map((stage) => html`<li key=${stage.name} data-is=${stage.progress} aria-current=${stage.name === view.at ? 'step' : undefined}>
      <strong>${stage.title || stage.name}</strong> <code class="dim">${stage.name}</code> <small>${words(stage.progress)}</small>
      ${stage.help && html`<p class="dim">${stage.help}</p>`}</li>`)}</ol>
    ${view.problems.length > 0 && html`<h3>What the checks found</h3><ul>${view.problems.map((one, n) => html`<li key=${n} class="bad">${one.field && html`<code>${one.field}</code> `}${one.text}</li>`)}</ul>`}
    ${view.failure && html`<h3>Why it does not go on</h3><${Json} value=${view.failure} />`}
    ${actions.length > 0 && html`<p class="dim">May be asked of it now: ${actions.map(words).join(', ')}</p>`}
    ${view.operations.length > 0 && html`<h3>Operations</h3><${Json} value=${view.operations} />`}
    <h3>The person's data</h3>
    <${Json} value=${view.state} />
    ${view.nested.map((inner) => html`<section key=${inner.path}><h3>${inner.flow} <code class="dim">${inner.path}</code></h3><p>${words(inner.status)}${inner.at && `, at ${inner.at}`}</p><${Json} value=${inner.state} /></section>`)}
  </div>`;
}
