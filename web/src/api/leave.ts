/** What this browser stores for a person apart from the session. Logging out deletes all of it. */
export const draftPrefix = "ropewalk.draft ";
const database = "ropewalk";

/** Runs an action on the stored files of drafts. It does nothing in a browser without storage. */
export function fileStore<T>(
  mode: IDBTransactionMode,
  action: (files: IDBObjectStore) => IDBRequest,
): Promise<T | undefined> {
  return new Promise((resolve) => {
    const none = () => resolve(undefined);
    try {
      const opening = indexedDB.open(database, 1);
      opening.onupgradeneeded = () => opening.result.createObjectStore("files");
      opening.onerror = none;
      opening.onsuccess = () => {
        const transaction = opening.result.transaction("files", mode);
        const result = action(transaction.objectStore("files"));
        transaction.oncomplete = () => resolve(result.result as T);
        transaction.onerror = transaction.onabort = none;
        opening.result.close();
      };
    } catch {
      none();
    }
  });
}

/** Deletes all drafts in this browser, including other people's. */
export async function forgetDrafts(): Promise<void> {
  for (const key of Object.keys(localStorage)) if (key.startsWith(draftPrefix)) localStorage.removeItem(key);
  await fileStore("readwrite", (files) => files.clear());
}
