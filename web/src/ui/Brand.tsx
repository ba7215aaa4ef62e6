/** Shows the logo, which is the same as public/favicon.svg. */
export const Brand = ({ label, size = 24 }: { label?: string; size?: number }) => (
  <svg
    width={size}
    height={size}
    viewBox="0 0 32 32"
    {...(label ? { role: "img", "aria-label": label } : { "aria-hidden": true })}
  >
    <rect width="32" height="32" rx="8" fill="#0d6b62" />
    <g fill="none" stroke="#fff" strokeWidth="2.6" strokeLinecap="round">
      <path d="M6 11c5 0 5 10 10 10s5-10 10-10" />
      <path d="M6 21c5 0 5-10 10-10s5 10 10 10" opacity=".62" />
      <path d="M6 16h20" opacity=".34" />
    </g>
  </svg>
);
