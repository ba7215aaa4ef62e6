import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.OffsetDateTime;
import java.util.Base64;
import java.util.List;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** Creates the tokens that the conformance kit asks for. samples.json names it. */
public final class Issue {
  private static final String KEY = "a-key-for-tests-of-32-characters-or-more"; // as in settings.json

  public static void main(String[] args) throws Exception {
    JsonArray tokens = new JsonArray();
    var all = JsonParser.parseReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)).getAsJsonObject();
    for (JsonElement wish : all.getAsJsonArray("tokens")) {
      tokens.add(token(wish.getAsJsonObject()));
    }
    JsonObject answer = new JsonObject();
    answer.add("tokens", tokens);
    System.out.println(answer);
  }

  /** Returns the token for a wish, or null if it is not possible with these tokens. */
  private static JsonElement token(JsonObject wish) throws Exception {
    for (String name : List.of("name", "organizationId", "orgRole", "scopes", "notBefore", "spoil")) {
      if (wish.has(name)) {
        return JsonNull.INSTANCE;
      }
    }
    if (!wish.has("audiences") || wish.getAsJsonArray("audiences").size() != 1) {
      return JsonNull.INSTANCE;
    }
    JsonObject claims = new JsonObject();
    claims.add("sub", wish.get("subject"));
    claims.add("aud", wish.getAsJsonArray("audiences").get(0));
    claims.addProperty("email", wish.has("email") ? wish.get("email").getAsString() : "");
    claims.addProperty("exp", OffsetDateTime.parse(wish.get("expiresAt").getAsString()).toEpochSecond());
    var encoder = Base64.getUrlEncoder().withoutPadding();
    String payload = encoder.encodeToString(claims.toString().getBytes(StandardCharsets.UTF_8));
    Mac mac = Mac.getInstance("HmacSHA256");
    mac.init(new SecretKeySpec(KEY.getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
    String signature = encoder.encodeToString(mac.doFinal(payload.getBytes(StandardCharsets.UTF_8)));
    return JsonParser.parseString('"' + payload + "." + signature + '"');
  }
}
