// The pages of the navigation, in its order, with the letter that goes there.

/** @type {{ page: string, name: string, key: string, also?: string[] }[]} */
export const PAGES = [
  { page: 'overview', name: 'Overview', key: 'o' },
  { page: 'streams', name: 'Streams', key: 's', also: ['category', 'stream', 'event', 'commit'] },
  { page: 'names', name: 'Types and tags', key: 'y' },
  { page: 'tail', name: 'Live tail', key: 't' },
  { page: 'query', name: 'Query', key: 'q' },
  { page: 'state', name: 'State', key: 'k' },
  { page: 'seats', name: 'Seats', key: 'm' },
  { page: 'write', name: 'Write', key: 'w' },
  { page: 'consumers', name: 'Consumers', key: 'c' },
  { page: 'namespaces', name: 'Namespaces', key: 'n' },
  { page: 'nodes', name: 'Nodes', key: 'd' },
  { page: 'settings', name: 'Settings', key: 'e' },
];
