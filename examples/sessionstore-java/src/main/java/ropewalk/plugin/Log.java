package ropewalk.plugin;

import com.google.gson.JsonObject;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogManager;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/** Writes log lines as the server reads them: one JSON object per line on standard error. It includes what java.util.logging logs. */
public final class Log {
  private static final PrintStream ERR = new PrintStream(new FileOutputStream(FileDescriptor.err), true, StandardCharsets.UTF_8);

  /** Warns at each start of an option that a unix socket does not have. Loggers that nothing refers to lose their level. */
  private static final Logger BOOTSTRAP = Logger.getLogger("io.grpc.netty.shaded.io.netty.bootstrap.ServerBootstrap");

  private Log() {}

  /** Logs a message with fields, each a name followed by its value. Do not log secrets. */
  public static void info(String message, Object... fields) {
    line("info", message, null, fields);
  }

  public static void warn(String message, Object... fields) {
    line("warn", message, null, fields);
  }

  public static void error(String message, Throwable cause, Object... fields) {
    line("error", message, cause, fields);
  }

  private static void line(String level, String message, Throwable cause, Object... fields) {
    JsonObject line = new JsonObject();
    line.addProperty("@level", level);
    line.addProperty("@message", message);
    for (int i = 0; i + 1 < fields.length; i += 2) {
      line.addProperty(String.valueOf(fields[i]), String.valueOf(fields[i + 1]));
    }
    if (cause != null) {
      line.addProperty("error", cause.toString());
      StringWriter stack = new StringWriter();
      cause.printStackTrace(new PrintWriter(stack));
      line.addProperty("stack", stack.toString());
    }
    ERR.println(line);
  }

  /** Redirects what libraries log. */
  static void setup() {
    LogManager.getLogManager().reset();
    Logger.getLogger("").setLevel(Level.WARNING);
    BOOTSTRAP.setLevel(Level.SEVERE);
    Logger.getLogger("").addHandler(new Handler() {
      @Override
      public void publish(LogRecord record) {
        String level = record.getLevel().intValue() >= Level.SEVERE.intValue() ? "error" : "warn";
        line(level, record.getMessage(), record.getThrown(), "logger", record.getLoggerName());
      }

      @Override
      public void flush() {}

      @Override
      public void close() {}
    });
  }
}
