import { createContext, type ComponentType, type ReactElement, type ReactNode } from "react";

export interface MenuProps {
  trigger: ReactElement<Record<string, unknown>>;
  children: ReactNode;
  align?: "start" | "end";
  side?: "top" | "bottom";
}

/** The action of the chosen item, which runs once the menu has closed. */
export const Chosen = createContext<{ current: (() => void) | null }>({ current: null });

/** The components that make up menus. They are loaded with the first menu. */
export interface MenuParts {
  Item: ComponentType<{ className: string; onSelect: () => void; disabled?: boolean; children: ReactNode }>;
  Label: ComponentType<{ className?: string; children: ReactNode }>;
  Separator: ComponentType<{ className?: string }>;
}
export const Parts = createContext<MenuParts | null>(null);

/** Returns the landmark around a button. The button's menu is rendered in the same landmark. */
export const landmarkOf = (button: Element | null) => button?.closest<HTMLElement>("aside, header, main, nav") ?? null;
