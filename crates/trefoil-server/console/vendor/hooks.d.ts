// The part of Preact's hooks that the console uses.
export type Update<T> = (next: T | ((old: T) => T)) => void;
export function useState<T>(initial: T | (() => T)): [T, Update<T>];
export function useEffect(effect: () => void | (() => void), inputs?: readonly unknown[]): void;
export function useMemo<T>(make: () => T, inputs: readonly unknown[]): T;
export function useRef<T>(initial: T): { current: T };
