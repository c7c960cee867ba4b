/** A question, as one would write it elsewhere: in Python, SQL, or for curl. */

const RESERVED = /^(and|or|not|in|between|is|null|true|false|date|timestamp|select|from|where|group|by|order|limit)$/i;

/** A column in a formula: in quotes, unless it is a plain word. */
export const column = (name) => (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !RESERVED.test(name) ? name : `"${name.replaceAll('"', '""')}"`);

const py = (value) => (typeof value === 'string' ? JSON.stringify(value) : value === true ? 'True' : value === false ? 'False' : value === null ? 'None'
  : Array.isArray(value) ? `[${value.map(py).join(', ')}]`
    : typeof value === 'object' ? `{${Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${py(one)}`).join(', ')}}` : String(value));
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
  count: () => 'COUNT(*)', distinct_count: (x) => `COUNT(DISTINCT ${x})`,
  sum: (x) => `SUM(${x})`, average: (x) => `AVG(${x})`, variance: (x) => `VAR_POP(${x})`, standard_deviation: (x) => `STDDEV_POP(${x})`,
  median: (x) => `MEDIAN(${x})`, quantile: (x, q) => `QUANTILE(${x}, ${q.fraction})`, minimum: (x) => `MIN(${x})`, maximum: (x) => `MAX(${x})`,
  mode: (x) => `MODE(${x})`, covariance: (x, y) => `COVAR_POP(${x}, ${y})`, correlation: (x, y) => `CORR(${x}, ${y})`,
  regression: (y, x) => `REGR_INTERCEPT(${y}, ${x}), REGR_SLOPE(${y}, ${x})`,
};

const literal = (value) => (typeof value === 'string' ? `'${value.replaceAll("'", "''")}'` : String(value).toUpperCase());

/** Why a question is none in SQL; else nothing. */
function not_in_sql(question) {
  if (question.rho !== undefined) return 'a statement is asked at an ε here, not at a ρ';
  if (!AGGREGATES[question.kind]) return `SQL has no ${question.kind}`;
  if (question.kind === 'regression' && question.of.length > 2) return 'SQL has no regression by several columns';
  if (question.candidates) return 'MODE is among the owner’s keys in SQL';
  if (question.interval) return 'SQL has no interval of a quantile';
  return '';
}

/** As SQL; or why not. ε is said beside it. */
export function sql(question) {
  const not = not_in_sql(question);
  if (not) return `-- ${not}: ask it here, or in Python`;
  const several = Array.isArray(question.of);
  const each = several ? question.of.map((text, i) => [text, question.bounds?.[i]]) : [[question.of, question.bounds]];
  const of = each.map(([text, bounds]) => (bounds ? `CLAMP(${text}, ${bounds.join(', ')})` : text));
  const by = listed(question.by);
  const among = question.keys ? `${question.by} IN (${question.keys.map(literal).join(', ')})` : '';
  const where = question.where && among ? `(${question.where}) AND ${among}` : question.where ?? among;
  const aggregate = AGGREGATES[question.kind](...(several ? of : [of[0], question]));
  const within = question.discover?.within;
  const hint = within ? `/*+ domain(${question.by.replaceAll('"', '')}, ${(within.op === 'strings' ? [within.max_bytes] : within.op === 'dates' ? [within.first.date, within.last.date] : [within.low, within.high]).join(', ')}) */ ` : '';
  const delta = question.discover?.delta ? `-- delta = ${question.discover.delta}` : '';
  return [`SELECT ${hint}${[...by, aggregate].join(', ')}`, `FROM ${question.table.split('.').map(column).join('.')}`,
    where ? `WHERE ${where}` : '', by.length ? `GROUP BY ${by.join(', ')}` : '', `-- epsilon = ${question.epsilon}`, delta].filter(Boolean).join('\n');
}

/** For curl. */
export function curl(question) {
  const body = JSON.stringify(body_of(question)).replaceAll("'", "'\\''");
  return `curl -s '${location.origin}/questions' \\\n  -H "Authorization: Bearer $FPINQ_TOKEN" \\\n  -d '${body}'`;
}

export const PROGRAMS = {python: ['Python', python], sql: ['SQL', sql], curl: ['curl', curl]};
