// A long list of rows of one height, of which only those that are seen are on the page.

import { html, useCallback, useEffect, useLayoutEffect, useRef, useState } from './lib.js';

const SPARE = 8;

/**
 * `row(item, index, selected)` draws one. `selected` is an index, `select` is told another one, `open` is told the index that is to be
 * opened. `nearEnd` is told when the last rows are seen. Gives the keys that go through it.
 */
export function List({ items, height, row, selected, select, open, nearEnd, label, columns, id = 'list', foot, scroller }) {
  const own = useRef();
  const box = scroller ?? own;
  const [seen, set] = useState({ top: 0, room: 600 });
  const look = useCallback(() => {
    const at = box.current;
    if (at) set({ top: at.scrollTop, room: at.clientHeight });
  }, []);
  useLayoutEffect(() => {
    look();
    const watch = new ResizeObserver(look);
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  const from = Math.max(0, Math.floor(seen.top / height) - SPARE);
  const to = Math.min(items.length, Math.ceil((seen.top + seen.room) / height) + SPARE);
  useEffect(() => {
    if (nearEnd && to >= items.length - SPARE) nearEnd();
  }, [to, items.length, nearEnd]);
  useEffect(() => {
    const at = box.current;
    if (selected === undefined || selected < 0 || !at) return;
    const top = selected * height;
    if (top < at.scrollTop) at.scrollTop = top;
    else if (top + height > at.scrollTop + at.clientHeight) at.scrollTop = top + height - at.clientHeight;
  }, [selected]);
  const drawn = [];
  for (let index = from; index < to; index += 1) {
    const item = items[index];
    drawn.push(html`<div class="row" role="option" key=${item.key ?? index} id=${`${id}-${index}`} aria-selected=${index === selected ? 'true' : 'false'}
      aria-setsize=${items.length} aria-posinset=${index + 1} style=${{ top: `${index * height}px`, height: `${height}px` }}
      onClick=${(event) => { select(index); if (!event.target.closest('a, button')) open?.(index, event); }}>${row(item, index, index === selected)}</div>`);
  }
  return html`<div class="list" ref=${box} onScroll=${look}>
    ${columns}
    <div role="listbox" tabindex="0" aria-label=${label} aria-activedescendant=${selected >= 0 && selected < items.length ? `${id}-${selected}` : undefined}
      class="rows" style=${{ height: `${items.length * height}px` }} onKeyDown=${(event) => arrows(event, items.length, selected, select, open)}>
      ${drawn}
    </div>
    ${foot}
  </div>`;
}

function arrows(event, length, selected, select, open) {
  const page = 15;
  const to = { ArrowDown: selected + 1, ArrowUp: selected - 1, PageDown: selected + page, PageUp: selected - page, Home: 0, End: length - 1 }[event.key];
  if (event.key === 'Enter' && selected >= 0) open?.(selected, event);
  else if (to === undefined) return;
  else select(Math.max(0, Math.min(length - 1, to)));
  event.preventDefault();
}

/** j, k and enter for a list. */
export function listKeys(length, selected, select, open) {
  const go = (step) => () => {
    if (length === 0) return false;
    select(Math.max(0, Math.min(length - 1, selected + step)));
    return true;
  };
  return {
    j: go(1),
    k: go(-1),
    ArrowDown: go(1),
    ArrowUp: go(-1),
    Enter: () => (selected >= 0 && selected < length ? (open(selected), true) : false),
  };
}
