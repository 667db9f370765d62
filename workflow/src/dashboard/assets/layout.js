// Where the parts of a graph stand: in layers, from top to bottom.
//
// 1. A group is laid out by itself, and stands in the group around it as one box. So boxes never overlap, and what is close in the code
//    is close in the picture.
// 2. In a group: layers by the longest way, places in a layer by where the neighbours are, and then straight lines as far as that goes.
// 3. A line that passes layers by has an empty place in each of them, so it goes around what stands there.

const GAP = { x: 28, y: 34, group: 14, label: 22 };
/** Lines that go against the order, or beside it. */
const BESIDE = new Set(['back', 'undoes', 'stood']);

/** Gives each node and group its place, and each edge its points. Nodes have `width` and `height`. */
export function layout({ nodes, edges, groups }) {
  const parent = new Map([...nodes.map((node) => [node.id, node.group]), ...groups.map((group) => [group.id, group.parent])]);
  const inner = (within) => [...nodes.filter((node) => node.group === within), ...groups.filter((group) => group.parent === within)];
  const boxes = new Map();
  const bends = new Map();

  const lay = (within) => {
    const items = inner(within).map((item) => {
      if ('width' in item) return { id: item.id, w: item.width, h: item.height, channel: item.kind === 'channel' };
      const size = lay(item.id);
      return { id: item.id, w: Math.max(size.w + 2 * GAP.group, item.label.length * 7 + 30), h: size.h + GAP.group + GAP.label, group: true };
    });
    const mine = new Set(items.map((item) => item.id));
    const lift = (id) => {
      let at = id;
      while (at !== undefined && !mine.has(at)) at = parent.get(at);
      return at;
    };
    const links = [];
    for (const [number, edge] of edges.entries()) {
      if (BESIDE.has(edge.kind)) continue;
      const from = lift(edge.from), to = lift(edge.to);
      if (from !== undefined && to !== undefined && from !== to) links.push({ number, from, to });
    }
    return layers(items, links, boxes, bends);
  };
  const size = lay(undefined);

  // From places within a group to places in the whole.
  const left = new Map([[undefined, { x: 0, y: 0 }]]);
  const settle = (within) => {
    const at = left.get(within);
    for (const item of inner(within)) {
      const box = boxes.get(item.id);
      box.x += at.x;
      box.y += at.y;
      if (!('width' in item)) {
        const content = box.content;
        left.set(item.id, { x: box.x + (box.w - content.w) / 2, y: box.y + GAP.label });
        settle(item.id);
      }
    }
  };
  for (const group of groups) boxes.get(group.id).content = content(group.id);
  settle(undefined);

  function content(id) {
    let w = 0, h = 0;
    for (const item of inner(id)) {
      const box = boxes.get(item.id);
      w = Math.max(w, box.x + box.w);
      h = Math.max(h, box.y + box.h);
    }
    return { w, h };
  }

  const common = (a, b) => {
    const above = new Set();
    for (let at = parent.get(a); at !== undefined; at = parent.get(at)) above.add(at);
    for (let at = parent.get(b); at !== undefined; at = parent.get(at)) if (above.has(at)) return at;
    return undefined;
  };
  const lines = edges.map((edge, number) => {
    const from = boxes.get(edge.from), to = boxes.get(edge.to);
    const within = common(edge.from, edge.to);
    if (BESIDE.has(edge.kind)) {
      const around = within === undefined ? size.w : boxes.get(within).x + boxes.get(within).w;
      const side = Math.min(around + 8, Math.max(from.x + from.w, to.x + to.w) + 26);
      return { beside: true, points: [[from.x + from.w, from.y + from.h / 2], [side, (from.y + to.y) / 2 + from.h / 2], [to.x + to.w, to.y + to.h / 2]] };
    }
    const at = left.get(within) ?? { x: 0, y: 0 };
    const points = (bends.get(number) ?? []).map(([x, y]) => [x + at.x, y + at.y]);
    return { points: [[from.x + from.w / 2, from.y + from.h], ...points, [to.x + to.w / 2, to.y]] };
  });
  return { width: size.w + 30, height: size.h, boxes, lines };
}

/** Lays out the items of one group; their places are put into `boxes`, the bends of long lines into `bends`. */
function layers(items, links, boxes, bends) {
  const known = new Map(items.map((item) => [item.id, item]));
  const rank = ranks(items, links);
  const rows = [];
  const put = (item, at) => (rows[at] ??= []).push(item);
  for (const item of items) put(item, rank.get(item.id));
  for (let at = 0; at < rows.length; at += 1) rows[at] ??= [];

  const up = new Map(), down = new Map();
  const join = (above, below) => {
    (down.get(above) ?? down.set(above, []).get(above)).push(below);
    (up.get(below) ?? up.set(below, []).get(below)).push(above);
  };
  const long = [];
  for (const { number, from, to } of links) {
    const first = rank.get(from), last = rank.get(to);
    if (last <= first) continue;
    let before = known.get(from);
    const through = [];
    for (let at = first + 1; at < last; at += 1) {
      const empty = { w: 10, h: 0, empty: true };
      put(empty, at);
      join(before, empty);
      through.push(empty);
      before = empty;
    }
    join(before, known.get(to));
    if (through.length) long.push({ number, through });
  }

  for (let sweep = 0; sweep < 6; sweep += 1) {
    const towards = sweep % 2 === 0 ? up : down;
    const order = sweep % 2 === 0 ? rows : rows.toReversed();
    const place = new Map();
    for (const row of rows) row.forEach((item, at) => place.set(item, at / Math.max(1, row.length - 1 || 1)));
    for (const row of order) {
      const wish = new Map(row.map((item, at) => {
        const near = towards.get(item);
        return [item, near ? near.reduce((sum, one) => sum + place.get(one), 0) / near.length : at / Math.max(1, row.length - 1)];
      }));
      row.sort((a, b) => wish.get(a) - wish.get(b));
      row.forEach((item, at) => place.set(item, at / Math.max(1, row.length - 1)));
    }
  }

  for (const row of rows) {
    let x = 0;
    for (const item of row) {
      item.cx = x + item.w / 2;
      x += item.w + GAP.x;
    }
  }
  for (let sweep = 0; sweep < 12; sweep += 1) {
    const towards = sweep % 2 === 0 ? up : down;
    for (const row of sweep % 2 === 0 ? rows : rows.toReversed()) straighten(row, towards);
  }

  const least = Math.min(0, ...items.map((item) => item.cx - item.w / 2));
  let y = 0, width = 0;
  const inner = rows.map((row) => Math.max(0, ...row.map((item) => item.h)));
  rows.forEach((row, at) => {
    for (const item of row) {
      item.cx -= least;
      item.cy = y + inner[at] / 2;
      width = Math.max(width, item.cx + item.w / 2);
      if (!item.empty) boxes.set(item.id, { x: item.cx - item.w / 2, y: item.cy - item.h / 2, w: item.w, h: item.h });
    }
    y += inner[at] + GAP.y;
  });
  for (const { number, through } of long) bends.set(number, through.map((item) => [item.cx, item.cy]));
  return { w: width, h: Math.max(0, y - GAP.y) };
}

/** The layer of each item: the longest way to it. A line that would close a circle does not count. */
function ranks(items, links) {
  const out = new Map(items.map((item) => [item.id, []]));
  for (const link of links) out.get(link.from).push(link.to);
  const state = new Map(), order = [];
  const visit = (id) => {
    state.set(id, 1);
    out.set(id, out.get(id).filter((to) => state.get(to) !== 1));
    for (const to of out.get(id)) if (!state.has(to)) visit(to);
    state.set(id, 2);
    order.push(id);
  };
  for (const item of items) if (!state.has(item.id)) visit(item.id);
  const rank = new Map(items.map((item) => [item.id, 0]));
  for (const id of order.reverse()) for (const to of out.get(id)) rank.set(to, Math.max(rank.get(to), rank.get(id) + 1));
  // What only leads somewhere stands close to where it leads.
  const led = new Set(links.map((link) => link.to));
  for (const item of items) {
    const to = out.get(item.id);
    if (item.channel && !led.has(item.id) && to.length) rank.set(item.id, Math.max(0, Math.min(...to.map((id) => rank.get(id))) - 1));
  }
  return rank;
}

/** Moves the items of a row to where their neighbours are, in their order and with room between them: by least squares. */
function straighten(row, towards) {
  const blocks = [];
  let offset = 0;
  row.forEach((item, at) => {
    if (at > 0) offset += row[at - 1].w / 2 + item.w / 2 + (row[at - 1].empty || item.empty ? GAP.x / 2 : GAP.x);
    const near = towards.get(item);
    const wish = near ? near.reduce((sum, one) => sum + one.cx, 0) / near.length : item.cx;
    const weight = near ? (item.empty ? 3 : 1) : 0.05;
    let block = { sum: (wish - offset) * weight, weight, items: [[item, offset]] };
    while (blocks.length && blocks.at(-1).sum / blocks.at(-1).weight > block.sum / block.weight) {
      const before = blocks.pop();
      block = { sum: before.sum + block.sum, weight: before.weight + block.weight, items: before.items.concat(block.items) };
    }
    blocks.push(block);
  });
  for (const block of blocks) for (const [item, offset] of block.items) item.cx = block.sum / block.weight + offset;
}
