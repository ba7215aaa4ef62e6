import { createRootRoute, createRoute, createRouter, lazyRouteComponent, Link, redirect } from "@tanstack/react-router";
import { ChatScreen, loadThread } from "./chat/Chat";
import { identity } from "./api/http";
import { Shell } from "./shell/Shell";
import { Button } from "./ui/Button";
import { untilLoaded } from "./ui/loading";
import { Empty, Failure, Page } from "./ui/Surface";

const root = createRootRoute({
  component: Shell,
  notFoundComponent: () => (
    <Page title="Not found">
      <Empty title="Page not found">
        <Link to="/apps">Go to the apps</Link>
      </Empty>
    </Page>
  ),
  errorComponent: ({ error }) => (
    <Page title="Something went wrong">
      <Failure error={error} action={<Button onClick={() => location.reload()}>Reload the page</Button>} />
    </Page>
  ),
});

const index = createRoute({
  getParentRoute: () => root,
  path: "/",
  beforeLoad: () => {
    throw redirect({ to: "/chat" });
  },
});

// Most visits start here. A separate chunk would be requested only after the rest of the page had loaded.
const chat = createRoute({ getParentRoute: () => root, path: "/chat", component: ChatScreen });
const conversation = createRoute({
  getParentRoute: () => root,
  path: "/chat/$id",
  component: ChatScreen,
  loader: () => void loadThread().catch(() => undefined),
});

interface AppSearch {
  tab?: string;
  tool?: string;
}
/** The filters of the activity screen. A link can set each of them. */
export interface ActivitySearch {
  tab?: string;
  /** Only for live events: their name, and words that they contain. */
  kind?: string;
  search?: string;
  /** Only for the audit trail. */
  person?: string;
  action?: string;
  tool?: string;
  outcome?: string;
  /** One day, instead of from and to. */
  day?: string;
  from?: string;
  to?: string;
}
const text = (value: unknown) => (typeof value === "string" ? value : undefined);

const apps = createRoute({
  getParentRoute: () => root,
  path: "/apps",
  component: lazyRouteComponent(() => untilLoaded(() => import("./apps/Apps")), "AppsScreen"),
  validateSearch: (search): { install?: string } => ({ install: text(search.install) }),
});
const app = createRoute({
  getParentRoute: () => root,
  path: "/apps/$name",
  component: lazyRouteComponent(() => untilLoaded(() => import("./apps/AppDetail")), "AppDetail"),
  validateSearch: (search): AppSearch => ({ tab: text(search.tab), tool: text(search.tool) }),
});
const tools = createRoute({
  getParentRoute: () => root,
  path: "/tools",
  component: lazyRouteComponent(() => untilLoaded(() => import("./tools/Tools")), "ToolsScreen"),
  validateSearch: (search): { tool?: string } => ({ tool: text(search.tool) }),
});
const approvals = createRoute({
  getParentRoute: () => root,
  path: "/approvals",
  component: lazyRouteComponent(() => untilLoaded(() => import("./approvals/Approvals")), "ApprovalsScreen"),
});
const activity = createRoute({
  getParentRoute: () => root,
  path: "/activity",
  component: lazyRouteComponent(() => untilLoaded(() => import("./activity/Activity")), "ActivityScreen"),
  validateSearch: (search): ActivitySearch => ({
    tab: text(search.tab),
    kind: text(search.kind),
    search: text(search.search),
    person: text(search.person),
    action: text(search.action),
    tool: text(search.tool),
    outcome: text(search.outcome),
    day: text(search.day),
    from: text(search.from),
    to: text(search.to),
  }),
});
const usage = createRoute({
  getParentRoute: () => root,
  path: "/usage",
  component: lazyRouteComponent(() => untilLoaded(() => import("./usage/Usage")), "UsageScreen"),
});
const accounts = createRoute({
  getParentRoute: () => root,
  path: "/accounts",
  component: lazyRouteComponent(() => untilLoaded(() => import("./accounts/Accounts")), "AccountsScreen"),
});
const people = createRoute({
  getParentRoute: () => root,
  path: "/people",
  component: lazyRouteComponent(() => untilLoaded(() => import("./people/People")), "PeopleScreen"),
});
const system = createRoute({
  getParentRoute: () => root,
  path: "/system",
  component: lazyRouteComponent(() => untilLoaded(() => import("./system/System")), "SystemScreen"),
});
const connect = createRoute({
  getParentRoute: () => root,
  path: "/connect",
  component: lazyRouteComponent(() => untilLoaded(() => import("./connect/Connect")), "ConnectScreen"),
});

export const router = createRouter({
  routeTree: root.addChildren([
    index,
    chat,
    conversation,
    apps,
    app,
    tools,
    approvals,
    activity,
    usage,
    accounts,
    people,
    system,
    connect,
  ]),
  // The address contains the workspace, so that Back, bookmarks and links open the right one. Routes are written
  // without it.
  rewrite: {
    input: ({ url }) => {
      url.pathname = url.pathname.replace(/^\/w\/[^/]+(?=\/|$)/, "") || "/";
      return url;
    },
    output: ({ url }) => {
      if (identity.workspace) url.pathname = `/w/${encodeURIComponent(identity.workspace)}${url.pathname}`;
      return url;
    },
  },
  defaultPreload: "intent",
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
