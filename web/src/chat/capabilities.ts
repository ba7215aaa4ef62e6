import { useQuery } from "@tanstack/react-query";
import { useEndpoints } from "../api/endpoints";
import { request } from "../api/http";

type Listed = string | { id?: string; name?: string; model?: string };

/** The models that a message may ask for; empty where the server does not list them. */
export function useModels(): string[] {
  const { has } = useEndpoints();
  const { data } = useQuery({
    queryKey: ["models"],
    staleTime: 60_000,
    enabled: has("get /v1/models"),
    queryFn: () => request<{ models?: Listed[]; default?: string }>("GET", "/v1/models"),
  });
  return (data?.models ?? []).map((m) => (typeof m === "string" ? m : (m.id ?? m.model ?? m.name ?? ""))).filter(Boolean);
}

/** Whether a message may carry files. */
export const useAttachable = () => useEndpoints().chatTakes("attachments");
