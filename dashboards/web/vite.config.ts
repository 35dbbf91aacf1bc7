import { basename, dirname, relative } from 'node:path';
import { defineConfig } from 'vitest/config';

/** Where `npm run dev` finds a server: `retrial serve --sample` on its default address. */
const server = process.env.RETRIAL_URL ?? 'http://127.0.0.1:8080';

/** name gives the chunk of a page the page's name, and every other one what Rolldown calls it. */
function name(chunk: { name: string; facadeModuleId?: string | null }): string {
  const page = chunk.facadeModuleId && /\/src\/pages\/([^/]+)\/index\.tsx$/.exec(chunk.facadeModuleId)?.[1];
  return page ? `page-${page}` : chunk.name;
}

export default defineConfig({
  base: './', // the page may be served below any path
  css: {
    modules: {
      // The same name in every build, on every machine; folders and files keep them apart.
      generateScopedName: (local, file) =>
        [...relative('src', dirname(file)).split(/[\\/]/).slice(-1), basename(file, '.module.css'), local]
          .filter((s, i, all) => s !== all[i - 1])
          .join('-'),
    },
  },
  build: {
    outDir: '../ui/dist',
    emptyOutDir: true,
    target: 'es2023',
    cssTarget: 'esnext',
    assetsInlineLimit: 0, // the page's policy allows no data: addresses
    modulePreload: { polyfill: false },
    manifest: 'manifest.json', // which file belongs to which page: read by the test of the budget
    reportCompressedSize: false,
    rolldownOptions: {
      // 'use client' is for servers that render; there is none.
      onLog(level, log, handle) {
        if (log.code !== 'MODULE_LEVEL_DIRECTIVE') handle(level, log);
      },
      output: {
        entryFileNames: 'assets/[name]-[hash].js',
        chunkFileNames: (chunk) => `assets/${name(chunk)}-[hash].js`,
        assetFileNames: 'assets/[name]-[hash][extname]',
        // What all pages share changes less often than they do, and what others wrote least.
        codeSplitting: {
          groups: [
            { name: 'vendor', test: /node_modules\/(?!uplot)/ },
            { name: 'kit', test: /src\/(kit\/(?!plot)|api\/)/ },
          ],
        },
      },
    },
  },
  server: { proxy: { '/api': { target: server, changeOrigin: true } } },
  test: {
    environment: 'jsdom',
    setupFiles: ['./src/kit/testing/setup.ts'],
    restoreMocks: true,
    testTimeout: 60_000,
    css: { modules: { classNameStrategy: 'non-scoped' } },
  },
});
