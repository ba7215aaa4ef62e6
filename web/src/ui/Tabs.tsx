import { Tabs as Radix } from "radix-ui";
import { useEffect, useRef, type ReactNode } from "react";
import css from "./surface.module.css";

interface Tab {
  id: string;
  label: string;
  count?: number;
  content: () => ReactNode;
}

export const Tabs = ({
  label,
  tabs,
  value,
  onChange,
}: {
  label: string;
  tabs: Tab[];
  value: string;
  onChange: (id: string) => void;
}) => {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    // On a narrow screen, the active tab may be scrolled out of view.
    list.current?.querySelector("[data-state=active]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [value]);
  return (
    <Radix.Root value={value} onValueChange={onChange}>
      <Radix.List ref={list} className={css.tabs} aria-label={label}>
        {tabs.map((tab) => (
          <Radix.Trigger key={tab.id} value={tab.id} className={css.tab}>
            {tab.label}
            {tab.count !== undefined && <span className={css.count}>{tab.count}</span>}
          </Radix.Trigger>
        ))}
      </Radix.List>
      {tabs.map((tab) => (
        <Radix.Content key={tab.id} value={tab.id} className={css.panel}>
          {tab.id === value && tab.content()}
        </Radix.Content>
      ))}
    </Radix.Root>
  );
};
