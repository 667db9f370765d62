// The HTTP API, which lies beside this page's files.

const base = new URL('../../api/', import.meta.url);

/** What the API refused, in its own words. */
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail ?? `the service answered ${status}`);
    this.status = status;
    this.title = body.title ?? 'that did not work';
    this.kind = (body.type ?? '').replace('workflow:', '');
  }
}

/** A path of the API, with what is asked for; what is undefined or empty is left out. */
export function path(parts, query = {}) {
  const url = new URL(parts.map(encodeURIComponent).join('/'), base);
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== '' && value !== null) url.searchParams.set(name, value);
  }
  return url;
}

/** What `early.js` has asked for already. Once: after that it is old. */
function taken(url) {
  const asked = window.asked;
  if (asked?.url !== url.href) return undefined;
  window.asked = undefined;
  return asked.answer;
}

async function ask(url, options) {
  let response;
  try {
    response = await (taken(url) ?? fetch(url, options));
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Problem(0, { title: 'the service does not answer', detail: 'It may be restarting; this page asks again.' });
  }
  const text = await response.text();
  let body = {};
  try {
    body = text ? JSON.parse(text) : {};
  } catch {
    // Something in between answered, and not the API.
  }
  if (!response.ok) throw new Problem(response.status, body);
  return { status: response.status, body };
}

/** Reads. */
export async function get(parts, query, signal) {
  return (await ask(path(parts, query), { signal })).body;
}

/** Does something. The body is JSON text, or a value. */
export async function post(parts, { query, body, key } = {}) {
  const headers = {};
  if (key) headers['idempotency-key'] = key;
  const options = { method: 'POST', headers };
  if (body !== undefined) {
    headers['content-type'] = 'application/json';
    options.body = typeof body === 'string' ? body : JSON.stringify(body);
  }
  return ask(path(parts, query), options);
}

/** All records of a run after a number, page by page: `take` is given each page. */
export async function history(run, after, signal, take) {
  let from = after;
  do {
    const page = await get(['runs', run, 'history'], { after: from || undefined, limit: 1000 }, signal);
    take(page.records);
    from = page.next;
  } while (from);
}
