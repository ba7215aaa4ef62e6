import { DropdownMenu as Radix } from "radix-ui";
import { useRef, useState } from "react";
import { Chosen, landmarkOf, Parts, type MenuProps } from "./menuparts";
import css from "./overlay.module.css";

interface Props extends MenuProps {
  /** The landmark to render the menu in. byKeyboard says whether the first item gets the focus. */
  landmark: HTMLElement | null;
  byKeyboard: boolean;
}

const parts = { Item: Radix.Item, Label: Radix.Label, Separator: Radix.Separator };

/** Shows a menu that is open from the start. */
export function OpenMenu({ trigger, children, align = "end", side = "bottom", landmark: first, byKeyboard }: Props) {
  const chosen = useRef<(() => void) | null>(null);
  const button = useRef<HTMLButtonElement>(null);
  const entered = useRef(!byKeyboard);
  const [open, setOpen] = useState(true);
  const [landmark, setLandmark] = useState(first);
  const change = (to: boolean) => {
    setLandmark(landmarkOf(button.current));
    setOpen(to);
  };
  const closed = () =>
    queueMicrotask(() => {
      chosen.current?.();
      chosen.current = null;
    });
  return (
    <Parts value={parts}>
      <Chosen value={chosen}>
        <Radix.Root modal={false} open={open} onOpenChange={change}>
          <Radix.Trigger asChild ref={button}>
            {trigger}
          </Radix.Trigger>
          <Radix.Portal container={landmark}>
            <Radix.Content
              className={css.menu}
              align={align}
              side={side}
              sideOffset={6}
              collisionPadding={8}
              onCloseAutoFocus={closed}
              onFocus={(event) => {
                if (entered.current || event.target !== event.currentTarget) return;
                entered.current = true; // the key was pressed before the menu existed
                event.currentTarget.querySelector<HTMLElement>("[role=menuitem]:not([data-disabled])")?.focus();
              }}
            >
              {children}
            </Radix.Content>
          </Radix.Portal>
        </Radix.Root>
      </Chosen>
    </Parts>
  );
}
