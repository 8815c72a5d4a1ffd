/** Frameworks do not always say when a session is over, so its sandbox is stopped when idle, and in the end forgotten. */

export const IDLE_SECONDS = 30 * 60;
export const FORGOTTEN_SECONDS = 30 * 24 * 3600;
