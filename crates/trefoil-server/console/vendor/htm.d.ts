import type { VNode } from './preact.js';
declare const htm: { bind(h: (type: any, props: any, ...children: any[]) => VNode): (text: TemplateStringsArray, ...values: any[]) => VNode };
export default htm;
