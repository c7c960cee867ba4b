/** What happens when: the only file that calls the server. */
import {html, render} from './vendor/lit-html.js';
import {get, new_id, pause, post, Refused} from './api.js';
import {edited, form_of, may_ask, question_of, tables_of} from './form.js';
import {change, drawn_by, state} from './store.js';
import {answers} from './views/answers.js';
import {budgets} from './views/budgets.js';
import {frame, sign_in} from './views/frame.js';
import {question} from './views/question.js';
import {may_state, statement} from './views/statement.js';
import {watching} from './views/watching.js';

const KEY = 'fpinq-token';
const COLOURS = 'fpinq-colours';
const root = document.getElementById('page');

// ── drawing ──────────────────────────────────────────────────────────────────────────

function view() {
  if (!state.me || !state.datasets) return state.busy && !state.error ? html`<p class="help">…</p>` : sign_in(state, on);
  if (state.me.role === 'analyst') return html`<div class="columns">${state.mode === 'sql' ? statement(state, on) : question(state, on)}<div>${budgets(state)}${answers(state, on)}</div></div>`;
  return watching(state, on);
}

root.replaceChildren();
drawn_by(() => render(frame(state, on, view()), root));

function measure() {
  const all = Math.min(document.documentElement.clientWidth, 1160) - 32;
  const wide = document.documentElement.clientWidth >= 928;
  const width = Math.floor(state.me?.role === 'analyst' && wide ? Math.min(all, 1080) - 368 - 64 : Math.min(all, 1080));
  if (width !== state.width) change({width});
}
addEventListener('resize', measure);

// ── signing in and out ───────────────────────────────────────────────────────────────

async function begin(token) {
  change({token, busy: true, error: null});
  try {
    const [me, {datasets}] = [await get('/me'), await get('/datasets')];
    sessionStorage.setItem(KEY, token);
    change({me, datasets, busy: false});
    measure();
    if (me.role === 'analyst') {
      const first = tables_of(datasets)[0];
      if (first) change({form: form_of(first, at_of(first.dataset.name))});
      await history_from();
      requote();
      await stated_before();
    } else {
      watch();
      spend();
    }
  } catch (error) {
    if (error.code !== 'unavailable') sessionStorage.removeItem(KEY);
    change({me: null, token: null, busy: false, error: signed_out(error)});
  }
}

const signed_out = (error) => (error.code === 'not_authenticated'
  ? 'This token is not known, has ended or was revoked: ask the data’s owner for one.' : error.message);

/** What to say of an error; a token that has ended leads back to the beginning. */
function failed(error) {
  if (error.name === 'AbortError') return;
  if (!(error instanceof Refused)) throw error;
  if (error.code === 'not_authenticated') {
    sessionStorage.removeItem(KEY);
    change({me: null, token: null, error: signed_out(error)});
  } else {
    change({error: error.message});
  }
}

/** What is left now. */
async function refresh() {
  const [me, {datasets}] = [await get('/me'), await get('/datasets')];
  change({me, datasets, error: null});
}

// ── asking ───────────────────────────────────────────────────────────────────────────

/** What a data set's budget is in: "epsilon" or "rho". */
const at_of = (name) => state.me.datasets[name]?.notion ?? 'epsilon';

let quoting = null;
let timer = 0;

/** A quote of what the form says, a moment after the last change. */
function requote() {
  clearTimeout(timer);
  timer = setTimeout(async () => {
    quoting?.abort();
    quoting = new AbortController();
    const body = state.form && question_of(state.form, state.datasets);
    if (!body) { change({quote: null, quoted: null}); return; }
    try {
      change({quote: await post('/quotes', body, {signal: quoting.signal}), quoted: JSON.stringify(body), error: null});
    } catch (error) { failed(error); }
  }, 180);
}

async function history_from(before) {
  const more = before === undefined ? '' : `&before=${before}`;
  const {questions, more: earlier} = await get(`/questions?limit=20${more}`);
  change({questions: before === undefined ? questions : [...state.questions, ...questions], more: earlier});
}

/** Ask, and ask again under the same id while nobody replies: it is charged once. */
async function ask(body) {
  if (state.asking) return;
  change({asking: body.request_id, refused: null, notice: null});
  try {
    for (let attempt = 0; ; attempt += 1) {
      try {
        await post('/questions', body);
        break;
      } catch (error) {
        const passing = ['unavailable', 'too_many_requests', 'ledger_error'].includes(error.code);
        if (!passing || attempt === 5) throw error;
        change({error: error.message});
        await pause(400 * 2 ** attempt);
      }
    }
    change({error: null});
  } catch (error) {
    if (error.code === 'not_authenticated') failed(error);
    else change({refused: error});
  }
  change({asking: null});
  try {
    await Promise.all([refresh(), history_from()]);
    requote();
  } catch (error) { failed(error); }
}

// ── in SQL ───────────────────────────────────────────────────────────────────────────

const STATEMENTS = 'fpinq-statements';
const change_sql = (patch) => change({sql: {...state.sql, ...patch}});
const saved = () => JSON.parse(sessionStorage.getItem(STATEMENTS) ?? '[]');

/** What the statement would do: free, a moment after the last change. */
function explain() {
  clearTimeout(timer);
  timer = setTimeout(async () => {
    const [of, at, delta] = [state.sql.statement.trim(), state.sql.epsilon.trim(), state.sql.delta.trim()];
    if (!of) { change_sql({explained: null}); return; }
    try {
      const told = await post('/sql', {statement: `EXPLAIN ${of}`, epsilon: at, ...(delta ? {delta} : {})});
      change_sql({explained: {...told, of, at, delta}});
    } catch (error) {
      if (error.code === 'not_authenticated') failed(error);
      else change_sql({explained: {mistake: error.message}});
    }
  }, 300);
}

async function state_it(asked) {
  const told = await post('/sql', asked);
  const others = state.statements.filter((one) => one.request_id !== asked.request_id);
  change({statements: [{...asked, told}, ...others]});
}

/** The statements of this tab, sent again under their ids after a reload: they were charged once. */
async function stated_before() {
  for (const asked of saved().reverse()) {
    try { await state_it(asked); } catch (error) { if (!(error instanceof Refused)) throw error; }
  }
}

// ── watching ─────────────────────────────────────────────────────────────────────────

let watched = 0;

const sieved = () => Object.entries(state.sieve).filter(([, text]) => text).map(([name, text]) => `&${name}=${encodeURIComponent(text)}`).join('');

/** The trace from its end, and then what is new, as it happens. */
async function watch() {
  watched += 1;
  const mine = watched;
  const current = () => mine === watched && state.me && !state.paused;
  try {
    change({trace: await get(`/trace?newest=true&limit=50${sieved()}`)});
    let seen = state.trace.head.seq;
    while (current()) {
      let found;
      try {
        found = await get(`/trace?after=${seen}&limit=200&wait=20${sieved()}`);
        if (state.error) change({error: null});
      } catch (error) {
        if (error.code !== 'unavailable') throw error;
        change({error: error.message});
        await pause(2000);
        continue;
      }
      if (!current()) return;
      if (found.looked_at > seen) {
        seen = found.looked_at;
        change({trace: {...state.trace, entries: [...found.entries.reverse(), ...state.trace.entries].slice(0, 1000), head: found.head}});
        await Promise.all([refresh(), spend()]);
      }
    }
  } catch (error) { if (mine === watched) failed(error); }
}

async function spend() {
  try {
    change({spending: (await get('/spending')).datasets});
  } catch (error) { failed(error); }
}

// ── what the views can do ────────────────────────────────────────────────────────────

const on = {
  sign_in(event) {
    event.preventDefault();
    const token = event.target.elements.token.value.trim();
    if (/^[\x21-\x7e]+$/.test(token)) begin(token);
    else change({error: 'A token looks like fpq_…, in one piece.'});
  },
  sign_out() {
    sessionStorage.removeItem(KEY);
    sessionStorage.removeItem(STATEMENTS);
    watched += 1;
    change({statements: [], token: null, me: null, datasets: null, form: null, quote: null, questions: [], trace: null, spending: null, verified: null, refused: null, error: null});
  },
  colours(event) {
    sessionStorage.setItem(COLOURS, event.target.value);
    colour(event.target.value);
  },
  edit(event) {
    const {name, value, type, checked} = event.target;
    const form = edited(state.form, name, type === 'checkbox' ? checked : value, {datasets: state.datasets, at_of});
    change({form, refused: null});
    requote();
  },
  ask(event) {
    event.preventDefault();
    const body = question_of(state.form, state.datasets);
    if (!may_ask(state, body)) return;
    ask({...body, request_id: new_id()});
  },
  mode: (mode) => { change({mode, quote: null, quoted: null}); if (mode === 'form') requote(); },
  edit_sql(event) {
    change_sql({[event.target.name]: event.target.value, refused: null});
    explain();
  },
  async ask_sql(event) {
    event.preventDefault();
    if (!may_state(state.sql)) return;
    const delta = state.sql.delta.trim();
    const asked = {statement: state.sql.statement.trim(), epsilon: state.sql.epsilon.trim(), ...(delta ? {delta} : {}), request_id: new_id()};
    change_sql({asking: true, refused: null});
    sessionStorage.setItem(STATEMENTS, JSON.stringify([asked, ...saved()].slice(0, 10)));
    try {
      await state_it(asked);
      await refresh();
      explain();
    } catch (error) {
      if (error.code === 'not_authenticated') failed(error);
      else change_sql({refused: error});
    }
    change_sql({asking: false});
  },
  again: (kept) => ask({...kept.question, request_id: kept.request_id}),
  older: () => history_from(state.questions.at(-1).number).catch(failed),
  form_of: (kind) => change({form_of: kind, copied: null}),
  async copy(text, where) {
    try {
      await navigator.clipboard.writeText(text);
      change({copied: where});
    } catch { change({error: 'This browser does not let the page copy: select the text, and copy it.'}); }
  },
  async csv(kept) {
    try {
      const text = await get(`/questions/${encodeURIComponent(kept.request_id)}?format=csv`, {csv: true});
      const link = document.createElement('a');
      link.href = URL.createObjectURL(new Blob([text], {type: 'text/csv'}));
      link.download = `${kept.question.kind}-${kept.number}.csv`;
      link.click();
      URL.revokeObjectURL(link.href);
    } catch (error) { failed(error); }
  },
  async freeze(dataset) {
    try {
      await post(`/datasets/${encodeURIComponent(dataset.name)}/${dataset.frozen ? 'unfreeze' : 'freeze'}`);
      await refresh();
    } catch (error) { failed(error); }
  },
  sieve(event) {
    change({sieve: {...state.sieve, [event.target.name]: event.target.value}});
    clearTimeout(timer);
    timer = setTimeout(watch, 250);
  },
  pause() {
    change({paused: !state.paused});
    watch();
  },
  async earlier() {
    try {
      const found = await get(`/trace?before=${state.trace.looked_at}&limit=100${sieved()}`);
      change({trace: {...state.trace, entries: [...state.trace.entries, ...found.entries], looked_at: found.looked_at}});
    } catch (error) { failed(error); }
  },
  async verify() {
    if (state.verified === 'under way') return;
    change({verified: 'under way'});
    try {
      change({verified: await post('/ledger/verify')});
    } catch (error) {
      change({verified: null});
      failed(error);
    }
  },
};

// ── beginning ────────────────────────────────────────────────────────────────────────

function colour(scheme) {
  document.documentElement.dataset.colours = scheme;
  change({colours: scheme});
}

colour(sessionStorage.getItem(COLOURS) ?? 'light dark');
measure();
const given = /^#token=([\x21-\x7e]+)$/.exec(location.hash);
if (given) history.replaceState(null, '', '/');  // not in the address, nor in the browser's history
const token = given ? decodeURIComponent(given[1]) : sessionStorage.getItem(KEY);
if (token) begin(token);
else change({});
