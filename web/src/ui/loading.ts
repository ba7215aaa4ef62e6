const pause = 2_000;

/** Loads a script of the page. It retries while the server is unreachable, so that a screen appears late instead of never. */
export async function untilLoaded<T>(load: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await load();
    } catch (error) {
      if (tries >= 500) throw error;
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }
}
