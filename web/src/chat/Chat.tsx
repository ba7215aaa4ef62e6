import { Page } from "../ui/Surface";

export const ChatScreen = () => <Page title="Chat">{null}</Page>;
