// The pages, one line each. A page is a folder of src/pages with a default export in index.tsx; it is loaded when it is opened.
import { lazy, type ComponentType, type LazyExoticComponent } from 'react';

/** Page is an address and what is shown there. */
export interface Page {
  /** path is its pattern: what stands for a name (':name') is handed to the page as a property. */
  path: string;
  title: string;
  /** key opens it: g, then this letter. Pages without one are not in the navigation. */
  key?: string;
  /** place is the path of the page whose place in the navigation it has, where it has none of its own. */
  place?: string;
  show: LazyExoticComponent<ComponentType<Record<string, string>>>;
  /** load fetches what shows it. */
  load: () => Promise<unknown>;
}

type Module = { default: ComponentType<Record<string, string>> };

function page(path: string, title: string, load: () => Promise<unknown>, more: { key?: string; place?: string }): Page {
  return { path, title, show: lazy(() => load() as Promise<Module>), load, ...more };
}

/** Drawer is what is shown beside every page while the address has its parameter, whose value it is handed as id. */
export interface Drawer {
  parameter: string;
  show: LazyExoticComponent<ComponentType<Record<string, string>>>;
}

function drawer(parameter: string, load: () => Promise<unknown>): Drawer {
  return { parameter, show: lazy(() => load() as Promise<Module>) };
}

/** DRAWERS: #/…?why=AUDIT-ID. */
export const DRAWERS: Drawer[] = [
  drawer('why', () => import('../pages/event/drawer')), // above the others, which lead to it
  drawer('finding', () => import('../pages/findings/drawer')),
  drawer('credential', () => import('../pages/subject/credential')),
];

/** PAGES in the order of the navigation. */
export const PAGES: Page[] = [
  page('/', 'Today', () => import('../pages/today'), { key: 't' }),
  page('/explore', 'Explore', () => import('../pages/explore'), { key: 'e' }),
  page('/findings', 'Findings', () => import('../pages/findings'), { key: 'f' }),
  page('/events/:id', 'Request', () => import('../pages/event'), { place: '/explore' }),
  page('/subjects', 'Subjects', () => import('../pages/subjects'), { key: 's' }),
  page('/subjects/:name', 'Subject', () => import('../pages/subject'), { place: '/subjects' }),
  page('/access', 'Access', () => import('../pages/access'), { key: 'a' }),
  page('/changes', 'Changes', () => import('../pages/changes'), { key: 'c' }),
  page('/whatif', 'What if', () => import('../pages/whatif'), { key: 'w' }),
  page('/trust', 'Trust', () => import('../pages/trust'), { key: 'r' }),
];
