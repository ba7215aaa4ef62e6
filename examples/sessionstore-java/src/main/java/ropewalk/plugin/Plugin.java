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

  /** The plugin's own version: any text. That of pom.xml, unless you return another one. */
  default String version() {
    String version = getClass().getPackage().getImplementationVersion();
    return version == null ? "dev" : version;
  }

  /** Its optional capabilities, which plugin.proto lists. "configure" and "validate" are added. */
  default List<String> capabilities() {
    return List.of();
  }

  /**
   * Reads the settings and reports what is wrong with them. It opens and changes nothing: it also runs when settings
   * are only checked and, without any settings and directory, to learn their names. What makes the plugin ready belongs
   * in the result, which runs only if nothing was wrong.
   *
   * @param data a directory for this plugin alone; null if there is none
   */
  Ready configure(Settings settings, Path data);

  /** The services of the kind. They are called only after the settings were accepted. */
  List<BindableService> services();

  /** Releases the backend. */
  default void close() throws Exception {}

  /** Makes a plugin ready. */
  interface Ready {
    /** Throws a StatusRuntimeException of UNAVAILABLE if a backend that it needs cannot be reached. */
    void run() throws Exception;
  }
}
