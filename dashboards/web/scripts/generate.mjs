// Writes what is generated: the types of the API from its OpenAPI document, and the list of licences of what the pages are
// built of. With --check it writes nothing and fails where a file is not what it would write.
import { readFileSync, writeFileSync } from 'node:fs';
import openapi, { astToString } from 'openapi-typescript';

const root = new URL('..', import.meta.url);
const document = JSON.parse(readFileSync(new URL('../../query/api/openapi.json', root), 'utf8'));
const files = { 'src/api/schema.d.ts': await types(), 'LICENSES.md': licences() };
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
