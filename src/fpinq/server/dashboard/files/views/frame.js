/** What is around everything: the head, the foot, signing in, and what went wrong. */
import {html, nothing, svg} from '../vendor/lit-html.js';

const COLOURS = {'light dark': 'as the system', light: 'light', dark: 'dark'};

const HATCHES = svg`<pattern id="hatch" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="hatch" width="3.5" height="7"></rect></pattern>
  <pattern id="hatch-warn" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="hatch warn" width="3.5" height="7"></rect></pattern>`;

export const frame = (state, on, inside) => html`
  <svg class="away" width="0" height="0" aria-hidden="true"><defs>${HATCHES}</defs></svg>
  <header class="top">
    <h1 class="name">fpinq</h1>
    <p class="says">Private statistics of sensitive tables</p>
    ${state.me ? html`<p class="who">${state.me.name}, ${state.me.role}
      <button class="link" type="button" @click=${on.sign_out}>Sign out</button></p>` : nothing}
  </header>
  <main>
    <div role="alert">${state.error ? html`<p class="warn banner">${state.error}</p>` : nothing}</div>
    ${inside}
  </main>
  <footer>
    <p><label>Colours <select @change=${on.colours}>
      ${Object.entries(COLOURS).map(([value, text]) => html`<option value=${value} ?selected=${state.colours === value}>${text}</option>`)}
    </select></label></p>
    <p><a href="/docs">The HTTP interface</a></p>
  </footer>`;

export const sign_in = (state, on) => html`
  <form class="sign-in" @submit=${on.sign_in}>
    <h2>Sign in</h2>
    <p>Ask questions of tables that nobody may see. Every answer has noise that hides any one person, and says how much.</p>
    <label for="token">Your token</label>
    <input id="token" name="token" type="password" autocomplete="off" spellcheck="false" required aria-describedby="token-help">
    <p id="token-help" class="help">It looks like fpq_…, and comes from the data’s owner: fpinq token create. It stays in this tab.</p>
    <button class="main" type="submit" aria-disabled=${state.busy}>Sign in</button>
  </form>`;
