import { getRouteApi, Link } from "@tanstack/react-router";
import { ArrowLeft } from "lucide-react";
import { useAppDetails, useApps, useHealth } from "../api/apps";
import { useSession } from "../api/session";
import { useTools } from "../api/tools";
import { Empty, Failure, Notice, Page, Skeleton } from "../ui/Surface";
import { useHeldTools } from "../approvals/waiting";
import { Tabs } from "../ui/Tabs";
import { ToolBrowser } from "../tools/ToolBrowser";
import { AppView } from "../views/LazyAppView";
import { AppActions } from "./Apps";
import { Logs } from "./Logs";
import { Overview } from "./Overview";
import { Permissions } from "./Permissions";
import { Settings } from "./Settings";
import { AppMark, StateBadge } from "./state";
import css from "./apps.module.css";

const route = getRouteApi("/apps/$name");

/** Shows one app: its state, tools, view, log and settings. */
export function AppDetail() {
  const { name } = route.useParams();
  const { tab = "overview", tool } = route.useSearch();
  const navigate = route.useNavigate();
  const apps = useApps();
  const details = useAppDetails(name);
  const health = useHealth();
  const { isWorkspaceAdmin } = useSession();
  const { data: all = [] } = useTools();
  const held = [
    ...new Set(
      useHeldTools()
        .filter((pin) => pin.server === name)
        .map((pin) => pin.tool),
    ),
  ]; // once per tool, even if it changed for several accounts
  if (apps.isLoadingError)
    return (
      <Page title={name}>
        <Failure error={apps.error} />
      </Page>
    );
  if (apps.isPending)
    return (
      <Page title={name}>
        <Skeleton lines={5} />
      </Page>
    );
  const app = apps.data.find((a) => a.name === name);
  if (!app) {
    return (
      <Page title={name}>
        <Empty title="This app is not installed here" actions={<Link to="/apps">All apps</Link>}>
          It may have been uninstalled, or it may be in another workspace.
        </Empty>
      </Page>
    );
  }
  const tools = all.filter((t) => t.server === name);
  const tabs = [
    {
      id: "overview",
      label: "Overview",
      content: () => <Overview app={app} details={details.data} health={health.data?.get(name)} tools={tools} />,
    },
    {
      id: "tools",
      label: "Tools",
      count: app.toolCount,
      content: () =>
        tools.length === 0 ? (
          <Empty title="No tools to show">
            {app.status === "running" ? "The app has no tools." : "Start the app to see its tools."}
          </Empty>
        ) : (
          <ToolBrowser
            oneApp
            tools={tools}
            chosen={tool}
            onChoose={(t) => void navigate({ search: { tab: "tools", tool: t } })}
          />
        ),
    },
    ...(app.ui
      ? [{ id: "view", label: app.ui.name || "View", content: () => <AppView server={name} uri="primary" /> }]
      : []),
    ...(isWorkspaceAdmin && !details.data?.transport
      ? [{ id: "logs", label: "Logs", content: () => <Logs key={name} app={name} /> }]
      : []),
    ...(isWorkspaceAdmin && !details.data?.transport
      ? [{ id: "permissions", label: "Permissions", content: () => <Permissions app={name} /> }]
      : []),
    ...(isWorkspaceAdmin
      ? [{ id: "settings", label: "Settings", content: () => <Settings app={name} details={details.data} /> }]
      : []),
  ];
  return (
    <Page
      title={
        <span className={css.title}>
          <AppMark app={app} />
          {app.ui?.name || name}
          <StateBadge app={app} />
        </span>
      }
      about={
        <>
          {details.data?.description && (
            <>
              {details.data.description}
              <br />
            </>
          )}
          <code>{app.bundleName}</code> {app.version}
        </>
      }
      actions={
        <>
          <Link
            to="/apps"
            aria-label="All apps"
            style={{ display: "inline-flex", padding: 8, color: "var(--text-soft)" }}
          >
            <ArrowLeft size={17} aria-hidden="true" />
          </Link>
          <AppActions
            app={app}
            uploaded={details.data?.source.kind === "upload"}
            onGone={() => void navigate({ to: "/apps", search: {} })}
          />
        </>
      }
    >
      {held.length > 0 && (
        <Notice tone="warn" action={<Link to="/approvals">Decide</Link>}>
          <p>
            {held.join(", ")} {held.length === 1 ? "is" : "are"} held back because the app changed{" "}
            {held.length === 1 ? "it" : "them"} without a new version. Models and clients can use{" "}
            {held.length === 1 ? "it" : "them"} again once an admin accepts the change.
          </p>
        </Notice>
      )}
      <Tabs
        label={`About ${name}`}
        tabs={tabs}
        value={tabs.some((t) => t.id === tab) ? tab : "overview"}
        onChange={(id) => void navigate({ search: { tab: id } })}
      />
    </Page>
  );
}
