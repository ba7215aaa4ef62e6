import { getRouteApi } from "@tanstack/react-router";
import { Hammer } from "lucide-react";
import { useMemo } from "react";
import { useTools } from "../api/tools";
import { count, plural } from "../ui/format";
import { Empty, Failure, Page, Skeleton } from "../ui/Surface";
import { price } from "./ToolPanel";
import { ToolBrowser } from "./ToolBrowser";

const route = getRouteApi("/tools");

/** Shows all tools of the workspace. */
export function ToolsScreen() {
  const tools = useTools();
  const { tool } = route.useSearch();
  const navigate = route.useNavigate();
  const all = useMemo(() => tools.data ?? [], [tools.data]);
  const total = useMemo(() => all.reduce((sum, t) => sum + price(t), 0), [all]);
  return (
    <Page
      title="Tools"
      about={
        tools.data
          ? `${plural(all.length, "tool")} from the apps of this workspace. Their definitions cost a model about ${count(total)} tokens.`
          : "The tools of the apps in this workspace."
      }
    >
      {tools.isLoadingError ? (
        <Failure error={tools.error} />
      ) : tools.isPending ? (
        <Skeleton lines={6} />
      ) : all.length === 0 ? (
        <Empty icon={<Hammer aria-hidden="true" />} title="No tools yet">
          Install an app to get its tools.
        </Empty>
      ) : (
        <ToolBrowser
          tools={all}
          chosen={tool}
          onChoose={(name) => void navigate({ search: { tool: name }, replace: tool !== undefined })}
        />
      )}
    </Page>
  );
}
