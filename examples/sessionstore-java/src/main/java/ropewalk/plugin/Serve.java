package ropewalk.plugin;

import com.google.protobuf.Empty;
import io.grpc.ForwardingServerCallListener.SimpleForwardingServerCallListener;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Server;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.ServerServiceDefinition;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.health.v1.HealthCheckResponse.ServingStatus;
import io.grpc.netty.shaded.io.grpc.netty.GrpcSslContexts;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.netty.shaded.io.netty.channel.MultiThreadIoEventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.nio.NioIoHandler;
import io.grpc.netty.shaded.io.netty.channel.socket.nio.NioServerDomainSocketChannel;
import io.grpc.netty.shaded.io.netty.handler.ssl.ClientAuth;
import io.grpc.netty.shaded.io.netty.handler.ssl.SslContextBuilder;
import io.grpc.netty.shaded.io.netty.handler.ssl.SslProvider;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.protobuf.services.HealthStatusManager;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import java.net.UnixDomainSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import ropewalk.plugin.v1.Plugin.ConfigureRequest;
import ropewalk.plugin.v1.Plugin.ConfigureResponse;
import ropewalk.plugin.v1.Plugin.InfoRequest;
import ropewalk.plugin.v1.Plugin.InfoResponse;
import ropewalk.plugin.v1.Plugin.ValidateRequest;
import ropewalk.plugin.v1.Plugin.ValidateResponse;
import ropewalk.plugin.v1.PluginServiceGrpc.PluginServiceImplBase;

/** Serves a plugin: the handshake of go-plugin, mutual TLS, ropewalk.plugin.v1, health and shutdown. */
public final class Serve {
  private static final String PROTOCOL = "1"; // the version of ropewalk.<kind>.v1
  private static final int MAX_MESSAGE = 16 << 20; // bytes, as on the server's side
  private static final int THREADS = 128; // for concurrent calls

  private final Plugin plugin;
  private final CountDownLatch end = new CountDownLatch(1);
  private volatile boolean configured;

  private Serve(Plugin plugin) {
    this.plugin = plugin;
  }

  /** Runs a plugin. It returns after the server has requested a shutdown. */
  public static void run(Plugin plugin) throws Exception {
    String refusal = refusal(plugin.kind());
    if (!refusal.isEmpty()) {
      System.err.println(refusal);
      System.exit(1);
    }
    Log.setup();
    new Serve(plugin).serve();
    System.exit(0); // even if a library has left threads running
  }

  /** Returns the reason why this process must not serve, or an empty string. */
  private static String refusal(String kind) {
    String wanted = env("ROPEWALK_PLUGIN");
    if (wanted.isEmpty()) {
      return "this is a Ropewalk plugin of the kind " + kind + "; a server starts it when its configuration names it, "
          + "and `ropewalk plugin test` checks it";
    }
    if (!wanted.equals(kind)) {
      return "this is a plugin of the kind " + kind + ", but it was started as a plugin of the kind " + wanted;
    }
    String versions = env("PLUGIN_PROTOCOL_VERSIONS");
    if (!versions.isEmpty() && !Arrays.asList(versions.split(",")).contains(PROTOCOL)) {
      return "this plugin speaks protocol version " + PROTOCOL + "; the server speaks " + versions;
    }
    return "";
  }

  private static String env(String name) {
    String value = System.getenv(name);
    return value == null ? "" : value;
  }

  private void serve() throws Exception {
    String given = env("PLUGIN_UNIX_SOCKET_DIR");
    Path folder = given.isEmpty() ? Files.createTempDirectory("ropewalk") : Path.of(given); // other users cannot open it
    Path socket = folder.resolve("plugin" + ProcessHandle.current().pid());
    Thread cleanup = new Thread(() -> {
      try {
        Files.deleteIfExists(socket);
        if (given.isEmpty()) {
          Files.deleteIfExists(folder);
        }
      } catch (Exception e) {
        Log.warn("The socket could not be removed.", "error", e.getMessage());
      }
    });
    Runtime.getRuntime().addShutdownHook(cleanup); // also runs on SIGTERM

    NettyServerBuilder builder = NettyServerBuilder.forAddress(UnixDomainSocketAddress.of(socket))
        .channelType(NioServerDomainSocketChannel.class)
        .bossEventLoopGroup(new MultiThreadIoEventLoopGroup(1, NioIoHandler.newFactory()))
        .workerEventLoopGroup(new MultiThreadIoEventLoopGroup(2, NioIoHandler.newFactory()))
        .executor(Executors.newFixedThreadPool(THREADS))
        .maxInboundMessageSize(MAX_MESSAGE)
        .intercept(new Guard())
        .addService(new Service())
        .addService(controller());
    plugin.services().forEach(builder::addService);
    HealthStatusManager health = new HealthStatusManager();
    health.setStatus("plugin", ServingStatus.SERVING);
    builder.addService(health.getHealthService());

    String field = "";
    String client = env("PLUGIN_CLIENT_CERT");
    if (!client.isEmpty()) { // under a debugger there is none, and the process serves without TLS
      Certificate own = Certificate.make();
      SslContextBuilder tls = SslContextBuilder.forServer(own.key(), own.certificate())
          .clientAuth(ClientAuth.REQUIRE)
          .trustManager(new Certificate.OneClient(client));
      builder.sslContext(GrpcSslContexts.configure(tls, SslProvider.JDK).build());
      field = Base64.getEncoder().withoutPadding().encodeToString(own.certificate().getEncoded());
    }
    Server server = builder.build().start();
    System.out.println("1|" + PROTOCOL + "|unix|" + socket + "|grpc|" + field);
    System.out.flush();
    System.setOut(System.err); // anything printed from now on goes to the log

    end.await();
    server.shutdown();
    if (!server.awaitTermination(1, TimeUnit.SECONDS)) {
      server.shutdownNow();
    }
    plugin.close();
  }

  /** Describes the plugin and takes its settings. */
  private final class Service extends PluginServiceImplBase {
    @Override
    public void info(InfoRequest request, StreamObserver<InfoResponse> answer) {
      Settings settings = new Settings("{}");
      plugin.configure(settings, null); // reads every known setting
      List<String> configure = settings.isEmpty() ? List.of() : List.of("configure");
      answer.onNext(InfoResponse.newBuilder()
          .setName(plugin.name())
          .setVersion(plugin.version())
          .setKind(plugin.kind())
          .addProtocolVersions(Integer.parseInt(PROTOCOL))
          .addAllCapabilities(configure)
          .addCapabilities("validate")
          .addAllCapabilities(plugin.capabilities())
          .build());
      answer.onCompleted();
    }

    @Override
    public synchronized void configure(ConfigureRequest request, StreamObserver<ConfigureResponse> answer) {
      if (configured) {
        throw Status.INVALID_ARGUMENT
            .withDescription("the plugin is already configured; start another process for other settings")
            .asRuntimeException();
      }
      Settings settings = new Settings(request.getSettingsJson());
      Plugin.Ready ready = plugin.configure(settings, data(request.getDataDir()));
      var problems = settings.problems();
      if (problems.isEmpty()) {
        try {
          ready.run();
        } catch (RuntimeException e) {
          throw e;
        } catch (Exception e) {
          throw new IllegalStateException(e);
        }
        configured = true;
      }
      answer.onNext(ConfigureResponse.newBuilder().addAllProblems(problems).build());
      answer.onCompleted();
    }

    @Override
    public void validate(ValidateRequest request, StreamObserver<ValidateResponse> answer) {
      Settings settings = new Settings(request.getSettingsJson());
      plugin.configure(settings, data(request.getDataDir()));
      answer.onNext(ValidateResponse.newBuilder().addAllProblems(settings.problems()).build());
      answer.onCompleted();
    }

    private Path data(String dir) {
      return dir.isEmpty() ? null : Path.of(dir);
    }
  }

  /** plugin.GRPCController of go-plugin, whose Shutdown has empty messages. */
  private ServerServiceDefinition controller() {
    MethodDescriptor<Empty, Empty> shutdown = MethodDescriptor.<Empty, Empty>newBuilder()
        .setType(MethodDescriptor.MethodType.UNARY)
        .setFullMethodName("plugin.GRPCController/Shutdown")
        .setRequestMarshaller(ProtoUtils.marshaller(Empty.getDefaultInstance()))
        .setResponseMarshaller(ProtoUtils.marshaller(Empty.getDefaultInstance()))
        .build();
    return ServerServiceDefinition.builder("plugin.GRPCController")
        .addMethod(shutdown, ServerCalls.asyncUnaryCall((request, answer) -> {
          answer.onNext(Empty.getDefaultInstance());
          answer.onCompleted();
          end.countDown();
        }))
        .build();
  }

  /**
   * Wraps every method: a StatusRuntimeException becomes the response, and anything else that is thrown an internal error.
   * Calls to the kind's services are refused until Configure has succeeded.
   */
  private final class Guard implements ServerInterceptor {
    @Override
    public <A, B> ServerCall.Listener<A> interceptCall(ServerCall<A, B> call, Metadata headers, ServerCallHandler<A, B> next) {
      String method = call.getMethodDescriptor().getFullMethodName();
      if (!configured && method.startsWith("ropewalk.") && !method.startsWith("ropewalk.plugin.")) {
        call.close(Status.FAILED_PRECONDITION.withDescription("call Configure first"), new Metadata());
        return new ServerCall.Listener<>() {};
      }
      return new SimpleForwardingServerCallListener<>(next.startCall(call, headers)) {
        @Override
        public void onHalfClose() {
          try {
            super.onHalfClose();
          } catch (StatusRuntimeException e) {
            call.close(e.getStatus(), new Metadata());
          } catch (RuntimeException | Error e) {
            Log.error("A call to this plugin failed.", e, "method", method);
            call.close(Status.INTERNAL.withDescription("the plugin failed; its log has the stack"), new Metadata());
          }
        }
      };
    }
  }
}
