import { api, take } from "../api/client";
import type { Attachment } from "./run";

const largest = 5 << 20;
const largestTogether = 10 << 20;
const most = 10;
const images = ["image/png", "image/jpeg", "image/gif", "image/webp"];

const sizeOf = ({ data }: Attachment) => ((data?.length ?? 0) * 3) / 4;

/** Adds files to those already chosen. It returns a sentence about each file that cannot be sent. */
export async function withFiles(all: Attachment[], more: File[]): Promise<{ files: Attachment[]; problems: string[] }> {
  const files = [...all];
  const problems: string[] = [];
  let total = all.reduce((sum, file) => sum + sizeOf(file), 0);
  for (const file of more) {
    const problem =
      files.length >= most
        ? `${file.name} was not added. A message can have at most ${most} files.`
        : file.size === 0
          ? `${file.name} is empty.`
          : file.size > largest
            ? `${file.name} is too large. The limit is 5 MB per file.`
            : total + file.size > largestTogether
              ? `${file.name} was not added. The limit is 10 MB for all files of a message.`
              : "";
    const mimeType = problem ? undefined : await typeOf(file);
    if (mimeType) {
      files.push({ name: file.name, mimeType, data: await base64(file) });
      total += file.size;
    } else
      problems.push(
        problem ||
          `${file.name} has a type that models cannot read. They can read PNG, JPEG, GIF and WebP pictures, PDF documents and text.`,
      );
  }
  return { files, problems };
}

/** Returns the media type to send. Browsers know few types of text and mistake some for other types, such as TypeScript for video. */
async function typeOf(file: File): Promise<string | undefined> {
  if (images.includes(file.type) || file.type === "application/pdf") return file.type;
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    return text.includes("\0") ? undefined : /^text\/[\w.+-]+$/.test(file.type) ? file.type : "text/plain";
  } catch {
    return undefined;
  }
}

const base64 = (blob: Blob) =>
  new Promise<string>((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ""));
    reader.onerror = () => reject(reader.error ?? new Error("The file cannot be read."));
    reader.readAsDataURL(blob);
  });

/** Reads an attachment of an earlier message so that it can be sent again. */
export async function attachedBefore({
  name,
  mimeType,
  url,
}: {
  name: string;
  mimeType: string;
  url: string;
}): Promise<Attachment> {
  const [, id, attachment] = /^\/v1\/conversations\/(\w+)\/attachments\/(\w+)$/.exec(url) ?? [];
  if (!id || !attachment) return { name, mimeType, url };
  const path = { id, attachment };
  const file = await take(
    api.GET("/v1/conversations/{id}/attachments/{attachment}", { params: { path }, parseAs: "blob" }),
  );
  return { name, mimeType, data: await base64(file) };
}
