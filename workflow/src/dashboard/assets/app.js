// The page: what is where, by the part of the address after `#`.

import { html, render, useCallback, useEffect, useRef, useState } from './lib.js';
import { count } from './format.js';
import { HELP, useKeys } from './keys.js';
import { begin, useShared } from './live.js';
import { Dialog } from './parts.js';
import { Run } from './run.js';
import { Runs } from './runs.js';

const THEMES = ['system', 'light', 'dark'];

function useTheme() {
  const [theme, set] = useState(document.documentElement.dataset.theme ?? 'system');
  const next = () => {
    const chosen = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    if (chosen === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = chosen;
    try {
      localStorage.setItem('workflow.theme', chosen);
    } catch {
      // Then it is for now only.
    }
    set(chosen);
  };
  return [theme, next];
}

function useAddress() {
  const [address, set] = useState(location.hash);
  useEffect(() => {
    const changed = () => set(location.hash);
    addEventListener('hashchange', changed);
    return () => removeEventListener('hashchange', changed);
  }, []);
  const go = useCallback((to, instead) => {
    if (to === location.hash) return;
    if (instead) history.replaceState(null, '', to);
    else history.pushState(null, '', to);
    set(to);
  }, []);
  return [address, go];
}

function App() {
  const [address, go] = useAddress();
  const [theme, nextTheme] = useTheme();
  const [help, setHelp] = useState(false);
  const shared = useShared();
  const remember = useRef({ selected: undefined, runs: '#/runs' });
  const [path, query = ''] = address.replace(/^#\/?/, '').split('?');
  const [page, id, tab] = path.split('/').map(decode);
  const atRuns = page !== 'run' || !id;
  if (atRuns) remember.current.runs = address || '#/runs';
  useEffect(() => {
    document.title = atRuns ? 'Runs' : id;
  }, [atRuns, id]);

  useKeys({
    '?': () => setHelp(true),
    t: nextTheme,
    g: () => go(remember.current.runs),
    Escape: () => (atRuns ? false : go(remember.current.runs)),
  });

  return html`
    <header class="bar">
      <a class="brand" href=${remember.current.runs} onClick=${(event) => { event.preventDefault(); go('#/runs'); }}>workflow</a>
      <span class="total" aria-live="off">${shared.counts && `${count(shared.counts.runs)} ${shared.counts.runs === 1 ? 'run' : 'runs'}`}</span>
      <span class="live" role="status" data-live=${shared.connected === true ? 'yes' : shared.connected === false ? 'no' : ''}><i aria-hidden="true"></i>${shared.connected === false ? 'not connected' : shared.connected ? 'live' : ''}</span>
      <button type="button" class="quiet" onClick=${nextTheme} aria-label=${`Colours: ${theme}. Change them`}>${{ system: '◐ system', light: '○ light', dark: '● dark' }[theme]}</button>
      <button type="button" class="quiet" onClick=${() => setHelp(true)} aria-label="What the keys do" aria-keyshortcuts="?">?</button>
    </header>
    ${atRuns
      ? html`<${Runs} query=${new URLSearchParams(query)} go=${go} remember=${remember} />`
      : html`<${Run} key=${id} id=${id} tab=${tab || 'timeline'} query=${new URLSearchParams(query)} go=${go} back=${remember.current.runs} />`}
    ${help && html`<${Help} close=${() => setHelp(false)} />`}
  `;
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function Help({ close }) {
  return html`<${Dialog} title="Keys" close=${close} wide>
    <div class="help">
      ${HELP.map(
        ([where, keys]) => html`<section key=${where}><h3>${where}</h3>
          <dl>${keys.map(([key, does]) => html`<div key=${key}><dt>${key.split(/\s+/).map((one) => html`<kbd>${one}</kbd> `)}</dt><dd>${does}</dd></div>`)}</dl></section>`,
      )}
    </div>
    <div class="buttons"><button type="button" onClick=${close}>Close</button></div>
  </${Dialog}>`;
}

begin();
const app = document.getElementById('app');
app.replaceChildren();
render(html`<${App} />`, app);
