// A run as the graph of its workflow, with where it is.

import { get } from './api.js';
import { useKeys } from './keys.js';
import { layout } from './layout.js';
import { html, useEffect, useMemo, useRef, useState } from './lib.js';
import { Trouble } from './parts.js';

const FLAT = new Set(['after', 'choice']);

/** How large a node is: as its text needs it. */
function sized(node) {
  if (FLAT.has(node.kind)) return { ...node, lines: [], text: node.label.trim(), width: node.label.trim() ? 40 + node.label.trim().length * 5 : 22, height: 22 };
  const [name, ...more] = node.label.split('\n');
  const lines = more.length ? [name, more.join(' · ')] : [name];
  return { ...node, lines, width: Math.max(74, Math.max(...lines.map((line, n) => line.length * (n ? 5.8 : 7.2))) + 24), height: 16 + lines.length * 14 };
}

export function Graph({ run, count, at, select }) {
  const [graph, setGraph] = useState();
  const [problem, setProblem] = useState();
  useEffect(() => {
    const over = new AbortController();
    get(['runs', run.id, 'graph'], {}, over.signal).then(
      (graph) => {
        setGraph(graph);
        setProblem(undefined);
      },
      (problem) => problem.name === 'AbortError' || setProblem(problem),
    );
    return () => over.abort();
  }, [run.id, count, run.state, run.generation]);
  if (problem) return html`<div class="graph"><${Trouble} problem=${problem} /></div>`;
  if (!graph) return html`<div class="graph"><p class="empty">reading…</p></div>`;
  return html`<${Drawing} graph=${graph} at=${at} select=${select} />`;
}

function Drawing({ graph, at, select }) {
  const shape = JSON.stringify([graph.nodes.map((node) => [node.id, node.label]), graph.edges.length, graph.groups.length]);
  const drawn = useMemo(() => {
    const nodes = graph.nodes.map(sized);
    return { nodes, ...layout({ nodes, edges: graph.edges, groups: graph.groups }) };
  }, [shape]);
  const states = new Map(graph.sites.filter((site) => site.node && site.state).map((site) => [site.node, { ...site.state, file: site.file, line: site.line }]));
  const ended = graph.run?.ended;
  const active = (state) => ['waiting', 'retrying', 'running', 'undoing'].includes(state?.state);
  const here = drawn.nodes.filter((node) => active(states.get(node.id))).map((node) => drawn.boxes.get(node.id).y + node.height / 2);
  const view = useView(drawn, here.length ? (Math.min(...here) + Math.max(...here)) / 2 : undefined);
  useKeys({ '+': () => view.zoom(1.3), '=': () => view.zoom(1.3), '-': () => view.zoom(1 / 1.3), 0: view.all });

  const chosen = (state) => state?.places?.some((place) => place.location === at);
  const press = (state) => {
    if (!state?.places?.length) return;
    const places = state.places.map((place) => place.location);
    // Pressed again, it is the next place of the site.
    select(places[(places.indexOf(at) + 1) % places.length]);
  };
  const unknown = graph.run?.unknown ?? [];
  return html`<div class="graph">
    <div class="tools thin">
      <button type="button" class="quiet" onClick=${() => view.zoom(1.3)} aria-label="Zoom in">+</button>
      <button type="button" class="quiet" onClick=${() => view.zoom(1 / 1.3)} aria-label="Zoom out">−</button>
      <button type="button" class="quiet" onClick=${view.all}>all</button>
      <span class="legend dim" aria-hidden="true"><i class="swatch" data-is="done"></i>done <i class="swatch" data-is="waiting"></i>is here <i class="swatch" data-is="failed"></i>failed <i class="swatch" data-is="not reached"></i>not reached</span>
    </div>
    ${unknown.length > 0 && html`<p class="note bad">Recorded, but not in this code: ${unknown.map((one, n) => html`${n > 0 && ', '}<button type="button" class="link" onClick=${() => select(one.location)}>${one.location}</button>${one.recorded && ` (a ${one.recorded}${one.found ? `; the code has ${one.found} there` : ''})`}`)}</p>`}
    <svg ref=${view.box} viewBox=${view.viewBox} role="group" aria-label=${`Graph of ${graph.workflow}`} onPointerDown=${view.grab} tabindex="-1">
      <defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 .5 7 4 0 7.500z" /></marker></defs>
      ${graph.groups.map((group) => {
        const box = drawn.boxes.get(group.id);
        return html`<g key=${group.id} class="group"><rect x=${box.x} y=${box.y} width=${box.w} height=${box.h} rx="8" /><text x=${box.x + 10} y=${box.y + 15}>${group.label}</text></g>`;
      })}
      ${graph.edges.map((edge, n) => {
        const line = drawn.lines[n];
        const middle = line.points[Math.floor((line.points.length - 1) / 2)], after = line.points[Math.floor((line.points.length - 1) / 2) + 1] ?? middle;
        return html`<g key=${n} class="edge" data-kind=${edge.kind}><path d=${curve(line)} marker-end="url(#arrow)" />
          ${edge.label && html`<text x=${(middle[0] + after[0]) / 2 + 5} y=${(middle[1] + after[1]) / 2 + 3}>${edge.label}</text>`}</g>`;
      })}
      ${drawn.nodes.map((node) => {
        const box = drawn.boxes.get(node.id);
        const now = states.get(node.id);
        const is = node.kind === 'start' ? 'done' : node.kind === 'end' ? (ended ?? 'not reached') : now?.state ?? '';
        const title = `${node.label.replaceAll('\n', ', ')}${now ? `: ${now.state}${now.times > 1 ? `, ${now.times} times` : ''}${now.attempt ? `, attempt ${now.attempt}` : ''} · ${now.file}:${now.line}` : ''}`;
        const can = now?.places?.length > 0;
        return html`<g key=${node.id} class="node" data-kind=${node.kind} data-is=${is} data-active=${active(now) ? 'yes' : undefined} data-chosen=${chosen(now) ? 'yes' : undefined}
          role=${can ? 'button' : 'img'} tabindex=${can ? 0 : undefined} aria-label=${title} transform=${`translate(${box.x} ${box.y})`}
          onClick=${() => view.moved() || press(now)} onKeyDown=${(event) => { if (event.key === 'Enter' || event.key === ' ') { press(now); event.preventDefault(); event.stopPropagation(); } }}>
          <title>${title}</title>
          ${figure(node)}
          ${(node.text ? [node.text] : node.lines).map((text, n) => html`<text key=${n} class=${n ? 'sub' : ''} x=${node.width / 2} y=${node.text ? 15 : 19 + n * 14}>${text}</text>`)}
          ${now && (now.times > 1 || now.attempt > 1) && html`<g class="badge" transform=${`translate(${node.width - 2} 2)`}><rect x="-14" y="-9" width="28" height="16" rx="8" /><text y="3">${now.attempt > 1 ? `#${now.attempt}` : `×${now.times}`}</text></g>`}
        </g>`;
      })}
    </svg>
  </div>`;
}

/** Kinds differ by their form, too. */
function figure({ kind, width: w, height: h, text }) {
  if (kind === 'start' || kind === 'end') return html`<rect width=${w} height=${h} rx=${h / 2} />`;
  if (kind === 'choice' && !text) return html`<path d=${`M${w / 2} 0 ${w} ${h / 2} ${w / 2} ${h} 0 ${h / 2}z`} />`;
  if (FLAT.has(kind)) return html`<rect width=${w} height=${h} rx=${h / 2} />`;
  if (kind === 'channel') return html`<path d=${`M0 6a${w / 2} 6 0 0 1 ${w} 0v${h - 12}a${w / 2} 6 0 0 1-${w} 0zM0 6a${w / 2} 6 0 0 0 ${w} 0`} />`;
  if (['join', 'race', 'join_all', 'loop', 'attempt'].includes(kind)) return html`<path d=${`M10 0H${w - 10}L${w} ${h / 2} ${w - 10} ${h}H10L0 ${h / 2}z`} />`;
  if (['sleep', 'recv'].includes(kind)) return html`<rect width=${w} height=${h} rx="14" />`;
  return html`<rect width=${w} height=${h} rx="4" />`;
}

function curve({ points, beside }) {
  const [[x, y], ...rest] = points;
  if (beside) {
    const [[sx], [tx, ty]] = rest;
    return `M${x} ${y}C${sx} ${y} ${sx} ${ty} ${tx} ${ty}`;
  }
  let path = `M${x} ${y}`, before = y;
  for (const [px, py] of rest) {
    const middle = (before + py) / 2;
    path += `C${pathX(path)} ${middle} ${px} ${middle} ${px} ${py}`;
    before = py;
  }
  return path;
}

/** Where a path has come to. */
const pathX = (path) => /(-?[\d.]+) -?[\d.]+$/.exec(path)[1];

/** What part of the drawing is seen, until somebody zooms or drags. `here` is how far down the run is. */
function useView(drawn, here) {
  const box = useRef();
  const [view, set] = useState();
  const [room, setRoom] = useState({ w: 800, h: 500 });
  const now = useRef();
  const moved = useRef(false);
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => setRoom({ w: entry.contentRect.width || 800, h: entry.contentRect.height || 500 }));
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  // Small drawings are not blown up; of large ones that part is shown first where the run is, so that they can be read.
  const whole = Math.min(1.15, room.w / (drawn.width + 40), room.h / (drawn.height + 40));
  const framed = (scale, middle) => {
    const w = room.w / scale, h = room.h / scale;
    const y = h >= drawn.height + 40 ? (drawn.height - h) / 2 : Math.max(-20, Math.min(drawn.height + 20 - h, middle - h / 2));
    return { x: (drawn.width - w) / 2, y, w, h };
  };
  const all = framed(whole, drawn.height / 2);
  const shown = view ?? (whole < 0.85 ? framed(0.85, here ?? 0) : all);
  now.current = shown;
  const zoom = (by, cx = 0.5, cy = 0.5) => {
    const { x, y, w, h } = now.current;
    const width = Math.min(all.w * 4, Math.max(120, w / by)), height = (width / w) * h;
    set({ x: x + (w - width) * cx, y: y + (h - height) * cy, w: width, h: height });
  };
  useEffect(() => {
    const turn = (event) => {
      event.preventDefault();
      const at = box.current.getBoundingClientRect();
      if (event.ctrlKey || event.metaKey || Math.abs(event.deltaY) >= 40) zoom(Math.exp(-event.deltaY / 300), (event.clientX - at.left) / at.width, (event.clientY - at.top) / at.height);
      else set({ ...now.current, x: now.current.x + event.deltaX, y: now.current.y + event.deltaY });
    };
    box.current.addEventListener('wheel', turn, { passive: false });
    return () => box.current?.removeEventListener('wheel', turn);
  });
  const grab = (down) => {
    if (down.button !== 0) return;
    const from = { ...now.current }, at = box.current.getBoundingClientRect();
    moved.current = false;
    const move = (event) => {
      const dx = event.clientX - down.clientX, dy = event.clientY - down.clientY;
      if (Math.abs(dx) + Math.abs(dy) > 4) moved.current = true;
      if (moved.current) set({ ...from, x: from.x - (dx / at.width) * from.w, y: from.y - (dy / at.height) * from.h });
    };
    const up = () => {
      removeEventListener('pointermove', move);
      removeEventListener('pointerup', up);
    };
    addEventListener('pointermove', move);
    addEventListener('pointerup', up);
  };
  return { box, zoom, grab, all: () => set(all), moved: () => moved.current, viewBox: `${shown.x} ${shown.y} ${shown.w} ${shown.h}` };
}
