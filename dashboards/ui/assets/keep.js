// Text that leaves the page: onto the clipboard or into a file. Both stay within the page's
// policy: nothing is navigated to and nothing is asked of another place.
import {h, block} from './dom.js';

// textBlock shows a text with buttons that copy and save it; k names it between paints.
export function textBlock(k, label, text, file) {
  const pre = h('pre', {tabindex: 0, role: 'region', 'aria-label': label, 'data-k': 'pre-' + k}, block(text));
  const said = h('span', {class: 'muted', role: 'status'});
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      said.textContent = 'Copied.';
    } catch { // no permission, or the page came over plain HTTP from another machine
      getSelection().selectAllChildren(pre);
      said.textContent = 'Selected: press Ctrl+C.';
    }
  };
  return h('div', {class: 'keep'},
    h('div', {class: 'acts'}, h('button', {'data-k': 'copy-' + k, onclick: copy}, 'Copy'), file && h('button', {'data-k': 'save-' + k, onclick: () => save(file, text)}, 'Download ' + file), said),
    pre);
}

// save hands a text to the browser as a file. The name is ours: letters, digits, dots, dashes.
export function save(file, text) {
  const url = URL.createObjectURL(new Blob([text], {type: 'application/yaml'}));
  const a = document.createElement('a');
  a.setAttribute('href', url);
  a.setAttribute('download', file);
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

// fileName makes a file's name of anything.
export function fileName(...words) {
  return words.map(w => String(w).replace(/[^A-Za-z0-9.-]+/g, '-').replace(/^[-.]+|[-.]+$/g, '').slice(0, 60)).filter(Boolean).join('-');
}
