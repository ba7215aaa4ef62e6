// Implements the services: ropewalk.plugin.v1, and ropewalk.sessionstore.v1 over one store.

import type { Problem__Output } from "../gen/ropewalk/plugin/v1/Problem.js";
import type { ConfigureRequest__Output } from "../gen/ropewalk/plugin/v1/ConfigureRequest.js";
import { invalid, unavailable, unconfigured } from "./errors.js";
import { info } from "./log.js";
import { parse } from "./settings.js";
import { Store } from "./store.js";

const VERSION = "1.0.0";

/** The plugin before and after Configure. */
export class Plugin {
  #store: Store | undefined;

  /** Describes the plugin. */
  info() {
    const capabilities = ["configure", "validate"];
    return { name: "typescript", version: VERSION, kind: "sessionstore", protocolVersions: [1], capabilities };
  }

  /** Opens the store with these settings, or returns what is wrong with them. */
  configure(request: ConfigureRequest__Output): Problem__Output[] {
    if (this.#store !== undefined) {
      throw invalid("the plugin is already configured; start another process for other settings");
    }
    const { settings, problems } = parse(request.settingsJson);
    if (settings.directory === "" && request.dataDir === "") {
      problems.push({ path: "directory", message: "must be set: the server provides no directory", nearest: "" });
    }
    if (problems.length > 0) return problems;
    const directory = settings.directory === "" ? request.dataDir : settings.directory;
    try {
      this.#store = new Store({ ...settings, directory });
    } catch (problem) {
      throw unavailable(`the sessions in ${directory} cannot be opened: ${String(problem)}`);
    }
    info("The store is ready.", { directory, waitForDisk: settings.waitForDisk });
    return [];
  }

  /** Returns the store. Throws until Configure has succeeded. */
  get store(): Store {
    if (this.#store === undefined) throw unconfigured();
    return this.#store;
  }

  async close(): Promise<void> {
    await this.#store?.close();
  }
}
