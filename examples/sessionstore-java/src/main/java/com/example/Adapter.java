package com.example;

import com.google.protobuf.Duration;
import com.google.protobuf.util.Timestamps;
import io.grpc.BindableService;
import io.grpc.Status;
import io.grpc.stub.StreamObserver;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import ropewalk.plugin.Plugin;
import ropewalk.plugin.Serve;
import ropewalk.plugin.Settings;
import ropewalk.sessionstore.v1.SessionStoreServiceGrpc.SessionStoreServiceImplBase;
import ropewalk.sessionstore.v1.Sessionstore.DeleteRequest;
import ropewalk.sessionstore.v1.Sessionstore.DeleteResponse;
import ropewalk.sessionstore.v1.Sessionstore.GetRequest;
import ropewalk.sessionstore.v1.Sessionstore.GetResponse;
import ropewalk.sessionstore.v1.Sessionstore.PutRequest;
import ropewalk.sessionstore.v1.Sessionstore.PutResponse;
import ropewalk.sessionstore.v1.Sessionstore.Record;
import ropewalk.sessionstore.v1.Sessionstore.SessionTouch;
import ropewalk.sessionstore.v1.Sessionstore.TouchRequest;
import ropewalk.sessionstore.v1.Sessionstore.TouchResponse;

/**
 * A session store that keeps sessions in memory: replace this with your backend.
 * proto/ropewalk/sessionstore/v1/sessionstore.proto documents what each method must do. If your backend cannot be
 * reached, throw UNAVAILABLE. Throw NOT_FOUND only if the backend has reported that.
 */
public final class Adapter extends SessionStoreServiceImplBase implements Plugin {
  /** A record, and the end of its lifetime in System.nanoTime. */
  private record Session(Record record, long ends) {}

  private final Map<String, Session> sessions = new HashMap<>();
  private long purged = System.nanoTime();

  public static void main(String[] args) throws Exception {
    Serve.run(new Adapter());
  }

  @Override
  public String kind() {
    return "sessionstore";
  }

  @Override
  public String name() {
    return "sessionstore-java";
  }

  /** There are no settings. To add some, read them here, as in {@code String url = settings.text("url", "")}. */
  @Override
  public Ready configure(Settings settings, Path data) {
    return () -> {};
  }

  @Override
  public List<BindableService> services() {
    return List.of(this);
  }

  @Override
  public synchronized void put(PutRequest request, StreamObserver<PutResponse> answer) {
    if (request.getRecord().getId().isEmpty() || nanos(request.getTtl()) <= 0) {
      throw Status.INVALID_ARGUMENT.withDescription("a session needs an id and a positive ttl").asRuntimeException();
    }
    purge();
    sessions.put(request.getRecord().getId(), new Session(request.getRecord(), ends(request.getTtl())));
    answer.onNext(PutResponse.getDefaultInstance());
    answer.onCompleted();
  }

  @Override
  public synchronized void get(GetRequest request, StreamObserver<GetResponse> answer) {
    Session found = alive(request.getId());
    if (found == null) {
      throw Status.NOT_FOUND.withDescription("no such session").asRuntimeException();
    }
    answer.onNext(GetResponse.newBuilder().setRecord(found.record()).build());
    answer.onCompleted();
  }

  @Override
  public synchronized void touch(TouchRequest request, StreamObserver<TouchResponse> answer) {
    if (request.getTouchesList().stream().anyMatch(touch -> nanos(touch.getTtl()) <= 0)) {
      throw Status.INVALID_ARGUMENT.withDescription("the ttl of a touch must be positive").asRuntimeException();
    }
    for (SessionTouch touch : request.getTouchesList()) {
      Session found = alive(touch.getId());
      if (found == null) {
        continue;
      }
      Record record = found.record();
      if (Timestamps.compare(touch.getLastAccessedAt(), record.getLastAccessedAt()) > 0) {
        record = record.toBuilder().setLastAccessedAt(touch.getLastAccessedAt()).build();
      }
      sessions.put(touch.getId(), new Session(record, ends(touch.getTtl())));
    }
    answer.onNext(TouchResponse.getDefaultInstance());
    answer.onCompleted();
  }

  @Override
  public synchronized void delete(DeleteRequest request, StreamObserver<DeleteResponse> answer) {
    sessions.remove(request.getId());
    answer.onNext(DeleteResponse.getDefaultInstance());
    answer.onCompleted();
  }

  private Session alive(String id) {
    Session found = sessions.get(id);
    return found != null && System.nanoTime() - found.ends() < 0 ? found : null;
  }

  /** Removes expired sessions, at most once a second. */
  private void purge() {
    long now = System.nanoTime();
    if (now - purged >= 1_000_000_000L) {
      purged = now;
      sessions.values().removeIf(one -> now - one.ends() >= 0);
    }
  }

  private static long ends(Duration ttl) {
    return System.nanoTime() + nanos(ttl);
  }

  private static long nanos(Duration duration) {
    return duration.getSeconds() * 1_000_000_000L + duration.getNanos();
  }
}
