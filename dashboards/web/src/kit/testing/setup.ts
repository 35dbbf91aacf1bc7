import { cleanup, configure } from '@testing-library/react';
import { afterEach, vi } from 'vitest';

configure({ asyncUtilTimeout: 30_000 }); // what is waited for comes; how soon is the machine's

// What jsdom has not.
vi.stubGlobal('ResizeObserver', class { observe() {} unobserve() {} disconnect() {} });
vi.stubGlobal('scrollTo', () => {});
vi.stubGlobal('matchMedia', (media: string) => ({ media, matches: false, addEventListener() {}, removeEventListener() {} }));
Object.assign(HTMLDialogElement.prototype, {
  show(this: HTMLDialogElement) { this.open = true; },
  showModal(this: HTMLDialogElement) { this.open = true; },
  close(this: HTMLDialogElement) { this.open = false; this.dispatchEvent(new Event('close')); },
});
Object.assign(HTMLElement.prototype, { hidePopover() {}, showPopover() {}, scrollIntoView() {} });
// Nothing is laid out: every element is as high as a row of a table.
Object.defineProperty(HTMLElement.prototype, 'offsetHeight', { get: () => 37 });

afterEach(() => {
  cleanup();
  location.hash = '';
  localStorage.clear();
});
