// Commands to copy. A shell must take what a client chose as one word, whatever is in it.

/** word quotes a text for a shell (bash, zsh). */
export function word(text: string): string {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  if (!/[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u.test(text)) return `'${text.replaceAll("'", String.raw`'\''`)}'`;
  const bytes = [...new TextEncoder().encode(text)];
  return `$'${bytes.map((b) => (b < 32 || b > 126 || b === 39 || b === 92 ? '\\x' + b.toString(16).padStart(2, '0') : String.fromCharCode(b))).join('')}'`;
}

/** command joins words. */
export function command(...words: string[]): string {
  return words.map(word).join(' ');
}
