import { expect, test, vi } from "vitest";

const GET = vi.fn();
vi.mock("../api/client", () => ({ api: { GET } }));
const { readView } = await import("./resource");

function permissionsOf(permissions: unknown) {
  const body = { uri: "ui://a", text: "<p>", _meta: { ui: { permissions } } };
  const response = { headers: new Headers({ "Content-Type": "application/json" }) };
  GET.mockResolvedValue({ data: JSON.stringify(body), response });
  return readView("app", "ui://a").then((view) => view.meta.permissions);
}

test("a view gets only the permissions that MCP Apps defines", async () => {
  const all = { camera: {}, microphone: {}, geolocation: {}, clipboardWrite: {} };
  expect(await permissionsOf(all)).toEqual(all);
  expect(
    await permissionsOf({ "x; display-capture *": {}, "display-capture": {}, usb: {}, toString: {}, camera: {} }),
  ).toEqual({ camera: {} });
  for (const none of [undefined, null, {}, [], ["camera"], "camera", 7]) expect(await permissionsOf(none)).toEqual({});
});
