export { Conversations } from "../chat/Conversations";
export { Bottom, Top } from "./Navigation";
