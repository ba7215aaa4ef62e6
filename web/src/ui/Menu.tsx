import clsx from "clsx";
import { cloneElement, useContext, useState, type KeyboardEvent, type MouseEvent, type ReactNode } from "react";
import { Chosen, landmarkOf, Parts, type MenuParts, type MenuProps } from "./menuparts";
import { toastError } from "./Toast";
import css from "./overlay.module.css";

function useParts(): MenuParts {
  const parts = useContext(Parts);
  if (!parts) throw new Error("menu parts must be inside a menu");
  return parts;
}

let OpenMenu: typeof import("./OpenMenu").OpenMenu | undefined;

/** Loads the components of menus. They are not needed until a menu opens. */
export async function loadMenus(): Promise<void> {
  OpenMenu ??= (await import("./OpenMenu")).OpenMenu;
}

/** Shows a button with a menu. A chosen item runs once the button has the focus again, so that a dialog that the item
 * opens later returns the focus to the button. */
export function Menu(props: MenuProps) {
  const [used, setUsed] = useState<{ landmark: HTMLElement | null; byKeyboard: boolean } | null>(null);
  const open = (button: Element, byKeyboard: boolean) =>
    void loadMenus().then(() => setUsed({ landmark: landmarkOf(button), byKeyboard }), toastError);
  if (used && OpenMenu) return <OpenMenu {...props} {...used} />;
  return cloneElement(props.trigger, {
    "aria-haspopup": "menu",
    "aria-expanded": false,
    onClick: (event: MouseEvent) => open(event.currentTarget, event.detail === 0),
    onKeyDown: (event: KeyboardEvent) => {
      if (event.key !== "ArrowDown") return;
      event.preventDefault();
      open(event.currentTarget, true);
    },
  });
}

interface ItemProps {
  icon?: ReactNode;
  children: ReactNode;
  onSelect: () => void;
  danger?: boolean;
  disabled?: boolean;
}

export function MenuItem({ icon, children, onSelect, danger, disabled }: ItemProps) {
  const chosenRef = useContext(Chosen);
  const { Item } = useParts();
  return (
    <Item
      className={clsx(css.menuItem, danger && css.menuDanger)}
      onSelect={() => {
        chosenRef.current = onSelect;
      }}
      disabled={disabled}
    >
      {icon}
      <span className={css.menuText}>{children}</span>
    </Item>
  );
}

export function MenuLabel({ children }: { children: ReactNode }) {
  const { Label } = useParts();
  return <Label className={css.menuLabel}>{children}</Label>;
}

export function MenuLine() {
  const { Separator } = useParts();
  return <Separator className={css.menuLine} />;
}
