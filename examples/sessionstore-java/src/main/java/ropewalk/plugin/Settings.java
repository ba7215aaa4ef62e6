package ropewalk.plugin;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import com.google.gson.Strictness;
import com.google.gson.stream.JsonReader;
import com.google.gson.stream.JsonToken;
import java.io.IOException;
import java.io.StringReader;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import ropewalk.plugin.v1.Plugin.Problem;

/** Settings, read strictly: every problem is reported at once, with its path. A name that is never read counts as unknown. */
public final class Settings {
  private final JsonObject values = new JsonObject();
  private final Set<String> known = new LinkedHashSet<>();
  private final List<Problem> problems = new ArrayList<>();

  Settings(String json) {
    try (JsonReader reader = new JsonReader(new StringReader(json))) {
      reader.setStrictness(Strictness.STRICT);
      if (reader.peek() != JsonToken.BEGIN_OBJECT) {
        problem("", "must be an object, not " + kind(JsonParser.parseReader(reader)));
        return;
      }
      reader.beginObject();
      while (reader.hasNext()) {
        String name = reader.nextName();
        JsonElement value = JsonParser.parseReader(reader);
        if (values.has(name)) {
          problem(name, "is given twice");
        }
        values.add(name, value);
      }
      reader.endObject();
      if (reader.peek() != JsonToken.END_DOCUMENT) {
        problem("", "must be one JSON object");
      }
    } catch (IOException | JsonParseException | IllegalStateException | StackOverflowError e) {
      problem("", "must be one JSON object, but cannot be parsed");
    }
  }

  /** Returns a string, or the default if the setting is missing. */
  public String text(String name, String otherwise) {
    JsonElement value = value(name);
    if (value == null) {
      return otherwise;
    }
    if (!value.isJsonPrimitive() || !value.getAsJsonPrimitive().isString()) {
      problem(name, "must be a string, not " + kind(value));
      return otherwise;
    }
    return value.getAsString();
  }

  /** Returns true or false, or the default if the setting is missing. */
  public boolean flag(String name, boolean otherwise) {
    JsonElement value = value(name);
    if (value == null) {
      return otherwise;
    }
    if (!value.isJsonPrimitive() || !value.getAsJsonPrimitive().isBoolean()) {
      problem(name, "must be true or false, not " + kind(value));
      return otherwise;
    }
    return value.getAsBoolean();
  }

  /** Returns a whole number, or the default if the setting is missing. */
  public int number(String name, int otherwise) {
    JsonElement value = value(name);
    if (value == null) {
      return otherwise;
    }
    try {
      if (value.getAsJsonPrimitive().isNumber()) {
        return value.getAsBigDecimal().intValueExact();
      }
    } catch (IllegalStateException | ArithmeticException e) {
      // reported below
    }
    problem(name, "must be a whole number, not " + kind(value));
    return otherwise;
  }

  /** Returns the JSON of any other setting, or null if it is missing. */
  public JsonElement value(String name) {
    known.add(name);
    return values.get(name);
  }

  /**
   * Reports what is wrong with a setting and what to do. Only the first problem of a setting counts. Never repeat the
   * value, which could be a secret.
   */
  public void problem(String path, String message) {
    add(path, message, "");
  }

  private void add(String path, String message, String nearest) {
    if (path.isEmpty() || problems.stream().noneMatch(p -> p.getPath().equals(path))) {
      problems.add(Problem.newBuilder().setPath(path).setMessage(message).setNearest(nearest).build());
    }
  }

  /** Returns whether no setting was read, which means that there are none. */
  boolean isEmpty() {
    return known.isEmpty();
  }

  /** Returns all problems, once every setting has been read. */
  List<Problem> problems() {
    for (String name : values.keySet()) {
      if (!known.contains(name)) {
        add(name, "is not a setting", nearest(name));
      }
    }
    return problems;
  }

  private String nearest(String name) {
    String best = "";
    int least = Math.max(2, name.length() / 3) + 1;
    for (String one : known) {
      int distance = distance(name, one);
      if (distance < least) {
        least = distance;
        best = one;
      }
    }
    return best;
  }

  private static int distance(String a, String b) {
    int[] row = new int[b.length() + 1];
    for (int j = 0; j <= b.length(); j++) {
      row[j] = j;
    }
    for (int i = 1; i <= a.length(); i++) {
      int diagonal = row[0];
      row[0] = i;
      for (int j = 1; j <= b.length(); j++) {
        int replaced = diagonal + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
        diagonal = row[j];
        row[j] = Math.min(replaced, 1 + Math.min(row[j], row[j - 1]));
      }
    }
    return row[b.length()];
  }

  private static String kind(JsonElement value) {
    if (value.isJsonNull()) {
      return "null";
    }
    if (value.isJsonArray()) {
      return "a list";
    }
    if (value.isJsonObject()) {
      return "an object";
    }
    if (value.getAsJsonPrimitive().isBoolean()) {
      return "true or false";
    }
    return value.getAsJsonPrimitive().isString() ? "a string" : "a number";
  }
}
