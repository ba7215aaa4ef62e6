import "./api/early"; // a separate script, which is running already
import { MutationCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode, useEffect } from "react";
import { flushSync } from "react-dom";
import { createRoot } from "react-dom/client";
import { workspaceInAddress } from "./api/early";
import { follow } from "./api/events";
import { isUnreachable } from "./api/http";
import { beforeFirstRender, retryUnlessRefused, SessionProvider, useSession } from "./api/session";
import { router } from "./router";
import { loadSidebars } from "./shell/sidebars";
import { Login } from "./shell/Login";
import { applyTheme } from "./shell/theme";
import { followUpgrades } from "./shell/upgrade";
import { Button } from "./ui/Button";
import { useShown } from "./ui/idle";
import { isNarrow } from "./ui/narrow";
import { Spinner } from "./ui/Spinner";
import { Empty } from "./ui/Surface";
import { toastError } from "./ui/Toast";
import "./styles/tokens.css";
import "./styles/base.css";
import shell from "./shell/shell.module.css";

applyTheme();
followUpgrades();

// A page restored from the back-forward cache may show a session that has ended.
window.addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});

// Queries are retried until the server responds. Changes are not retried, because the server may already have made
// them.
const queries = new QueryClient({
  mutationCache: new MutationCache({
    onError: (error, variables, _result, mutation) =>
      toastError(error, () => void mutation.execute(variables).catch(() => undefined)),
  }),
  defaultOptions: {
    queries: {
      retry: retryUnlessRefused,
      retryDelay: (count) => Math.min(500 * 2 ** count, 5_000),
      staleTime: 5_000,
      networkMode: "always",
    },
    mutations: { networkMode: "always" },
  },
});

/** Shows everything that belongs to one workspace. It is mounted again when the workspace changes. */
function Workspace() {
  const { workspace, user, switchTo } = useSession();
  const shown = useShown();
  useEffect(() => {
    if (!shown) return;
    follow({ workspace: workspace.id, user: user.id }, queries);
    return () => follow(null, queries);
  }, [workspace.id, user.id, shown]);
  useEffect(() => {
    const rest = location.pathname.replace(/^\/w\/[^/]+/, "");
    if (workspaceInAddress() !== workspace.id)
      history.replaceState(
        history.state,
        "",
        `/w/${encodeURIComponent(workspace.id)}${rest}${location.search}${location.hash}`,
      );
    const moved = () => {
      const there = workspaceInAddress();
      if (there && there !== workspace.id) flushSync(() => switchTo(there)); // before the router resolves the new address within the old workspace
    };
    addEventListener("popstate", moved, { capture: true });
    return () => removeEventListener("popstate", moved, { capture: true });
  }, [workspace.id, switchTo]);
  return <RouterProvider key={workspace.id} router={router} />;
}

const root = document.getElementById("root");
if (!root) throw new Error("the page has no root");

const show = () =>
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <SessionProvider
          loading={
            <div className={shell.center} role="status" aria-label="Loading">
              <Spinner />
            </div>
          }
          Login={Login}
          failed={(error, retry) => (
            <main className={shell.center}>
              <Empty
                title="The server is not responding"
                actions={
                  <Button look="primary" onClick={retry}>
                    Try again
                  </Button>
                }
              >
                {error.message} {isUnreachable(error) && "This page will keep trying."}
              </Empty>
            </main>
          )}
        >
          <Workspace />
        </SessionProvider>
      </QueryClientProvider>
    </StrictMode>,
  );

// Load the screen's script too. On a phone, also load the navigation, which would otherwise push the screen down when
// it appears.
void Promise.allSettled([beforeFirstRender(queries), router.load(), isNarrow() && loadSidebars()]).then(show);
