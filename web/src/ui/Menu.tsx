import clsx from "clsx";
import { DropdownMenu as Radix } from "radix-ui";
import type { ReactNode } from "react";
import css from "./overlay.module.css";

interface Props {
  trigger: ReactNode;
  children: ReactNode;
  align?: "start" | "end";
  side?: "top" | "bottom";
}

export const Menu = ({ trigger, children, align = "end", side = "bottom" }: Props) => (
  <Radix.Root modal={false}>
    <Radix.Trigger asChild>{trigger}</Radix.Trigger>
    <Radix.Portal>
      <Radix.Content className={css.menu} align={align} side={side} sideOffset={6} collisionPadding={8}>{children}</Radix.Content>
    </Radix.Portal>
  </Radix.Root>
);

interface ItemProps {
  icon?: ReactNode;
  children: ReactNode;
  onSelect: () => void;
  danger?: boolean;
  disabled?: boolean;
}

export const MenuItem = ({ icon, children, onSelect, danger, disabled }: ItemProps) => (
  <Radix.Item className={clsx(css.menuItem, danger && css.menuDanger)} onSelect={onSelect} disabled={disabled}>
    {icon}
    <span className={css.menuText}>{children}</span>
  </Radix.Item>
);

export const MenuLabel = ({ children }: { children: ReactNode }) => <Radix.Label className={css.menuLabel}>{children}</Radix.Label>;
export const MenuLine = () => <Radix.Separator className={css.menuLine} />;
