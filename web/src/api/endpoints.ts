import { useQuery } from "@tanstack/react-query";
import { request } from "./http";

interface Description {
  paths: Record<string, Record<string, unknown>>;
  components: { schemas: Record<string, { properties?: Record<string, unknown> }> };
}

const plain = (endpoint: string) => endpoint.replaceAll(/\{[^}]*\}/g, "{}");

/**
 * What this server's API offers, such as has("get /v1/audit"): a screen without its endpoint is not
 * shown. accepts says whether an installation takes a field.
 */
export function useEndpoints(): { has: (endpoint: string) => boolean; accepts: (field: string) => boolean; ready: boolean } {
  const { data } = useQuery({
    queryKey: ["openapi"],
    staleTime: Infinity,
    queryFn: async () => {
      const { paths, components } = await request<Description>("GET", "/v1/openapi.json");
      return {
        endpoints: new Set(Object.entries(paths).flatMap(([path, methods]) => Object.keys(methods).map((method) => plain(`${method} ${path}`)))),
        install: new Set(Object.keys(components.schemas.InstallRequest?.properties ?? {})),
      };
    },
  });
  return {
    has: (endpoint) => data?.endpoints.has(plain(endpoint)) ?? false,
    accepts: (field) => data?.install.has(field) ?? false,
    ready: data !== undefined,
  };
}
