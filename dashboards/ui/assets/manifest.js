// A suggestion as text to keep: the objects as YAML, the removals as commands, and the header
// that says what it rests on. It reads as what `retrial suggest -o yaml` prints. Names in it
// were chosen by somebody: in YAML they are quoted, in a comment they cannot begin a line, in
// a command they are quoted for a shell.
import {clean, count, time} from './dom.js';

// plain strings need no quotes in YAML 1.1 or 1.2, whoever reads them.
const plain = /^[A-Za-z_][A-Za-z0-9_./-]*$/;
const words = /^(true|false|yes|no|on|off|y|n|null|nan|inf|\.inf|\.nan)$/i;
const unsafe = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|(?! )\p{Zs}/gu;

// scalar writes a string, a number, a truth or null.
function scalar(v) {
  if (typeof v !== 'string') return JSON.stringify(v ?? null);
  if (plain.test(v) && !words.test(v)) return v;
  const hex = (c, n) => c.codePointAt(0).toString(16).toUpperCase().padStart(n, '0');
  return JSON.stringify(v).replace(unsafe, c => c.codePointAt(0) > 0xffff ? '\\U' + hex(c, 8) : '\\u' + hex(c, 4));
}

// yaml writes a value of JSON as block YAML.
export function yaml(value, indent = '') {
  if (Array.isArray(value)) {
    if (!value.length) return indent + '[]\n';
    return value.map(v => holds(v) ? indent + '- ' + yaml(v, indent + '  ').slice(indent.length + 2) : `${indent}- ${leaf(v)}\n`).join('');
  }
  const entries = Object.entries(value).filter(([k, v]) => v !== undefined && !(k === 'creationTimestamp' && v === null));
  if (!entries.length) return indent + '{}\n';
  return entries.map(([k, v]) => indent + key(k, indent) + (holds(v) ? '\n' + yaml(v, Array.isArray(v) ? indent : indent + '  ') : ` ${leaf(v)}\n`)).join('');
}
// A key beside its value may have 1024 characters.
function key(k, indent) { return k.length < 500 ? scalar(k) + ':' : `? ${scalar(k)}\n${indent}:`; }
function holds(v) { return v !== null && typeof v === 'object' && Object.keys(v).length > 0; }
function leaf(v) { return Array.isArray(v) ? '[]' : v !== null && typeof v === 'object' ? '{}' : scalar(v); }

// documents writes objects, each a document of its own, with the members in the order people
// know.
export function documents(objects) {
  const first = ['apiVersion', 'kind', 'metadata'];
  return objects.map(o => yaml(Object.fromEntries([...first.filter(k => k in o).map(k => [k, o[k]]), ...Object.entries(o).filter(([k]) => !first.includes(k))]))).join('---\n');
}

// word quotes a word for a shell.
export function word(s) {
  s = String(s ?? '');
  return /^[A-Za-z0-9_./:@%+=-]+$/.test(s) ? s : `'${s.replaceAll("'", `'\\''`)}'`;
}

// removal is the command that takes the subject out of a binding.
export function removal(r) {
  const object = word(`${r.kind.toLowerCase()}/${r.name}`) + (r.namespace ? ' -n ' + word(r.namespace) : '');
  return r.action === 'delete' ? 'kubectl delete ' + object : `kubectl patch ${object} --type=merge -p ${word(JSON.stringify({subjects: r.object?.subjects ?? []}))}`;
}

// note makes comment lines; unreadable characters, line ends among them, become escapes.
function note(...texts) { return texts.map(t => '# ' + clean(t) + '\n').join(''); }

// proofText words a proof in one line.
export function proofText(p) {
  return `${p.holds ? 'holds' : 'fails'}; ${count(p.requests)} requests replayed, ${count(p.refused)} refused; ${count(p.refusals)} refusals on record, ${count(p.newlyAllowed)} newly allowed`;
}

// header says what a suggestion rests on.
function header(s, cluster) {
  const w = s.window;
  return note(`subject: ${s.subject}`, `cluster: ${cluster}`,
    `window: ${time(w.from, true)} to ${time(w.to, true)} UTC; ${count(w.requests)} requests, ${(100 * w.coverage).toFixed(1)} % of them judged`,
    `excess: ${s.excess.before}, after the change ${s.excess.after}, by groups ${s.excess.kept}`,
    `proof: ${proofText(s.proof)}`,
    ...[...s.gaps, ...s.window.gaps ?? []].map(g => 'gap: ' + g),
    ...s.keeps.filter(k => k.undoes?.length).map(k => `kept: ${k.binding} of ${k.role} to group ${k.group} still grants ${k.undoes.join(', ')}`));
}

// change is the file to apply: objects, then what to take out of bindings, as comments.
export function change(s, cluster) {
  const apply = s.apply.length ? documents(s.apply) : note('nothing to apply');
  const remove = s.remove.length ? note('When the above is applied, remove the subject from what it replaces:', ...s.remove.map(r => '  ' + removal(r))) : '';
  return header(s, cluster) + apply + remove;
}

// removals are the commands alone.
export function removals(s) { return s.remove.map(r => removal(r) + '\n').join(''); }

// rollback is the file that brings back what was there before.
export function rollback(s, cluster) {
  return note(`subject: ${s.subject}`, `cluster: ${cluster}`, 'the way back: what the suggestion takes away, as it was', 'then delete its new objects:') +
    note(...s.apply.filter(o => /Binding$/.test(o.kind)).map(o => '  kubectl delete ' + word(`${o.kind.toLowerCase()}/${o.metadata.name}`) + (o.metadata.namespace ? ' -n ' + word(o.metadata.namespace) : ''))) +
    (s.rollback.length ? documents(s.rollback) : note('nothing was taken away'));
}
