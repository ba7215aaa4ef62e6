import { useQuery } from "@tanstack/react-query";
import { request } from "./http";

interface Description {
  paths: Record<string, Record<string, unknown>>;
}

/** What this server's API offers, such as has("get /v1/audit"): a screen without its endpoint is not shown. */
export function useEndpoints(): { has: (endpoint: string) => boolean; ready: boolean } {
  const { data } = useQuery({
    queryKey: ["openapi"],
    staleTime: Infinity,
    queryFn: async () => {
      const description = await request<Description>("GET", "/v1/openapi.json");
      return new Set(
        Object.entries(description.paths).flatMap(([path, methods]) => Object.keys(methods).map((method) => `${method} ${path.replaceAll(/\{[^}]*\}/g, "{}")}`)),
      );
    },
  });
  return { has: (endpoint) => data?.has(endpoint.replaceAll(/\{[^}]*\}/g, "{}")) ?? false, ready: data !== undefined };
}
