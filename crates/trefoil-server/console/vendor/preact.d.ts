// The part of Preact that the console uses.
export type VNode = object;
export function h(type: any, props: any, ...children: any[]): VNode;
export function render(node: VNode | null, parent: Element): void;
