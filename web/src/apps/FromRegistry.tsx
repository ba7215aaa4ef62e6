import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { PackageSearch } from "lucide-react";
import { useEffect, useState } from "react";
import { useApps } from "../api/apps";
import { api, take, type Schemas } from "../api/client";
import { useSession } from "../api/session";
import { Button } from "../ui/Button";
import { Search } from "../ui/Field";
import { Badge, Empty, Failure, Notice, Skeleton } from "../ui/Surface";
import type { Installation } from "./installation";
import css from "./apps.module.css";

type Found = Schemas["FoundBundles"]["bundles"][number];

/** Searches the configured registries. */
export function FromRegistry({ install, onTab }: { install: Installation; onTab: (tab: string) => void }) {
  const { isOrgAdmin } = useSession();
  const [query, setQuery] = useState("");
  const [words, setWords] = useState("");
  const [chosen, setChosen] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setWords(query.trim()), 250);
    return () => clearTimeout(timer);
  }, [query]);
  const search = useQuery({
    queryKey: ["registry", words],
    staleTime: 60_000,
    placeholderData: keepPreviousData, // results stay in place, so that a click is not lost
    queryFn: () => take(api.GET("/v1/registries/search", { params: { query: { query: words, limit: 50 } } })),
  });
  const { data: apps = [] } = useApps();
  const found = search.data?.bundles ?? [];
  const pick = (bundle: Found) => {
    setChosen(bundle.name);
    install.begin(bundle.title || bundle.name, { name: bundle.name });
  };
  return (
    <div style={{ display: "grid", gridTemplateColumns: "minmax(0, 1fr)", gap: 14 }}>
      <Search label="Search the registries" value={query} onChange={(e) => setQuery(e.target.value)} />
      {search.data?.failures.map((failure) => (
        <Notice key={failure} tone="warn">
          {failure}
        </Notice>
      ))}
      {install.error && <Failure error={install.error} />}
      {search.isLoadingError ? (
        <Failure error={search.error} />
      ) : search.isPending ? (
        <Skeleton lines={4} />
      ) : found.length === 0 ? (
        <Empty
          icon={<PackageSearch aria-hidden="true" />}
          title={words ? "No matches" : "The registries are empty"}
          actions={
            !words && (
              <>
                {isOrgAdmin && <Button onClick={() => onTab("package")}>Install a package</Button>}
                {isOrgAdmin && <Button onClick={() => onTab("config")}>Paste a command</Button>}
                <Button onClick={() => onTab("url")}>Connect by address</Button>
              </>
            )
          }
        >
          {words
            ? "Try other words, or install a package or connect an address."
            : isOrgAdmin
              ? "Configure registries in ropewalk.yaml, under registries. Until then, install a package or a file, paste a command or another client's configuration, or connect a remote app by its address."
              : "An organization admin can configure registries. Until then, connect a remote app by its address."}
        </Empty>
      ) : (
        <ul className={css.found}>
          {found.map((bundle) => (
            <li key={`${bundle.registry} ${bundle.name}`} className={css.foundRow}>
              <div>
                <span>
                  <b>{bundle.title || bundle.name}</b> <Badge>{bundle.version}</Badge>
                </span>
                <small>{bundle.description || bundle.name}</small>
                <small>
                  {bundle.name} · {bundle.registry}
                  {bundle.trustScore > 0 && ` · trust ${bundle.trustScore}`}
                </small>
              </div>
              {apps.some((app) => app.bundleName === bundle.name) ? (
                <Badge tone="good">installed</Badge>
              ) : (
                <Button
                  small
                  busy={install.busy && chosen === bundle.name}
                  disabled={install.busy}
                  onClick={() => pick(bundle)}
                >
                  Install
                </Button>
              )}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
