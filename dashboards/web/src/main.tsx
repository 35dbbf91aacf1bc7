import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import './kit/base.css';
import { App, find } from './app/App';
import { parse } from './kit/address';

// The page is fetched beside the first answers, which it waits for, and not after them.
find(parse(location.hash).path)?.[0].load().catch(() => undefined); // it is asked for again when it is shown

const root = document.getElementById('root');
if (root) createRoot(root).render(<StrictMode><App /></StrictMode>);
