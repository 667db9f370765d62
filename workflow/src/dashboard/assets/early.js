// What cannot wait for the modules: the colours, before anything is drawn in others, and the first question, so that its answer is there
// when somebody can draw it.

try {
  const chosen = localStorage.getItem('workflow.theme');
  if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen;
} catch {
  // Without storage it is as the system has it.
}

if (location.hash === '' || location.hash === '#/runs') {
  const url = new URL('../../api/runs?order=newest&limit=200', document.currentScript.src);
  // Whoever asks for the same takes this, and sees what went wrong with it.
  window.asked = { url: url.href, answer: fetch(url) };
  window.asked.answer.catch(() => {});
}
