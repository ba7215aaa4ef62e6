import "./api/early"; // a script of its own, which has begun
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode, useEffect } from "react";
import { createRoot } from "react-dom/client";
import { follow } from "./api/events";
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
import "./styles/tokens.css";
import "./styles/base.css";
import shell from "./shell/shell.module.css";

applyTheme();
followUpgrades();

// A page that the browser kept may show who was logged in when it was left.
window.addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});

const queries = new QueryClient({ defaultOptions: { queries: { retry: retryUnlessRefused, staleTime: 5_000 } } });

/** What is inside belongs to one workspace; another one is another instance of it. */
function Workspace() {
  const { workspace } = useSession();
  const shown = useShown();
  useEffect(() => {
    if (!shown) return;
    follow(workspace.id, queries);
    return () => follow(null, queries);
  }, [workspace.id, shown]);
  return <RouterProvider key={workspace.id} router={router} />;
}

const root = document.getElementById("root");
if (!root) throw new Error("the page has no root");

const show = () => createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <SessionProvider
        loading={<div className={shell.center} role="status" aria-label="Loading"><Spinner /></div>}
        login={(facts, done) => <Login facts={facts} onDone={done} />}
        failed={(error, retry) => (
          <main className={shell.center}>
            <Empty title="The server does not answer" actions={<Button look="primary" onClick={retry}>Try again</Button>}>{error.message}</Empty>
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
