/** A question, as one would write it elsewhere: in Python, SQL, or for curl. */

const RESERVED = /^(and|or|not|in|between|is|null|true|false|date|timestamp|select|from|where|group|by|order|limit)$/i;

/** A column in a formula: in quotes, unless it is a plain word. */
export const column = (name) => (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !RESERVED.test(name) ? name : `"${name.replaceAll('"', '""')}"`);

const py = (value) => (typeof value === 'string' ? JSON.stringify(value) : value === true ? 'True' : value === false ? 'False'
  : Array.isArray(value) ? `[${value.map(py).join(', ')}]` : String(value));
const listed = (by) => (by === undefined ? [] : [by].flat());

/** The question without what is only the page's. */
export const body_of = (question) => Object.fromEntries(Object.entries(question).filter(([name]) => !['request_id', 'size'].includes(name)));

/** For Python, without an fpinq client: the same body. */
export function python(question) {
  const body = Object.entries(body_of(question)).map(([name, value]) => `    ${JSON.stringify(name)}: ${py(value)},`);
  return ['import json, os, urllib.request', '',
    'question = {', ...body, '}',
    'request = urllib.request.Request(',
    `    ${JSON.stringify(`${location.origin}/questions`)}, json.dumps(question).encode(),`,
    '    {"Authorization": f"Bearer {os.environ[\'FPINQ_TOKEN\']}"})',
    'for answer in json.load(urllib.request.urlopen(request))["answers"]:',
    '    print(*answer["key"], answer["value"], answer["low"], answer["high"])'].join('\n');
}

const AGGREGATES = {
  count: () => 'COUNT(*)', distinct_count: (x) => `COUNT(DISTINCT ${x})`, proportion: null,
  sum: (x) => `SUM(${x})`, average: (x) => `AVG(${x})`, variance: (x) => `VAR_POP(${x})`, standard_deviation: (x) => `STDDEV_POP(${x})`,
  median: (x) => `MEDIAN(${x})`, quantile: (x, q) => `QUANTILE(${x}, ${q.fraction})`, minimum: (x) => `MIN(${x})`, maximum: (x) => `MAX(${x})`,
};

/** As SQL; or why not. ε is said beside it. */
export function sql(question) {
  const made = AGGREGATES[question.kind];
  if (!made) return `-- SQL has no ${question.kind}: ask it here, or in Python`;
  const of = question.bounds && question.of ? `CLAMP(${question.of}, ${question.bounds.join(', ')})` : question.of;
  const by = listed(question.by);
  return [`SELECT ${[...by, made(of, question)].join(', ')}`, `FROM ${question.table.split('.').map(column).join('.')}`,
    question.where ? `WHERE ${question.where}` : '', by.length ? `GROUP BY ${by.join(', ')}` : '', `-- epsilon = ${question.epsilon}`].filter(Boolean).join('\n');
}

/** For curl. */
export function curl(question) {
  const body = JSON.stringify(body_of(question)).replaceAll("'", "'\\''");
  return `curl -s '${location.origin}/questions' \\\n  -H "Authorization: Bearer $FPINQ_TOKEN" \\\n  -d '${body}'`;
}

export const PROGRAMS = {python: ['Python', python], sql: ['SQL', sql], curl: ['curl', curl]};
