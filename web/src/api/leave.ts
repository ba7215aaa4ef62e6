/** What this browser keeps of a person who is logged in, apart from the session: nothing of it outlives the logout. */
export const draftPrefix = "ropewalk.draft ";
const database = "ropewalk";

/** Does something with the files that drafts have. Where the browser keeps none, nothing happens. */
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

/** Forgets the drafts of everybody in this browser. */
export async function forgetDrafts(): Promise<void> {
  for (const key of Object.keys(localStorage)) if (key.startsWith(draftPrefix)) localStorage.removeItem(key);
  await fileStore("readwrite", (files) => files.clear());
}
