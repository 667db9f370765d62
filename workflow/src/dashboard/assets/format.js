// Times, places and values as people read them.

const UNITS = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'm'],
  [1000, 's'],
];

/** `2h 5m`, `1.250s`, `17ms`: at most two units. */
export function duration(millis) {
  const whole = Math.max(0, Math.round(millis));
  if (whole < 1000) return `${whole}ms`;
  if (whole < 10_000) return `${(whole / 1000).toFixed(2)}s`;
  let left = whole;
  const parts = [];
  for (const [size, unit] of UNITS) {
    const count = Math.floor(left / size);
    if (count > 0 || parts.length > 0) parts.push([count, unit]);
    left -= count * size;
  }
  return parts
    .slice(0, 2)
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count}${unit}`)
    .join(' ');
}

/** `12s ago`, `in 3h`. */
export function ago(at, now) {
  const past = now - at;
  if (Math.abs(past) < 1000) return 'now';
  const text = duration(Math.floor(Math.abs(past) / 1000) * 1000).replace(/\.\d+s/, 's');
  return past > 0 ? `${text} ago` : `in ${text}`;
}

const two = (n) => String(n).padStart(2, '0');

/** `2026-11-30 18:28:36`, where the person is. */
export function instant(at) {
  const d = new Date(at);
  if (Number.isNaN(d.getTime())) return 'beyond all time';
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

/** With milliseconds. */
export function precise(at) {
  return `${instant(at)}.${String(((at % 1000) + 1000) % 1000).padStart(3, '0')}`;
}

/** `1,234`. */
export function count(n) {
  return n.toLocaleString('en');
}

const plain = (key) => key !== '' && !/^\d+$/.test(key);
const spelled = (key) =>
  plain(key)
    ? // eslint-disable-next-line no-control-regex
      key.replace(/[/[\]#%"\u0000-\u001f\u007f-\u009f]/g, (char) => `%${char.charCodeAt(0).toString(16).padStart(2, '0')}`)
    : `"${key}"`;

/** One segment of a location as it stands in a record. */
export function segment(part) {
  if (typeof part === 'string') return part;
  if (typeof part === 'number') return `[${part}]`;
  if ('branch' in part) return part.branch;
  const again = part.occurrence > 0 ? `#${part.occurrence + 1}` : '';
  return `[${spelled(part.key)}${again}]`;
}

/** `items[3]/ship`: a location as the library writes it. */
export function place(location = []) {
  let text = '';
  for (const part of location) {
    const word = segment(part);
    text += word.startsWith('[') || text === '' ? word : `/${word}`;
  }
  return text;
}

/** Whether a location is the library's own: desks and positions of guides. */
export function isOwn(location = []) {
  return location.some((part) => (typeof part === 'string' ? part : part.branch ?? '').startsWith('\u0000'));
}

/** A payload's value, or that it is sealed. */
export function value(payload) {
  if (payload === undefined || payload === null) return undefined;
  if ('json' in payload) return payload.json;
  return `sealed by codec ${payload.codec}: ${payload.hex.length / 2} bytes`;
}

/** JSON on one line, cut. */
export function brief(json, most = 120) {
  const text = json === undefined ? '' : JSON.stringify(json);
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

/** A failure in a line: `declined (exhausted after 4 attempts)`. */
export function failed(failure) {
  const times = failure.attempts > 1 ? ` after ${failure.attempts} attempts` : '';
  return `${failure.message} (${failure.kind.replaceAll('_', ' ')}${times})`;
}

/** `rolling back`. */
export const words = (word) => word.replaceAll('_', ' ');
