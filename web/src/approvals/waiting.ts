import { useQuery } from "@tanstack/react-query";
import { request } from "../api/http";
import { useSession } from "../api/session";
import { useIdle } from "../ui/idle";

/** How many approvals wait for this person. */
export function useWaiting(): number {
  const { workspace } = useSession();
  const idle = useIdle();
  const { data } = useQuery({
    enabled: idle,
    queryKey: ["approvals", workspace.id],
    refetchInterval: 15_000,
    queryFn: () => request<{ approvals: { state: string }[] }>("GET", "/v1/approvals"),
  });
  return data?.approvals?.filter((a) => a.state === "pending").length ?? 0;
}
