/** The server, as every client has it: the reader's own token, and nothing else. */
import {state} from './store.js';

const WIRE = 1;

/** What the server refused, or that it did not reply: `code`, `message`, `fields`. */
export class Refused extends Error {
  constructor(code, message, fields = {}) {
    super(message);
    this.code = code;
    this.fields = fields;
  }
}

/** A reply as JSON (or text); Refused says why not. */
export async function send(method, path, body, {csv = false, signal} = {}) {
  let reply;
  try {
    reply = await fetch(path, {
      method, signal, cache: 'no-store', credentials: 'omit',
      headers: {
        Authorization: `Bearer ${state.token}`, 'Fpinq-Wire': String(WIRE),
        ...(body === undefined ? {} : {'Content-Type': 'application/json'}),
        ...(csv ? {Accept: 'text/csv'} : {}),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Refused('unavailable', 'No reply from the server. Is it running? The page tries again.');
  }
  if (Number(reply.headers.get('Fpinq-Wire') ?? WIRE) > WIRE) {
    throw new Refused('other_version', 'The server is of a newer version than this page: load the page again.');
  }
  if (csv && reply.ok) return reply.text();
  let told;
  try {
    told = await reply.json();
  } catch {
    throw new Refused('unavailable', `This is not fpinq's reply (status ${reply.status}). Is there a proxy in between?`);
  }
  if (!reply.ok) throw new Refused(told.error.code, told.error.message, told.error.fields);
  return told;
}

export const get = (path, options) => send('GET', path, undefined, options);
export const post = (path, body, options) => send('POST', path, body, options);

/** A name that nobody else has: a question that is sent again under it is charged once. */
export const new_id = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, '0')).join('');

export const pause = (milliseconds) => new Promise((done) => { setTimeout(done, milliseconds); });
