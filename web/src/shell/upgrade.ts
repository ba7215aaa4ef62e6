const reloadedAt = "ropewalk:reloaded-at";

/** Reports whether the server now has a different build of the console. It may no longer have scripts that this page has not loaded yet. */
async function isReplaced(): Promise<boolean> {
  const response = await fetch("/", { cache: "no-store" });
  if (!response.ok) return false;
  const page = await response.text();
  return [...document.scripts].some(({ src }) => src !== "" && !page.includes(new URL(src).pathname));
}

/** Reloads the page if a script is missing because the server was upgraded. It reloads at most once in ten seconds, because servers behind a load balancer may have different builds. */
export function followUpgrades(): void {
  addEventListener("vite:preloadError", async () => {
    const replaced = await isReplaced().catch(() => false); // the server may be unreachable
    if (!replaced || Date.now() - Number(sessionStorage.getItem(reloadedAt)) < 10_000) return;
    sessionStorage.setItem(reloadedAt, String(Date.now()));
    location.reload();
  });
}
