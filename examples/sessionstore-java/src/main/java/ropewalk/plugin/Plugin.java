package ropewalk.plugin;

import io.grpc.BindableService;
import java.nio.file.Path;
import java.util.List;

/** Describes a plugin. {@link Serve#run} serves it. */
public interface Plugin {
  /** The kind: auth, sessionstore, registry or audit. */
  String kind();

  /** The plugin's own name: lower-case letters, digits and "-". */
  String name();

  /** The plugin's own version, any text. By default it is the one in pom.xml. */
  default String version() {
    String version = getClass().getPackage().getImplementationVersion();
    return version == null ? "dev" : version;
  }

  /** Its optional capabilities, which plugin.proto lists. "configure" and "validate" are added. */
  default List<String> capabilities() {
    return List.of();
  }

  /**
   * Reads the settings and reports what is wrong with them. It must not open or change anything, because it also runs when
   * settings are only checked and, without settings or a directory, to learn their names. Put everything that makes the
   * plugin ready into the result, which runs only if there were no problems.
   *
   * @param data a directory for this plugin alone; null if there is none
   */
  Ready configure(Settings settings, Path data);

  /** The kind's services. They are called only after the settings have been accepted. */
  List<BindableService> services();

  /** Releases the backend. */
  default void close() throws Exception {}

  /** Makes a plugin ready. */
  interface Ready {
    /** Throws a StatusRuntimeException with UNAVAILABLE if a required backend cannot be reached. */
    void run() throws Exception;
  }
}
