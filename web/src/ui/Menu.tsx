import clsx from "clsx";
import { DropdownMenu as Radix } from "radix-ui";
import { createContext, useContext, useRef, useState, type ReactNode } from "react";
import css from "./overlay.module.css";

interface Props {
  trigger: ReactNode;
  children: ReactNode;
  align?: "start" | "end";
  side?: "top" | "bottom";
}

/** What the person has chosen, until the menu is closed. */
const Chosen = createContext<{ current: (() => void) | null }>({ current: null });

/**
 * A menu of a button, in the same landmark of the page. What is chosen is done once the button has the focus again, so that a dialog which opens
 * gives it back to the button.
 */
export function Menu({ trigger, children, align = "end", side = "bottom" }: Props) {
  const chosen = useRef<(() => void) | null>(null);
  const button = useRef<HTMLButtonElement>(null);
  const [landmark, setLandmark] = useState<HTMLElement | null>(null);
  const closed = () => queueMicrotask(() => {
    chosen.current?.();
    chosen.current = null;
  });
  return (
    <Chosen value={chosen}>
      <Radix.Root modal={false} onOpenChange={() => setLandmark(button.current?.closest<HTMLElement>("aside, header, main, nav") ?? null)}>
        <Radix.Trigger asChild ref={button}>{trigger}</Radix.Trigger>
        <Radix.Portal container={landmark}>
          <Radix.Content className={css.menu} align={align} side={side} sideOffset={6} collisionPadding={8} onCloseAutoFocus={closed}>{children}</Radix.Content>
        </Radix.Portal>
      </Radix.Root>
    </Chosen>
  );
}

interface ItemProps {
  icon?: ReactNode;
  children: ReactNode;
  onSelect: () => void;
  danger?: boolean;
  disabled?: boolean;
}

export function MenuItem({ icon, children, onSelect, danger, disabled }: ItemProps) {
  const chosen = useContext(Chosen);
  return (
    <Radix.Item className={clsx(css.menuItem, danger && css.menuDanger)} onSelect={() => { chosen.current = onSelect; }} disabled={disabled}>
      {icon}
      <span className={css.menuText}>{children}</span>
    </Radix.Item>
  );
}

export const MenuLabel = ({ children }: { children: ReactNode }) => <Radix.Label className={css.menuLabel}>{children}</Radix.Label>;
export const MenuLine = () => <Radix.Separator className={css.menuLine} />;
