import { config } from "zod/v4";

// The policy of the page allows no code made from text. This comes before whatever makes schemas.
config({ jitless: true });
