// One commit: its events, and what it changed of the state.

import { html, useState } from '../view.js';
import { readCommit, useLoad } from '../api.js';
import { linkTo } from '../route.js';
import { count, counted } from '../format.js';
import { Empty, Failure, Head, Snippets, Step, Waiting } from '../parts/basics.js';
import { EventList } from '../parts/events.js';
import { Changes } from '../parts/commit.js';
import { curl } from '../commands.js';

const LIMIT = 50;

/** @param {{ names: string[] }} props */
export function CommitPage({ names: [text = ''] }) {
  const commit = Number(text);
  const [eventsFrom, setEvents] = useState(0);
  const [changesFrom, setChanges] = useState(0);
  const { data, error, isLoading, reload } = useLoad(() => readCommit({ commit }, { limit: LIMIT, eventsFrom, changesFrom }), [eventsFrom, changesFrom]);
  const link = (/** @type {number} */ number) => (number > 0 ? linkTo('commit', [String(number)]) : undefined);
  return html`<${Head} title=${`Commit ${count(commit)}`} subtitle=${data && `${counted(data.eventCount, 'event')}, ${data.changeCount === null ? 'changes of the state unknown' : counted(data.changeCount, 'change of the state', 'changes of the state')}`}>
      <${Step} to=${link(commit - 1)} label="← Before" /><${Step} to=${data ? link(commit + 1) : undefined} label="After →" /><//>
    <${Failure} error=${error} onRetry=${reload} />
    <${Waiting} isLoading=${isLoading && !data}>${data ? html`
      <section class="column" aria-label="Events"><h2>Events</h2>
        ${data.events.length ? html`<${EventList} events=${data.events} />` : html`<${Empty}>It has no events${eventsFrom ? ' here' : ''}.<//>`}
        <${Parts} name="events" from=${eventsFrom} shown=${data.events.length} total=${data.eventCount} onFrom=${setEvents} /></section>
      <section class="card" aria-label="Changes of the state"><h2>Changes of the state</h2><${Changes} commit=${data} />
        <${Parts} name="changes" from=${changesFrom} shown=${data.changes?.length ?? 0} total=${data.changeCount ?? 0} onFrom=${setChanges} /></section>`
      : data === null && html`<${Empty}>There is no such commit yet.<//>`}<//>
    <${Snippets} snippets=${{ curl: curl('commit.get', { commit }) }} title="Read it elsewhere" />`;
}

/** The parts of a long list. @param {{ name: string, from: number, shown: number, total: number, onFrom: (from: number) => void }} props */
function Parts({ name, from, shown, total, onFrom }) {
  if (!from && shown >= total) return null;
  return html`<nav class="pager" aria-label=${`Parts of the ${name}`}>
    <button type="button" disabled=${!from} onClick=${() => onFrom(Math.max(0, from - LIMIT))}>Back</button>
    <button type="button" disabled=${from + shown >= total} onClick=${() => onFrom(from + shown)}>Next</button>
    <span class="muted">${count(from + 1)} to ${count(from + shown)} of ${count(total)}</span></nav>`;
}
