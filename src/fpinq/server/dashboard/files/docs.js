/** The HTTP interface, as /openapi.json says it. */
import {html, nothing, render} from './vendor/lit-html.js';

const main = document.querySelector('main');
const last = (ref) => ref.split('/').at(-1);

/** A schema in words. */
function shown(schema) {
  if (!schema) return '';
  if (schema.$ref) return html`<a href=${`#${last(schema.$ref)}`}>${last(schema.$ref)}</a>`;
  if (schema.anyOf) return schema.anyOf.map((one, i) => html`${i ? ' or ' : ''}${shown(one)}`);
  if (schema.enum) return html`<code>${schema.enum.map((one) => JSON.stringify(one)).join(' ')}</code>`;
  if (schema.type === 'array') return html`list of ${schema.items ? shown(schema.items) : schema.prefixItems?.map((one, i) => html`${i ? ', ' : ''}${shown(one)}`)}`;
  if (schema.type === 'object' && schema.properties) return html`${Object.entries(schema.properties).map(([name, one]) => html`<code>${name}</code>: ${shown(one)} `)}`;
  if (schema.type === 'object') return 'object';
  return [schema.type].flat().join(' or ') || 'anything';
}

const body = (content, what) => {
  const schema = content?.['application/json']?.schema;
  return schema ? html`<p>${what}: ${shown(schema)}</p>` : nothing;
};

const operation = (path, method, one) => html`<article class="operation"><h3><code>${method.toUpperCase()} ${path}</code></h3>
  <p>${one.summary}${one.security ? nothing : ' (no token)'}</p>${one.description && one.description !== one.summary ? html`<p class="help">${one.description}</p>` : nothing}
  ${(one.parameters ?? []).length ? html`<p class="help">${one.parameters.map((p) => html`<code>${p.name}</code> `)}</p>` : nothing}
  ${body(one.requestBody?.content, 'Takes')}${body(Object.entries(one.responses).find(([status]) => status.startsWith('2'))?.[1].content, 'Gives')}
  ${Object.entries(one.requestBody?.content?.['application/json']?.examples ?? {}).map(([, example]) => html`<details><summary>${example.summary}</summary><pre tabindex="0"><code>${JSON.stringify(example.value, null, 2)}</code></pre></details>`)}
</article>`;

const schema = (name, one) => html`<article id=${name} class="operation"><h3><code>${name}</code></h3><p class="help">${one.description}</p>
  <ul>${Object.entries(one.properties ?? {}).map(([field, of]) => html`<li><code>${field}</code>${(one.required ?? []).includes(field) ? nothing : ' (optional)'}: ${shown(of)}${of.description ? html` <span class="help">${of.description}</span>` : nothing}</li>`)}</ul></article>`;

try {
  const described = await (await fetch('/openapi.json', {credentials: 'omit'})).json();
  render(html`<h1>The HTTP interface</h1>
    ${described.info.description.split('\n\n').map((text) => html`<p>${text.replace(/[`*]/g, '')}</p>`)}
    <h2>Addresses</h2>${Object.entries(described.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, one]) => operation(path, method, one)))}
    <h2>What is sent and told</h2>${Object.entries(described.components.schemas).map(([name, one]) => schema(name, one))}`, main);
} catch {
  render(html`<p class="warn">No reply from the server: load the page again once it runs.</p>`, main);
}
