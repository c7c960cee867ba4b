/** The state of the page, one plain object. Views are functions of it; `change` draws them again. */
export const state = {
  token: null, me: null, datasets: null, error: null, notice: null, busy: false,
  colours: 'light dark', width: 640,
  // analyst
  form: null, quote: null, quoted: null, asking: null, refused: null, questions: [], more: false, copied: null, form_of: 'python',
  mode: 'form', sql: {statement: '', epsilon: '0.1', delta: '', explained: null, asking: false, refused: null}, statements: [],
  // owner, auditor
  trace: null, sieve: {dataset: '', analyst: '', kind: '', word: ''}, paused: false, spending: null, verified: null,
};

let draw = () => {};
let waiting = false;

/** Say how the page is drawn. */
export const drawn_by = (how) => { draw = how; };

/** Change the state, and draw the page once for all changes of this turn. */
export function change(patch) {
  Object.assign(state, patch);
  if (!waiting) {
    waiting = true;
    queueMicrotask(() => { waiting = false; draw(state); });
  }
}
