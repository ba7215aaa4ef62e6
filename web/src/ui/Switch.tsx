import { Switch as Radix } from "radix-ui";
import css from "./controls.module.css";

interface SwitchProps {
  id?: string;
  checked: boolean;
  onChange: (checked: boolean) => void;
  label?: string;
  "aria-describedby"?: string;
}

export const Switch = ({ checked, onChange, label, ...rest }: SwitchProps) => (
  <Radix.Root className={css.switch} checked={checked} onCheckedChange={onChange} aria-label={label} {...rest}>
    <Radix.Thumb className={css.thumb} />
  </Radix.Root>
);
