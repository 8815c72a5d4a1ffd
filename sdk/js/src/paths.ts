/** Where things are in the API. */

export const WORKSPACE = "/workspace";

export function sandboxPath(sandbox: string, ...rest: string[]): string {
  return ["/v1/sandboxes", encodeURIComponent(sandbox), ...rest].join("/");
}

export function runtimePath(sandbox: string, ...rest: string[]): string {
  return sandboxPath(sandbox, "runtime", ...rest);
}

/** Relative paths start at /workspace. */
export function absolutePath(path: string): string {
  return path.startsWith("/") ? path : `${WORKSPACE}/${path}`;
}

/** A path as the tail of a route. */
export function routeOf(path: string): string {
  return absolutePath(path).split("/").map(encodeURIComponent).join("/");
}

/** Without what was not given. */
export function given<T extends Record<string, unknown>>(values: T): Partial<T> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Partial<T>;
}
