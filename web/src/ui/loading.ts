const pause = 2_000;

/** Loads one of the page's scripts, retrying on failure, so that a screen appears late rather than never. */
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
