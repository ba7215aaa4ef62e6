import clsx from "clsx";
import { FileArchive } from "lucide-react";
import { useRef, useState } from "react";
import { Button } from "../ui/Button";
import { bytes } from "../ui/format";
import { Failure } from "../ui/Surface";
import type { Installation, Replaceable } from "./installation";
import css from "./apps.module.css";

/** Asks whether an uploaded file should replace the installed app of the same name. */
function Replace({ install, old }: { install: Installation; old: Replaceable }) {
  const same = old.installed === old.offered;
  return (
    <div role="alertdialog" aria-label={`Replace ${old.name}?`} className={css.replace}>
      <p>
        <b>{old.name}</b> is already installed{same ? " in this version" : ` in version ${old.installed}`}. Its data,
        settings and permissions are kept. If the new version does not start, the installed one is restored.
      </p>
      <Button look="primary" busy={install.busy} onClick={install.replace} autoFocus>
        {same ? `Replace ${old.installed}` : `Replace ${old.installed} with ${old.offered}`}
      </Button>
      <Button onClick={install.back}>Keep {old.installed}</Button>
    </div>
  );
}

/** Installs an .mcpb file from this computer, dropped or chosen. */
export function FromFile({ install }: { install: Installation }) {
  const input = useRef<HTMLInputElement>(null);
  const [over, setOver] = useState(false);
  const [problem, setProblem] = useState("");
  const [file, setFile] = useState<File | null>(null);
  const upload = (chosen: File | undefined) => {
    if (!chosen) return;
    if (!/\.(mcpb|dxt)$/i.test(chosen.name)) return setProblem(`${chosen.name} is not an .mcpb file.`);
    setProblem("");
    setFile(chosen);
    install.begin(chosen.name, new Blob([chosen], { type: "application/octet-stream" }));
  };
  return (
    <div style={{ display: "grid", gap: 14 }}>
      <div
        className={clsx(css.drop, over && css.dropOver)}
        onDragOver={(e) => {
          e.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={(e) => {
          e.preventDefault();
          setOver(false);
          upload(e.dataTransfer.files[0]);
        }}
      >
        <FileArchive aria-hidden="true" />
        <p>
          {install.busy && file
            ? `Installing ${file.name} (${bytes(file.size)})…`
            : "Drop an .mcpb file here, or choose one."}
        </p>
        <Button busy={install.busy} onClick={() => input.current?.click()}>
          Choose file
        </Button>
        <input
          ref={input}
          type="file"
          accept=".mcpb,.dxt"
          hidden
          aria-label="Bundle file"
          onChange={(e) => upload(e.target.files?.[0])}
        />
      </div>
      {install.replaceable && <Replace install={install} old={install.replaceable} />}
      {problem && <Failure error={problem} />}
      {install.error && <Failure error={install.error} />}
    </div>
  );
}
