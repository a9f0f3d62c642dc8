package dev.millrace.run;

import java.util.concurrent.CountDownLatch;

/**
 * Turns Ctrl-C and a polite kill into a stop at the next tick boundary. The shutdown hook waits
 * until the main thread has written everything, then ends the process with the run's exit code.
 */
public final class StopSignal implements AutoCloseable {
  private final CountDownLatch finished = new CountDownLatch(1);
  private final Thread hook = new Thread(this::shutDown, "stop-signal");
  private Runnable action = () -> {};
  private boolean requested;
  private volatile int exitCode;

  private StopSignal() {}

  public static StopSignal install() {
    StopSignal signal = new StopSignal();
    Runtime.getRuntime().addShutdownHook(signal.hook);
    return signal;
  }

  /** Names what stops the run; called at once if a stop was requested before. */
  public synchronized void onStop(Runnable stop) {
    action = stop;
    if (requested) {
      stop.run();
    }
  }

  public synchronized boolean requested() {
    return requested;
  }

  /** What the process ends with if it is ended by a signal. */
  public void exitCode(int code) {
    exitCode = code;
  }

  synchronized void request() {
    requested = true;
    action.run();
  }

  private void shutDown() {
    request();
    boolean interrupted = true;
    while (interrupted) {
      try {
        finished.await();
        interrupted = false;
      } catch (InterruptedException e) {
        interrupted = true; // nothing is more important than the checkpoint
      }
    }
    System.out.flush();
    System.err.flush();
    Runtime.getRuntime().halt(exitCode);
  }

  /** The main thread is done: nothing is left to wait for. */
  @Override
  public void close() {
    onStop(() -> {});
    finished.countDown();
    try {
      Runtime.getRuntime().removeShutdownHook(hook);
    } catch (IllegalStateException e) {
      finished.countDown(); // the process is going down already, and the hook ends it
    }
  }
}
