import { Page } from "../ui/Surface";

export const ConnectScreen = () => <Page title="Connect">{null}</Page>;
