// The one place that names the libraries. Text that stands in `html` is text on the page, whatever it holds.

import htm from './vendor/htm.js';
import { h } from './vendor/preact.js';

export { Fragment, render } from './vendor/preact.js';
export { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from './vendor/hooks.js';

export const html = htm.bind(h);
