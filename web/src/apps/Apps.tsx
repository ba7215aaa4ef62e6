import { getRouteApi, Link } from "@tanstack/react-router";
import { CirclePlay, CircleStop, Ellipsis, LayoutGrid, Plus, RotateCw, Trash2 } from "lucide-react";
import { lazy, Suspense, useDeferredValue, useMemo, useRef, useState } from "react";
import { useAppAction, useApps, useHealth, type AppAction, type Health } from "../api/apps";
import type { App, AppState } from "../api/client";
import { useSession } from "../api/session";
import { Button } from "../ui/Button";
import { Confirm } from "../ui/Dialog";
import { Search, Select } from "../ui/Field";
import { duration, plural } from "../ui/format";
import { untilLoaded } from "../ui/loading";
import { Menu, MenuItem, MenuLine } from "../ui/Menu";
import { Card, Empty, Failure, Page, Skeleton } from "../ui/Surface";
import { VirtualRows } from "../ui/VirtualRows";
import { useReplace } from "./installation";
import { AppMark, StateBadge, stateName } from "./state";
import css from "./apps.module.css";

const Install = lazy(() => untilLoaded(() => import("./Install")));
const route = getRouteApi("/apps");

/** Shows the installed apps of the workspace. */
export function AppsScreen() {
  const { isWorkspaceAdmin, workspace } = useSession();
  const { install } = route.useSearch();
  const navigate = route.useNavigate();
  const apps = useApps();
  const open = () => void navigate({ search: { install: "registry" } });
  return (
    <Page
      title="Apps"
      about="Each app is an MCP server. You, your chats and every connected client can use its tools."
      actions={
        isWorkspaceAdmin && (
          <Button look="primary" onClick={open}>
            <Plus aria-hidden="true" />
            Install app
          </Button>
        )
      }
    >
      {apps.isLoadingError ? (
        <Failure error={apps.error} />
      ) : apps.isPending ? (
        <Skeleton lines={5} />
      ) : apps.data.length === 0 ? (
        <Card flush>
          <Empty
            icon={<LayoutGrid aria-hidden="true" />}
            title="No apps yet"
            actions={
              isWorkspaceAdmin && (
                <Button look="primary" onClick={open}>
                  Install the first app
                </Button>
              )
            }
          >
            {isWorkspaceAdmin
              ? "Install an app from a registry, npm, PyPI, an address or a file."
              : `Ask an admin of ${workspace.name} to install apps.`}
          </Empty>
        </Card>
      ) : (
        <AppList apps={apps.data} />
      )}
      {install !== undefined && isWorkspaceAdmin && (
        <Suspense>
          <Install
            tab={install}
            onTab={(tab) => void navigate({ search: { install: tab }, replace: true })}
            onClose={() => void navigate({ search: {} })}
          />
        </Suspense>
      )}
    </Page>
  );
}

function AppList({ apps }: { apps: App[] }) {
  const [query, setQuery] = useState("");
  const [state, setState] = useState<AppState | "">("");
  const health = useHealth();
  const words = useDeferredValue(query).toLowerCase().split(/\s+/).filter(Boolean).join(" ");
  const found = useMemo(
    () =>
      apps.filter(
        (a) =>
          (!state || a.status === state) &&
          words.split(" ").every((w) => `${a.name} ${a.bundleName} ${a.ui?.name ?? ""}`.toLowerCase().includes(w)),
      ),
    [apps, state, words],
  );
  return (
    <>
      <div className={css.bar}>
        <Search label="Search apps" value={query} onChange={(e) => setQuery(e.target.value)} />
        <Select
          aria-label="State"
          value={state}
          onChange={(e) => setState(e.target.value as AppState | "")}
          style={{ width: 150 }}
        >
          <option value="">All states</option>
          {(["running", "starting", "stopped", "crashed", "dead"] as const).map((s) => (
            <option key={s} value={s}>
              {stateName(s)}
            </option>
          ))}
        </Select>
        <span className={css.cell} role="status">
          {plural(found.length, "app")}
        </span>
      </div>
      <Card flush>
        {found.length === 0 ? (
          <Empty title="No matches">No app matches your search.</Empty>
        ) : (
          <VirtualRows
            label="Installed apps"
            items={found}
            size={61}
            max={1400}
            keyOf={(a) => a.name}
            render={(a) => <AppRow app={a} health={health.data?.get(a.name)} />}
          />
        )}
      </Card>
    </>
  );
}

function AppRow({ app, health }: { app: App; health?: Health }) {
  return (
    <div className={css.row}>
      <div className={css.name}>
        <AppMark app={app} />
        <span>
          <Link to="/apps/$name" params={{ name: app.name }}>
            {app.ui?.name || app.name}
          </Link>
          <small title={app.bundleName}>
            {app.bundleName}
            {app.version && ` · ${app.version}`}
          </small>
        </span>
      </div>
      <StateBadge app={app} />
      <span className={css.cell}>{plural(app.toolCount, "tool")}</span>
      <span className={css.cell}>{app.status === "running" && health ? `up ${duration(health.uptime)}` : ""}</span>
      <AppActions app={app} />
    </div>
  );
}

/** Shows the actions that an admin can take on an app: one button, and a menu with the others. */
export function AppActions({ app, uploaded, onGone }: { app: App; uploaded?: boolean; onGone?: () => void }) {
  const { isWorkspaceAdmin, isOrgAdmin } = useSession();
  const file = useRef<HTMLInputElement>(null);
  const replace = useReplace(app.name);
  const act = useAppAction();
  const [sure, setSure] = useState(false);
  if (!isWorkspaceAdmin) return <span className={css.acts} />;
  const run = (action: AppAction) =>
    act.mutate({ name: app.name, action }, { onSuccess: () => action === "uninstall" && onGone?.() });
  const down = app.status === "stopped" || app.status === "dead";
  return (
    <span className={css.acts}>
      {down ? (
        <Button look="quiet" label={`Start ${app.name}`} busy={act.isPending} onClick={() => run("start")}>
          <CirclePlay aria-hidden="true" />
        </Button>
      ) : (
        <Button look="quiet" label={`Stop ${app.name}`} busy={act.isPending} onClick={() => run("stop")}>
          <CircleStop aria-hidden="true" />
        </Button>
      )}
      <Menu
        trigger={
          <Button look="quiet" label={`More actions for ${app.name}`}>
            <Ellipsis aria-hidden="true" />
          </Button>
        }
      >
        {down ? (
          <MenuItem icon={<CirclePlay aria-hidden="true" />} onSelect={() => run("start")}>
            Start
          </MenuItem>
        ) : (
          <MenuItem icon={<CircleStop aria-hidden="true" />} onSelect={() => run("stop")}>
            Stop
          </MenuItem>
        )}
        <MenuItem icon={<RotateCw aria-hidden="true" />} onSelect={() => run("restart")}>
          Restart
        </MenuItem>
        {!uploaded ? (
          <MenuItem icon={<Plus aria-hidden="true" />} onSelect={() => run("update")}>
            Update to the newest version
          </MenuItem>
        ) : (
          isOrgAdmin && (
            <MenuItem icon={<Plus aria-hidden="true" />} onSelect={() => file.current?.click()}>
              Replace with another file…
            </MenuItem>
          )
        )}
        <MenuLine />
        <MenuItem icon={<Trash2 aria-hidden="true" />} danger onSelect={() => setSure(true)}>
          Uninstall…
        </MenuItem>
      </Menu>
      <input
        ref={file}
        type="file"
        accept=".mcpb,.dxt"
        hidden
        aria-label={`New version of ${app.name}`}
        onChange={(e) => {
          const chosen = e.target.files?.[0];
          e.target.value = "";
          if (chosen) replace.mutate(chosen);
        }}
      />
      {sure && (
        <Confirm
          title={`Uninstall ${app.name}?`}
          action="Uninstall"
          busy={act.isPending}
          onClose={() => setSure(false)}
          onConfirm={() => {
            setSure(false);
            run("uninstall");
          }}
        >
          <p>
            Its {plural(app.toolCount, "tool")} will no longer be available to chats and clients. Its data stays on the
            server's disk. You can undo this for a minute.
          </p>
        </Confirm>
      )}
    </span>
  );
}
