import { QueryClientProvider } from '@tanstack/react-query';
import { render } from '@testing-library/react';
import type { ReactNode } from 'react';
import { newClient } from '../../api/client';
import { ScopeProvider, useKnown } from '../scope';

/** STANDING are answers that every page needs: one cluster, and a server that is up to date. */
export const STANDING = {
  clusters: { clusters: [{ name: 'c', events: 9, first: '2026-11-20T11:00:00Z', last: '2026-11-20T12:00:00Z' }] },
  status: { version: '1', lag: 0, policyLag: 0, deadLetterLag: 0, corrections: 0 },
};

/** HOSTILE is a name that tries to be markup, to turn the text around, and to be long. */
export const HOSTILE = '<img src=x onerror=alert(1)>\u202e' + 'x'.repeat(300);

/** show renders a page of the cluster c at an address, as the app does. */
export function show(page: ReactNode, address: string) {
  location.hash = address;
  return render(<QueryClientProvider client={newClient()}><ScopeProvider><Ready>{page}</Ready></ScopeProvider></QueryClientProvider>);
}

function Ready({ children }: { children: ReactNode }) {
  const { cluster, range } = useKnown();
  return cluster && range ? children : null;
}
