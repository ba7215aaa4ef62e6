package ropewalk.plugin;

import io.grpc.BindableService;
import java.nio.file.Path;
import java.util.List;

/** What a plugin says of itself and does. {@link Serve#run} serves it. */
public interface Plugin {
  /** The kind: auth, sessionstore, registry or audit. */
  String kind();

  /** The plugin's own name: lower-case letters, digits and "-". */
  String name();

  /** The plugin's own version: any text. That of pom.xml, unless you return another one. */
  default String version() {
    String version = getClass().getPackage().getImplementationVersion();
    return version == null ? "dev" : version;
  }

  /** The optional capabilities that it has, besides "configure" and "validate". */
  default List<String> capabilities() {
    return List.of();
  }

  /**
   * Reads the settings and reports what is wrong with them. It changes nothing: it is called for a check of
   * settings, too. What makes the plugin ready is in the answer, and runs only if nothing was wrong.
   *
   * @param data the directory that is the plugin's alone; null when the server has none to give
   */
  Ready configure(Settings settings, Path data);

  /** The services of the kind. They are called only after the settings were accepted. */
  List<BindableService> services();

  /** Lets go of the backend. */
  default void close() throws Exception {}

  /** Makes a plugin ready. */
  interface Ready {
    /** Throws a StatusRuntimeException of UNAVAILABLE if a backend that it needs cannot be reached. */
    void run() throws Exception;
  }
}
