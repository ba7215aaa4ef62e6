import { Plus, Trash2 } from "lucide-react";
import { useState } from "react";
import { Button } from "../ui/Button";
import { Input } from "../ui/Field";
import { withField } from "./object";
import { blank, kindOf, resolve } from "./schema";
import { SchemaField, type FieldProps } from "./SchemaField";
import css from "./forms.module.css";

const isGroup = (kind: string) => ["object", "list", "map", "variants"].includes(kind);

/** Shows fields for the items of an array. */
export function ListFields({ schema, root, label, value, path, errors, onChange }: FieldProps & { label: string }) {
  const items = Array.isArray(value) ? (value as unknown[]) : [];
  const set = (all: unknown[]) => onChange(all.length === 0 ? undefined : all);
  const item = schema.items!;
  return (
    <div className={css.list}>
      {items.map((one, i) => (
        <div key={i} className={isGroup(kindOf(resolve(item, root))) ? css.item : css.row}>
          <SchemaField
            name={`${label}, ${i + 1}`}
            schema={{ ...resolve(item, root), title: `${label}, ${i + 1}` }}
            root={root}
            required
            value={one}
            path={`${path}/${i}`}
            errors={errors}
            onChange={(to) => set(items.map((other, j) => (j === i ? (to ?? blank(item, root)) : other)))}
          />
          <Button look="quiet" label={`Remove ${i + 1}`} onClick={() => set(items.filter((_, j) => j !== i))}>
            <Trash2 aria-hidden="true" />
          </Button>
        </div>
      ))}
      <div>
        <Button small onClick={() => set([...items, blank(item, root)])}>
          <Plus aria-hidden="true" />
          Add
        </Button>
      </div>
    </div>
  );
}

/** Shows fields for the entries of a map. The person chooses their names. */
export function MapFields({ schema, root, label, value, path, errors, onChange }: FieldProps & { label: string }) {
  const object = (value !== null && typeof value === "object" ? value : {}) as Record<string, unknown>;
  const of = schema.additionalProperties as object;
  const [name, setName] = useState("");
  const isNew = name.trim() !== "" && !(name.trim() in object);
  const set = (to: Record<string, unknown>) => onChange(Object.keys(to).length === 0 ? undefined : to);
  const add = () => {
    if (!isNew) return;
    set({ ...object, [name.trim()]: blank(of, root) });
    setName("");
  };
  return (
    <div className={css.list}>
      {Object.entries(object).map(([key, item]) => (
        <div key={key} className={isGroup(kindOf(resolve(of, root))) ? css.item : css.row}>
          <SchemaField
            name={key}
            schema={{ ...resolve(of, root), title: key }}
            root={root}
            required
            value={item}
            path={`${path}/${key}`}
            errors={errors}
            onChange={(to) => set(withField(object, key, to ?? blank(of, root)))}
          />
          <Button look="quiet" label={`Remove ${key}`} onClick={() => set(withField(object, key, undefined))}>
            <Trash2 aria-hidden="true" />
          </Button>
        </div>
      ))}
      <div className={css.row}>
        <Input
          aria-label={`New name in ${label}`}
          placeholder="Name"
          value={name}
          onChange={(e) => setName(e.target.value)}
          onKeyDown={(e) => {
            if (e.key !== "Enter") return;
            e.preventDefault();
            add();
          }}
        />
        <Button small onClick={add} disabled={!isNew}>
          <Plus aria-hidden="true" />
          Add
        </Button>
      </div>
    </div>
  );
}
