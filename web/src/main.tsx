import "./api/early"; // a script of its own, which has begun
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

// A page that the browser kept may show who was logged in when it was left.
window.addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});

// What is shown is asked for until the server answers. What was to be done is not repeated by itself: it may have been done.
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

/** What is inside belongs to one workspace; another one is another instance of it. */
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
      if (there && there !== workspace.id) flushSync(() => switchTo(there)); // before the router shows in this one what is in that one
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
                title="The server does not answer"
                actions={
                  <Button look="primary" onClick={retry}>
                    Try again
                  </Button>
                }
              >
                {error.message} {isUnreachable(error) && "The page tries again by itself."}
              </Empty>
            </main>
          )}
        >
          <Workspace />
        </SessionProvider>
      </QueryClientProvider>
    </StrictMode>,
  );

// A screen with a chunk of its own is loaded meanwhile. On a phone the navigation is above the screen: the screen would move when it comes.
void Promise.allSettled([beforeFirstRender(queries), router.load(), isNarrow() && loadSidebars()]).then(show);
