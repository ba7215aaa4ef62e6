import { Page } from "../ui/Surface";

export const SystemScreen = () => <Page title="System">{null}</Page>;
