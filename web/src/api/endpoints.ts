import { useQuery } from "@tanstack/react-query";
import { request } from "./http";

interface Description {
  paths: Record<string, Record<string, unknown>>;
  components: { schemas: Record<string, Schema>; requestBodies?: Record<string, { content?: Record<string, { schema?: Schema }> }> };
}

interface Schema {
  $ref?: string;
  properties?: Record<string, unknown>;
  oneOf?: Schema[];
}

const plain = (endpoint: string) => endpoint.replaceAll(/\{[^}]*\}/g, "{}");

/**
 * What this server's API offers, such as has("get /v1/audit"): a screen without its endpoint is not
 * shown. accepts and chatTakes say whether an installation and a message take a field.
 */
export function useEndpoints() {
  const { data } = useQuery({
    queryKey: ["openapi"],
    staleTime: Infinity,
    queryFn: async () => {
      const { paths, components } = await request<Description>("GET", "/v1/openapi.json");
      return {
        endpoints: new Set(Object.entries(paths).flatMap(([path, methods]) => Object.keys(methods).map((method) => plain(`${method} ${path}`)))),
        install: new Set(fieldsOf(components.schemas.InstallRequest, components)),
        chat: new Set(Object.keys(chatOf(components).properties ?? {})),
      };
    },
  });
  return {
    has: (endpoint: string) => data?.endpoints.has(plain(endpoint)) ?? false,
    accepts: (field: string) => data?.install.has(field) ?? false,
    chatTakes: (field: string) => data?.chat.has(field) ?? false,
    ready: data !== undefined,
  };
}

/** The fields of an object, or of any of its alternatives. */
function fieldsOf(schema: Schema | undefined, components: Description["components"]): string[] {
  const resolved = schema?.$ref ? components.schemas[schema.$ref.split("/").pop()!] : schema;
  return [...Object.keys(resolved?.properties ?? {}), ...(resolved?.oneOf ?? []).flatMap((alternative) => fieldsOf(alternative, components))];
}

/** The schema of a message, wherever the description keeps it. */
function chatOf(components: Description["components"]): Schema {
  const schema = components.requestBodies?.Chat?.content?.["application/json"]?.schema ?? components.schemas.ChatRequest ?? {};
  return schema.$ref ? (components.schemas[schema.$ref.split("/").pop()!] ?? {}) : schema;
}
