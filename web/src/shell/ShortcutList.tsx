import { Dialog } from "../ui/Dialog";
import { keysHere, shortcuts } from "./shortcuts";
import css from "./shell.module.css";

/** Shows the list of keyboard shortcuts. */
export const ShortcutList = ({ onClose }: { onClose: () => void }) => (
  <Dialog title="Keyboard shortcuts" onClose={onClose}>
    <dl className={css.shortcuts}>
      {shortcuts.map(([keys, what]) => (
        <div key={keys}>
          <dt>{what}</dt>
          <dd>
            <kbd>{keysHere(keys)}</kbd>
          </dd>
        </div>
      ))}
    </dl>
  </Dialog>
);
