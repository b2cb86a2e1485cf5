// The console: begins here.

import { html, render } from './view.js';
import { learnFacts } from './session.js';
import { lost, watchServer } from './api.js';
import { listenToKeys } from './keys.js';
import { applyTheme } from './theme.js';
import { Shell } from './shell.js';

applyTheme();
listenToKeys();
render(html`<${Shell} />`, document.body);
learnFacts().catch(lost);
watchServer();
