import a11y from 'eslint-plugin-jsx-a11y';
import hooks from 'eslint-plugin-react-hooks';
import tseslint from 'typescript-eslint';

// What React offers to make markup of a string. The page's policy would refuse it; here it does not get as far.
const markup = [
  { selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']", message: 'Strings only ever become text.' },
  { selector: "Property[key.name='dangerouslySetInnerHTML']", message: 'Strings only ever become text.' },
  {
    selector: "MemberExpression[property.name=/^(innerHTML|outerHTML|insertAdjacentHTML|srcdoc|createContextualFragment)$/]",
    message: 'Strings only ever become text.',
  },
];

export default tseslint.config(
  { ignores: ['node_modules', 'src/api/schema.d.ts'] },
  ...tseslint.configs.strictTypeChecked,
  hooks.configs.flat.recommended,
  a11y.flatConfigs.strict,
  {
    languageOptions: { parserOptions: { projectService: { allowDefaultProject: ['eslint.config.js', 'scripts/*.mjs'] }, tsconfigRootDir: import.meta.dirname } },
    rules: {
      'no-eval': 'error',
      'no-new-func': 'error',
      'no-script-url': 'error',
      'no-restricted-syntax': ['error', ...markup],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/no-unnecessary-condition': 'off', // answers may lack what their types promise
      '@typescript-eslint/unbound-method': 'off',
    },
  },
  {
    files: ['src/pages/**'],
    rules: {
      'no-restricted-imports': ['error', { patterns: [{ regex: '^(\\.\\./)+(?!\\.\\.|api/|kit/)', message: 'Pages know src/kit and src/api only.' }] }],
    },
  },
  { files: ['**/*.js', '**/*.mjs'], ...tseslint.configs.disableTypeChecked },
);
