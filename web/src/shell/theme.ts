import { useSyncExternalStore } from "react";

export type Theme = "system" | "light" | "dark";

const key = "ropewalk.theme";
const readers = new Set<() => void>();

export const themeNow = (): Theme => (localStorage.getItem(key) as Theme | null) ?? "system";

export function applyTheme(theme: Theme = themeNow()): void {
  if (theme === "system") {
    localStorage.removeItem(key);
    delete document.documentElement.dataset.theme;
  } else {
    localStorage.setItem(key, theme);
    document.documentElement.dataset.theme = theme;
  }
  for (const reader of readers) reader();
}

export const useTheme = () =>
  useSyncExternalStore((reader) => {
    readers.add(reader);
    return () => readers.delete(reader);
  }, themeNow);
