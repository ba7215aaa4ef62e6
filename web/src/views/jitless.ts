import { config } from "zod/v4";

// The page's policy forbids eval. This must run before any schema is created.
config({ jitless: true });
