import { useQuery } from "@tanstack/react-query";
import { api, take } from "../api/client";
import { useSession } from "../api/session";
import { useIdle } from "../ui/idle";

/** Returns the models to offer: the configured models and those used in the last month. */
export function useModels(): string[] {
  const { workspace } = useSession();
  const idle = useIdle();
  const { data } = useQuery({
    enabled: idle,
    queryKey: ["models", workspace.id],
    staleTime: 60_000,
    queryFn: async () => {
      const [models, usage] = await Promise.all([
        take(api.GET("/v1/models")),
        take(api.GET("/v1/usage", { params: { query: { period: "month", groupBy: "model" } } })),
      ]);
      return [
        ...new Set([models.default, models.fast, ...usage.models.map((m) => m.model)].filter((m) => m !== null)),
      ].filter(Boolean);
    },
  });
  return data ?? [];
}
