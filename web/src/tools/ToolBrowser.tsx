import { ArrowLeft } from "lucide-react";
import { useDeferredValue, useMemo, useState } from "react";
import { titleOf, type Tool } from "../api/tools";
import { Button } from "../ui/Button";
import { Search } from "../ui/Field";
import { Card, Empty } from "../ui/Surface";
import { VirtualRows } from "../ui/VirtualRows";
import { ToolPanel } from "./ToolPanel";
import css from "./tools.module.css";

interface Props {
  tools: Tool[];
  chosen?: string;
  onChoose: (name: string | undefined) => void;
  /** Whether all tools belong to one app, whose name is then left out. */
  oneApp?: boolean;
}

/** Shows a list of tools next to the selected tool. */
export function ToolBrowser({ tools, chosen, onChoose, oneApp }: Props) {
  const [query, setQuery] = useState("");
  const wanted = useDeferredValue(query).toLowerCase();
  const found = useMemo(() => {
    const words = wanted.split(/\s+/).filter(Boolean);
    return tools.filter((t) =>
      words.every((w) => `${t.name} ${t.title ?? ""} ${t.description ?? ""}`.toLowerCase().includes(w)),
    );
  }, [tools, wanted]);
  const tool = tools.find((t) => t.name === chosen);
  return (
    <div className={css.split} data-chosen={tool !== undefined}>
      <div className={css.list}>
        <Card flush>
          <div style={{ padding: 10 }}>
            <Search label="Search tools" value={query} onChange={(e) => setQuery(e.target.value)} />
          </div>
          {found.length === 0 ? (
            <Empty title="No matches">No tool contains all of these words.</Empty>
          ) : (
            <VirtualRows
              label="Tools"
              items={found}
              size={58}
              max={640}
              keyOf={(t) => t.name}
              shown={found.findIndex((t) => t === tool)}
              render={(t) => (
                <button type="button" className={css.row} aria-pressed={t === tool} onClick={() => onChoose(t.name)}>
                  <b>{titleOf(t)}</b>
                  <span>{oneApp ? t.tool : `${t.server} · ${t.tool}`}</span>
                </button>
              )}
            />
          )}
        </Card>
      </div>
      <div style={{ minWidth: 0 }}>
        {tool ? (
          <>
            <Button look="quiet" className={css.back} onClick={() => onChoose(undefined)}>
              <ArrowLeft aria-hidden="true" />
              All tools
            </Button>
            <ToolPanel key={tool.name} tool={tool} />
          </>
        ) : (
          <Empty title="Choose a tool">You can see its arguments and its cost in tokens, and try it out.</Empty>
        )}
      </div>
    </div>
  );
}
