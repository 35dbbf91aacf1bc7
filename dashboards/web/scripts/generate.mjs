// Writes what is generated: the types of the API from its OpenAPI document, and the list of licences of what the pages are
// built of. With --check it writes nothing and fails where a file is not what it would write.
import { readFileSync, writeFileSync } from 'node:fs';
import openapi, { astToString } from 'openapi-typescript';

const root = new URL('..', import.meta.url);
const document = JSON.parse(readFileSync(new URL('../../query/api/openapi.json', root), 'utf8'));
const files = { 'src/api/schema.d.ts': await types(), 'src/api/lists.ts': lists(), 'LICENSES.md': licences() };
for (const [name, want] of Object.entries(files)) {
  const path = new URL(name, root);
  if (!process.argv.includes('--check')) writeFileSync(path, want);
  else if (readFileSync(path, 'utf8') !== want) {
    console.error(`dashboards/web/${name} is not what is generated: run npm run generate`);
    process.exitCode = 1;
  }
}

async function types() {
  return '// Generated from query/api/openapi.json: npm run generate.\n\n' + astToString(await openapi(document));
}

/** lists names the members that are lists wherever they are: what the server has none of may come as null (see src/api/ask.ts). */
function lists() {
  const seen = { list: new Set(), other: new Set() };
  for (const schema of Object.values(document.components.schemas)) {
    for (const [name, member] of Object.entries(schema.properties ?? {})) seen[member.type === 'array' ? 'list' : 'other'].add(name);
  }
  const names = [...seen.list].filter((n) => !seen.other.has(n)).sort();
  const lines = names.reduce((all, n) => (all.at(-1).length + n.length < 130 ? [...all.slice(0, -1), `${all.at(-1)} ${n}`] : [...all, `  ${n}`]), [' ']);
  return `// Generated from query/api/openapi.json: npm run generate.\n\n/** LISTS are the members of answers that are lists. */\nexport const LISTS = new Set(\`\n${lines.join('\n')}\n\`.trim().split(/\\s+/));\n`;
}

/** licences lists the packages whose code is in the built pages, each with the text of its licence. */
function licences() {
  const lock = JSON.parse(readFileSync(new URL('package-lock.json', root), 'utf8')).packages;
  const types = /node_modules\/(@types\/|csstype$)/; // nothing of them is left in what is built
  const shipped = Object.entries(lock).filter(([path, p]) => path && !p.dev && !p.optional && !types.test(path));
  const parts = shipped.map(([path, p]) => `## ${path.replace(/^.*node_modules\//, '')} ${p.version}\n\n${p.license}\n\n${quote(text(path))}`);
  return `# Licences\n\nThe built pages (../ui/dist) contain code of these packages. Generated: npm run generate.\n\n${parts.join('\n')}`;
}

function text(path) {
  for (const name of ['LICENSE', 'LICENSE.md', 'license']) {
    try { return readFileSync(new URL(`${path}/${name}`, root), 'utf8'); } catch { /* the next */ }
  }
  throw new Error(`${path} has no text of its licence`);
}

function quote(s) { return s.trim().split('\n').map((l) => `    ${l}`.trimEnd()).join('\n') + '\n'; }
