const reloadedAt = "ropewalk:reloaded-at";

/** Whether the server has another build of the console than this page: the scripts that this page did not load yet are gone then. */
async function isReplaced(): Promise<boolean> {
  const response = await fetch("/", { cache: "no-store" });
  if (!response.ok) return false;
  const page = await response.text();
  return [...document.scripts].some(({ src }) => src !== "" && !page.includes(new URL(src).pathname));
}

/** Loads the page again when a script cannot be had because the server was upgraded meanwhile; not in circles, while several servers have different builds. */
export function followUpgrades(): void {
  addEventListener("vite:preloadError", async () => {
    const replaced = await isReplaced().catch(() => false); // the server may be away
    if (!replaced || Date.now() - Number(sessionStorage.getItem(reloadedAt)) < 10_000) return;
    sessionStorage.setItem(reloadedAt, String(Date.now()));
    location.reload();
  });
}
