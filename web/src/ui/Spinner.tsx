import css from "./controls.module.css";

export const Spinner = () => <span className={css.spinner} aria-hidden="true" />;
