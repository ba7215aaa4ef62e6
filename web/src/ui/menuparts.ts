import { createContext, type ComponentType, type ReactElement, type ReactNode } from "react";

export interface MenuProps {
  trigger: ReactElement<Record<string, unknown>>;
  children: ReactNode;
  align?: "start" | "end";
  side?: "top" | "bottom";
}

/** What the person has chosen, until the menu is closed. */
export const Chosen = createContext<{ current: (() => void) | null }>({ current: null });

/** What menus are made of, inside of one. */
export interface MenuParts {
  Item: ComponentType<{ className: string; onSelect: () => void; disabled?: boolean; children: ReactNode }>;
  Label: ComponentType<{ className?: string; children: ReactNode }>;
  Separator: ComponentType<{ className?: string }>;
}
export const Parts = createContext<MenuParts | null>(null);

/** A menu is in the same landmark of the page as its button. */
export const landmarkOf = (button: Element | null) => button?.closest<HTMLElement>("aside, header, main, nav") ?? null;
